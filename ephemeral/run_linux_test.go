package ephemeral

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// privateDir is a base that nobody else may write to, whatever the umask.
func privateDir(t testing.TB) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	return dir
}

func TestRunDirectory(t *testing.T) {
	base := privateDir(t)
	run, err := NewRun(base)
	require.NoError(t, err)
	assert.Equal(t, base+"/sandboxrun/"+run.ID(), run.Path())
	assert.Regexp(t, `^[a-z2-7]{20}$`, run.ID())
	info, err := os.Lstat(run.Path())
	require.NoError(t, err)
	assert.Equal(t, 0o700|fs.ModeDir, info.Mode())
	require.NoError(t, os.WriteFile(run.Path()+"/f", nil, 0o600))

	removed, err := Reap(base)
	require.NoError(t, err)
	assert.Empty(t, removed, "it is locked")
	assert.FileExists(t, run.Path()+"/f")
	require.NoError(t, run.Close())
	require.NoError(t, run.Close(), "again")
	assert.NoDirExists(t, run.Path())
}

func TestRunDirectoryPlaces(t *testing.T) {
	session, temp := privateDir(t), t.TempDir()
	require.NoError(t, os.Chmod(temp, 0o777|fs.ModeSticky))
	t.Setenv("TMPDIR", temp)
	shared := fmt.Sprintf("%s/sandboxrun-%d/", temp, os.Geteuid())

	for env, want := range map[string]string{session: session + "/sandboxrun/", "": shared, session + "/none": shared} {
		t.Setenv("XDG_RUNTIME_DIR", env)
		run, err := NewRun("")
		require.NoError(t, err)
		assert.Equal(t, want+run.ID(), run.Path())
		require.NoError(t, run.Close())
	}

	// Reap looks at both places.
	for _, dir := range []string{session + "/sandboxrun/", shared} {
		require.NoError(t, os.Mkdir(dir+newID(), 0o700))
	}
	t.Setenv("XDG_RUNTIME_DIR", session)
	removed, err := Reap("")
	require.NoError(t, err)
	assert.Len(t, removed, 2)
}

func TestRunDirectoryRefusesBases(t *testing.T) {
	for name, prepare := range map[string]func(base string) error{
		"base others write":  func(base string) error { return os.Chmod(base, 0o770) },
		"base link":          func(base string) error { return relink(base) },
		"base file":          func(base string) error { return refile(base) },
		"base missing":       func(base string) error { return os.Remove(base) },
		"place others write": func(base string) error { os.Mkdir(base+"/sandboxrun", 0); return os.Chmod(base+"/sandboxrun", 0o707) },
		"place link":         func(base string) error { return os.Symlink(base, base+"/sandboxrun") },
		"place file":         func(base string) error { return os.WriteFile(base+"/sandboxrun", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(privateDir(t), "base")
			require.NoError(t, os.Mkdir(base, 0o700))
			require.NoError(t, prepare(base))
			_, err := NewRun(base)
			assert.Error(t, err)
			if name != "place missing" && name != "base missing" {
				_, err = Reap(base)
				assert.Error(t, err)
			}
		})
	}
	if os.Geteuid() == 0 {
		base := privateDir(t)
		require.NoError(t, os.Chown(base, 1000, 1000))
		_, err := NewRun(base)
		assert.ErrorContains(t, err, "belongs to another user")
		require.NoError(t, os.Chmod(base, 0o777|fs.ModeSticky))
		_, err = NewRun(base)
		assert.ErrorContains(t, err, "belongs to another user")
	}
}

func relink(base string) error {
	if err := os.Rename(base, base+"2"); err != nil {
		return err
	}
	return os.Symlink(base+"2", base)
}

func refile(base string) error {
	if err := os.Remove(base); err != nil {
		return err
	}
	return os.WriteFile(base, nil, 0o600)
}

// What a killed run leaves is removed, whatever it is; what is not a run's stays.
func TestReap(t *testing.T) {
	base, outside := privateDir(t), t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/keep", nil, 0o600))
	place := base + "/sandboxrun"
	stale := place + "/" + newID()
	require.NoError(t, os.MkdirAll(stale, 0o700))
	require.NoError(t, os.Symlink(outside, stale+"/out"))
	require.NoError(t, os.Mkdir(stale+"/sandboxrun-0", 0o700))
	deepTree(t, stale, 10_000)
	require.NoError(t, os.MkdirAll(stale+"/locked/in", 0o700))
	require.NoError(t, os.WriteFile(stale+"/locked/in/f", nil, 0))
	for _, dir := range []string{stale + "/locked/in", stale + "/locked", stale} {
		require.NoError(t, os.Chmod(dir, 0))
	}
	require.NoError(t, os.Mkdir(place+"/not-an-id", 0o700))
	require.NoError(t, os.Symlink(outside, place+"/"+newID()))

	removed, err := Reap(base)
	require.NoError(t, err)
	assert.Equal(t, []string{stale}, removed)
	assert.NoDirExists(t, stale)
	assert.FileExists(t, outside+"/keep")
	assert.DirExists(t, place+"/not-an-id")

	removed, err = Reap(privateDir(t))
	require.NoError(t, err, "nothing was ever made there")
	assert.Empty(t, removed)
}

