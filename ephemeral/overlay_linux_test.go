package ephemeral

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// overlayJob is one overlay for the child to mount, edit and describe.
type overlayJob struct {
	Lower  string
	Edit   string // a key of overlayEdits, or "random"
	Seed   uint64
	Report string // where the manifest of the merged view goes
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "overlay-child":
			exitWith(overlayChild())
		case "full-disk-child":
			exitWith(fullDiskChild())
		case "run-child":
			exitWith(runChild(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// overlayChild runs in a user and mount namespace of its own. Each upper goes to the parent over the socket on descriptor 3.
func overlayChild() error {
	syscall.Umask(0)
	var jobs []overlayJob
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "overlay-child-")
	if err != nil {
		return err
	}
	defer os.Remove(scratch)
	for _, job := range jobs {
		if err := runJob(job, scratch); err != nil {
			return fmt.Errorf("job %+v: %w", job, err)
		}
	}
	return nil
}

func runJob(job overlayJob, scratch string) error {
	if err := unix.Mount("tmpfs", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	defer unix.Unmount(scratch, unix.MNT_DETACH)
	for _, name := range []string{"upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(scratch, name), 0o755); err != nil {
			return err
		}
	}
	merged := scratch + "/merged"
	options := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", job.Lower, scratch, scratch)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	defer unix.Unmount(merged, unix.MNT_DETACH)
	edit := overlayEdits[job.Edit]
	if job.Edit == "random" {
		edit = func(dir string) error { return randomEdits(rand.New(rand.NewPCG(job.Seed, 2)), dir) }
	}
	if err := edit(merged); err != nil {
		return err
	}
	if err := writeReport(job.Report, merged); err != nil {
		return err
	}
	upper, err := os.Open(scratch + "/upper")
	if err != nil {
		return err
	}
	defer upper.Close()
	return unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(upper.Fd())), nil, 0)
}

func writeReport(path, merged string) error {
	tree, err := manifestOf(merged)
	if err != nil {
		return err
	}
	report, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return os.WriteFile(path, report, 0o644)
}

// overlayResult is an overlay after its run: processes and mount namespace are gone, the descriptors stay.
type overlayResult struct {
	Layers
	merged manifest
}

// runOverlays carries out jobs in one child.
func runOverlays(t testing.TB, jobs ...overlayJob) []overlayResult {
	t.Helper()
	input, err := json.Marshal(jobs)
	require.NoError(t, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer unix.Close(pair[0])

	var stderr bytes.Buffer
	cmd := exec.Command("/proc/self/exe", "overlay-child")
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = bytes.NewReader(input), &stderr, []*os.File{theirs}
	cmd.SysProcAttr = ownNamespaces()
	if err := cmd.Start(); err != nil {
		skipLayer(t, "user and mount namespaces", err)
	}
	theirs.Close()
	uppers := receiveAll(t, pair[0])
	if err := cmd.Wait(); err != nil {
		if bytes.Contains(stderr.Bytes(), []byte("mount overlay")) || bytes.Contains(stderr.Bytes(), []byte("mount tmpfs")) {
			skipLayer(t, "overlayfs", fmt.Errorf("%w: %s", err, &stderr))
		}
		t.Fatalf("%v: %s", err, &stderr)
	}
	require.Len(t, uppers, len(jobs))

	results := make([]overlayResult, len(jobs))
	for i, job := range jobs {
		report, err := os.ReadFile(job.Report)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(report, &results[i].merged))
		lower, err := os.Open(job.Lower)
		require.NoError(t, err)
		results[i].Layers = Layers{Lower: lower, Upper: uppers[i]}
		t.Cleanup(func() { lower.Close(); uppers[i].Close() })
	}
	return results
}

// ownNamespaces makes a child root of a user namespace in which its user is the only one.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// inNamespaces runs the test binary as a child and returns what it prints.
func inNamespaces(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr = ownNamespaces()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && (stderr.Len() == 0 || bytes.Contains(stderr.Bytes(), []byte("mount tmpfs"))) {
		skipLayer(t, "user and mount namespaces", fmt.Errorf("%w: %s", err, &stderr))
	}
	require.NoError(t, err, stderr.String())
	return string(out)
}

// receiveAll takes descriptors until the other side is closed.
func receiveAll(t testing.TB, socket int) []*os.File {
	var files []*os.File
	for {
		oob := make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		require.NoError(t, err)
		if n == 0 {
			return files
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		require.NoError(t, err)
		fds, err := unix.ParseUnixRights(&messages[0])
		require.NoError(t, err)
		files = append(files, os.NewFile(uintptr(fds[0]), "upper"))
	}
}

// runOverlay carries out one named edit over a lower directory.
func runOverlay(t testing.TB, lower, edit string) overlayResult {
	t.Helper()
	job := overlayJob{Lower: lower, Edit: edit, Report: filepath.Join(t.TempDir(), "report")}
	return runOverlays(t, job)[0]
}

// skipLayer skips a test whose layer this kernel lacks, unless nothing may be skipped.
func skipLayer(t testing.TB, layer string, err error) {
	t.Helper()
	if os.Getenv("SANDBOXRUN_TEST_REQUIRE") == "all" {
		t.Fatalf("%s: %v", layer, err)
	}
	t.Skipf("%s: %v", layer, err)
}
