package ephemeral

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func git(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return out
}

// For text, our patch is git's own, byte for byte.
func TestPatchIsThatOfGit(t *testing.T) {
	lower := t.TempDir()
	writeTree(t, lower, map[string]string{
		"1 space": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "2-crlf": "1\r\n2\r\n3\r\n", "3-noeol": "1\n2\n",
		"4-gone": "1\n2\n", "8-mode": "1\n", "9-type": "1\n",
	})
	repo := filepath.Join(t.TempDir(), "repo")
	copyTree(t, lower, repo)
	git(t, repo, "init", "-q")
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-qm", "before")

	result := runOverlay(t, lower, "text")
	changes := mustChanges(t, result.Layers)
	var patch strings.Builder
	omitted, err := changes.WritePatch(&patch)
	require.NoError(t, err)
	assert.Zero(t, omitted.Total())
	_, err = changes.Apply(result.Lower, ApplyOptions{})
	require.NoError(t, err)
	require.NoError(t, os.Rename(repo+"/.git", lower+"/.git"))
	git(t, lower, "add", "-A")
	want := git(t, lower, "diff", "--cached", "--binary", "--full-index", "--no-renames", "--no-color")
	assert.Equal(t, string(want), patch.String())
}

// A patch with large and binary files goes in, and with -R out again.
func TestPatchOfLargeAndBinaryFiles(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	random := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	large := bytes.Repeat([]byte("text, but more than is compared\n"), maxTextFile/32+1)
	writeTree(t, lower, map[string]string{"binary": string(random[:1000]), "gone": string(random[:77]), "text": "1\n"})
	writeTree(t, upper, map[string]string{"binary": string(random), "large": string(large), "text": "1\x002\n", "empty": ""})
	require.NoError(t, unix.Mknod(upper+"/gone", unix.S_IFCHR, 0))
	layers := layersOf(t, lower, upper)
	changes := mustChanges(t, layers)
	var patch bytes.Buffer
	_, err := changes.WritePatch(&patch)
	require.NoError(t, err)

	dir := filepath.Join(t.TempDir(), "copy")
	copyTree(t, lower, dir)
	before := mustManifest(t, dir)
	out, err := gitApply(dir, patch.Bytes())
	require.NoError(t, err, string(out))
	after := mustManifest(t, dir)
	_, err = changes.Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, mustManifest(t, lower), after)

	require.NoError(t, os.Remove(dir+"/large"), "no way back is written for large files")
	small := patch.Bytes()[:bytes.Index(patch.Bytes(), []byte("diff --git a/large"))]
	small = append(small, patch.Bytes()[bytes.Index(patch.Bytes(), []byte("diff --git a/text")):]...)
	out, err = gitApply(dir, small, "-R")
	require.NoError(t, err, string(out))
	assert.Equal(t, before, mustManifest(t, dir))
}

func TestPatchOmits(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"private": "p\n", "sub/.git/config": "c\n", "sub/f": "f\n", "e/empty/": "", "fifo-dir/x": "x\n"})
	writeTree(t, upper, map[string]string{
		".git/config": "c\n", "empty/": "", "full/f": "f\n", "private": "p\n", "sub": "file now\n", "e": "file now\n", "only-git/.git/x": "x\n",
	})
	require.NoError(t, os.Chmod(upper+"/private", 0o600))
	require.NoError(t, unix.Mkfifo(upper+"/fifo-dir", 0o644))
	var patch bytes.Buffer
	omitted, err := mustChanges(t, layersOf(t, lower, upper)).WritePatch(&patch)
	require.NoError(t, err)
	// .git, .git/config, sub/.git and its config, only-git/.git and x; empty, e/empty and only-git; sub, e and fifo-dir/x.
	assert.Equal(t, Omitted{GitFiles: 6, EmptyDirs: 3, Modes: 1, Special: 1, Blocked: 3}, omitted)
	out, err := gitApply(lower, patch.Bytes())
	require.NoError(t, err, string(out))
	assert.FileExists(t, lower+"/full/f")
	assert.NoFileExists(t, lower+"/sub/f")
	assert.FileExists(t, lower+"/fifo-dir/x")
}

// The memory for a patch does not grow with the number or size of files.
func TestPatchMemory(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(lower+"/lines", bytes.Repeat([]byte("\n"), maxTextFile-1), 0o644))
	require.NoError(t, os.WriteFile(upper+"/lines", bytes.Repeat([]byte("x\n"), maxTextFile/2), 0o644))
	require.NoError(t, os.WriteFile(upper+"/large", nil, 0o644))
	require.NoError(t, os.Truncate(upper+"/large", 64<<20))
	changes := mustChanges(t, layersOf(t, lower, upper))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := changes.WritePatch(discard{})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestPatchWriterFails(t *testing.T) {
	upper := t.TempDir()
	writeTree(t, upper, map[string]string{"f": strings.Repeat("line\n", 10_000)})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	_, err = mustChanges(t, layersOf(t, t.TempDir(), upper)).WritePatch(full)
	assert.ErrorIs(t, err, unix.ENOSPC)
}

// Any number of files that are large and take no room must not keep the patch from ending.
func TestPatchOfManySparseFiles(t *testing.T) {
	var list []Change
	for i := range 20 {
		list = append(list, Change{Path: strconv.Itoa(i), New: &Entry{Size: maxPatchFile}})
	}
	large := largeFiles(append(list, Change{Path: "small", New: &Entry{Size: 1}}))
	assert.Len(t, large, 20-maxPatchSize/maxPatchFile+1)
	assert.False(t, large["0"])
}