// An immutable file stays and is named; everything else goes.
func TestReapImmutable(t *testing.T) {
	const immutable = 0x10 // FS_IMMUTABLE_FL
	base := privateDir(t)
	stuck, other := base+"/sandboxrun/"+newID(), base+"/sandboxrun/"+newID()
	require.NoError(t, os.MkdirAll(stuck+"/d/e", 0o700))
	require.NoError(t, os.MkdirAll(other, 0o700))
	require.NoError(t, os.WriteFile(stuck+"/d/e/forever", nil, 0o600))
	require.NoError(t, os.WriteFile(stuck+"/d/e/not", nil, 0o600))
	if err := setFlags(stuck+"/d/e/forever", immutable); err != nil {
		if os.Geteuid() == 0 {
			skipLayer(t, "immutable files", err)
		}
		require.ErrorIs(t, err, fs.ErrPermission) // a plain user has no immutable files to leave behind
		return
	}
	removed, err := Reap(base)
	assert.Equal(t, []string{other}, removed)
	assert.ErrorContains(t, err, "forever")
	left := mustManifest(t, stuck)
	assert.Len(t, left, 2, "%v", left)
	for path, it := range left {
		if !it.Mode.IsDir() {
			require.NoError(t, setFlags(stuck+"/"+path, 0))
		}
	}
	removed, err = Reap(base)
	require.NoError(t, err)
	assert.Equal(t, []string{stuck}, removed)
}

// Runs that start, end, are killed and reap at the same time, in one process and in several, never lose a live directory,
// and in the end nothing is left.
func TestReapRaces(t *testing.T) {
	base := privateDir(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			out, err := exec.Command("/proc/self/exe", "run-child", "race", base).CombinedOutput()
			assert.NoError(t, err, string(out))
		})
		wg.Go(func() { killChild(t, base) })
	}
	for range 8 {
		wg.Go(func() { assert.NoError(t, raceRuns(base, 50)) })
	}
	wg.Wait()
	_, err := Reap(base)
	require.NoError(t, err)
	left, err := os.ReadDir(base + "/sandboxrun")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// raceRuns starts and ends runs and reaps in between.
func raceRuns(base string, n int) error {
	for i := range n {
		run, err := NewRun(base)
		if err != nil {
			return err
		}
		path := run.Path() + "/f"
		if err := os.WriteFile(path, []byte(strconv.Itoa(i)), 0o600); err != nil {
			return err
		}
		removed, err := Reap(base)
		if err != nil || slices.Contains(removed, run.Path()) {
			return fmt.Errorf("reaped %v: %w", removed, err)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("live directory: %w", err)
		}
		if err := run.Close(); err != nil {
			return err
		}
	}
	return nil
}

// killChild kills a process that has an open run, and sees that the lock went with it.
func killChild(t *testing.T, base string) {
	cmd := exec.Command("/proc/self/exe", "run-child", "wait", base)
	stdin, err := cmd.StdinPipe()
	assert.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	if !assert.NoError(t, cmd.Start()) {
		return
	}
	path, err := bufio.NewReader(stdout).ReadString('\n')
	assert.NoError(t, err)
	path = path[:max(0, len(path)-1)]
	_, err = Reap(base)
	assert.NoError(t, err)
	assert.DirExists(t, path, "it lives")
	assert.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	cmd.Wait()
	_, err = Reap(base)
	assert.NoError(t, err)
	_, err = os.Lstat(path)
	for i := 0; err == nil && i < 1000; i++ { // another reaper has it in hand
		_, err = os.Lstat(path)
		syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 1000})
	}
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// runChild is a process with runs of its own.
func runChild(args []string) error {
	if args[0] == "race" {
		return raceRuns(args[1], 50)
	}
	run, err := NewRun(args[1])
	if err != nil {
		return err
	}
	fmt.Println(run.Path())
	_, err = bufio.NewReader(os.Stdin).ReadByte() // until killed
	return err
}
