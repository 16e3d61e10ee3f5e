package ephemeral

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// applyCase is a lower, an upper, and what the host does between Changes and Apply.
type applyCase struct {
	lower, upper map[string]string
	whiteouts    []string
	host         func(t *testing.T, dir string)
	opts         ApplyOptions
}

func (c applyCase) run(t *testing.T) (dir string, changes *Changes, applied *Applied, err error) {
	t.Helper()
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, c.lower)
	writeTree(t, upper, c.upper)
	for _, path := range c.whiteouts {
		require.NoError(t, os.MkdirAll(filepath.Dir(upper+"/"+path), 0o755))
		require.NoError(t, unix.Mknod(upper+"/"+path, unix.S_IFCHR, 0))
	}
	layers := layersOf(t, lower, upper)
	changes = mustChanges(t, layers)
	if c.host != nil {
		c.host(t, lower)
	}
	applied, err = changes.Apply(layers.Lower, c.opts)
	return lower, changes, applied, err
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func skips(a *Applied) map[string]string {
	reasons := make(map[string]string)
	for _, s := range a.Skipped {
		reasons[s.Path] = s.Reason
	}
	return reasons
}

// Each thing that the host can do to a path which the run changed keeps Apply from writing anything.
func TestApplyRefusesWhatTheHostChanged(t *testing.T) {
	for name, c := range map[string]applyCase{
		"edited the file": {host: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(dir+"/f", []byte("host\n"), 0o644))
		}},
		"edited the file and set its times back": {host: func(t *testing.T, dir string) {
			info, err := os.Stat(dir + "/f")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(dir+"/f", []byte("OLD\n"), 0o644))
			require.NoError(t, os.Chtimes(dir+"/f", info.ModTime(), info.ModTime()))
		}},
		"removed the file": {host: func(t *testing.T, dir string) { require.NoError(t, os.Remove(dir+"/f")) }},
		"put a link in its place": {host: func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir+"/f", dir+"/g"))
			require.NoError(t, os.Symlink("g", dir+"/f"))
		}},
		"changed its mode": {host: func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir+"/f", 0o600)) }},
		"made the same new file": {host: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(dir+"/d/new", nil, 0o644))
		}},
		"put a link in the directory's place": {host: func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir+"/d", dir+"/e"))
			require.NoError(t, os.Symlink("e", dir+"/d"))
		}},
		"removed the directory": {host: func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir+"/d")) }},
		"added a file to a removed directory": {host: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(dir+"/gone/host", nil, 0o644))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.lower = map[string]string{"f": "old\n", "d/x": "x\n", "gone/y": "y\n"}
			c.upper = map[string]string{"f": "new\n", "d/new": "new\n", "other": "o\n"}
			c.whiteouts = []string{"gone"}
			dir, _, applied, err := c.run(t)
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Empty(t, applied.Done)
			assert.NoFileExists(t, dir+"/other")
			assert.FileExists(t, dir+"/gone/y")
			assert.Len(t, conflict.Conflicts, 1, "%v", conflict)

			c.opts.Partial = true
			dir, _, applied, err = c.run(t)
			require.NoError(t, err)
			assert.FileExists(t, dir+"/other", "the twin: the rest can be had")
			assert.NotEmpty(t, applied.Skipped)
			assert.NoDirExists(t, dir+"/e/new")
		})
	}
}

// A link that the run planted is applied as a link, and nothing is written through it, whatever the list says.
func TestApplyStaysInTheTarget(t *testing.T) {
	outside := t.TempDir()
	c := applyCase{upper: map[string]string{"out": "-> " + outside, "real/f": "f\n"}}
	dir, changes, _, err := c.run(t)
	require.NoError(t, err)
	target, err := os.Readlink(dir + "/out")
	require.NoError(t, err)
	assert.Equal(t, outside, target)
	assert.Equal(t, "link leads out of the workspace", changes.List[0].Risk)

	layers := changes.layers
	for _, path := range []string{"../f", "/f", "a/../../f", "", ".", "a//b", "a/", "nul\x00"} {
		forged := &Changes{layers: layers, List: []Change{{Path: path, Kind: Created, New: &Entry{}}}}
		_, err := forged.Apply(layers.Lower, ApplyOptions{})
		assert.ErrorContains(t, err, "does not stay", path)
	}
	forged := &Changes{layers: layers, List: []Change{{Path: "out/f", Kind: Created, New: &Entry{Mode: 0o644}}}}
	_, err = forged.Apply(layers.Lower, ApplyOptions{Partial: true})
	require.NoError(t, err)
	assert.NoFileExists(t, outside+"/f")
}

func TestApplyProtects(t *testing.T) {
	upper := map[string]string{
		".git/hooks/pre-commit": "#!/bin/sh\n", ".git/config": "[core]\n", ".git/objects/x": "x", "sub/.git/hooks/x": "x",
		".git/modules/m/hooks/x": "x", "link/.git": "-> ../evil", ".bashrc": "x", "a/.vscode/tasks.json": "{}",
		".claude/settings.local.json": "{}", ".claude/notes.md": "n", ".mcp.json": "{}", ".GIT/Hooks/x": "x", "src/main.go": "m",
	}
	dir, _, applied, err := applyCase{upper: upper}.run(t)
	require.NoError(t, err)
	kept := mustManifest(t, dir)
	for _, path := range []string{".git/objects/x", ".claude/notes.md", "src/main.go"} {
		assert.Contains(t, kept, path)
		delete(upper, path)
	}
	for path := range upper {
		assert.NotContains(t, kept, path)
		assert.Contains(t, skips(applied)[path], "protected path", path)
	}

	named := applyCase{upper: map[string]string{".vscode/a": "a", ".idea/b": "b"}, opts: ApplyOptions{Named: []string{".vscode"}}}
	dir, _, _, err = named.run(t)
	require.NoError(t, err)
	assert.FileExists(t, dir+"/.vscode/a")
	assert.NoDirExists(t, dir+"/.idea")

	_, _, _, err = applyCase{opts: ApplyOptions{Protected: []string{"[bad"}}}.run(t)
	assert.ErrorContains(t, err, "is not a pattern")
}

// A directory that the run removed stays when something in it is protected.
func TestApplyKeepsProtectedInRemovedDirectory(t *testing.T) {
	c := applyCase{lower: map[string]string{"d/.vscode/x": "x\n", "d/y": "y\n"}, whiteouts: []string{"d"}}
	dir, _, applied, err := c.run(t)
	require.NoError(t, err)
	assert.FileExists(t, dir+"/d/.vscode/x")
	assert.NoFileExists(t, dir+"/d/y")
	assert.Equal(t, `d/.vscode stays: protected path .vscode`, skips(applied)["d"])
}

func TestApplyStripsSpecialBits(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"had": "same\n", "rewritten": "old\n", "gets": "same\n"})
	writeTree(t, upper, map[string]string{"had": "same\n", "rewritten": "new\n", "gets": "same\n", "new": "n\n"})
	for _, path := range []string{lower + "/had", lower + "/rewritten"} {
		require.NoError(t, os.Chmod(path, 0o755|fs.ModeSetuid))
	}
	require.NoError(t, os.Chmod(upper+"/had", 0o700|fs.ModeSetuid))
	for _, path := range []string{"rewritten", "gets", "new"} {
		require.NoError(t, os.Chmod(upper+"/"+path, 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	layers := layersOf(t, lower, upper)
	applied, err := mustChanges(t, layers).Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"gets", "new", "rewritten"}, applied.Stripped)
	tree := mustManifest(t, lower)
	assert.Equal(t, 0o700|fs.ModeSetuid, tree["had"].Mode, "the host's own bit")
	for _, path := range applied.Stripped {
		assert.Equal(t, fs.FileMode(0o755), tree[path].Mode, path)
	}
}

// Directories of a group hand their group down, and go on to do so.
func TestApplyInGroupDirectory(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"shared/": ""})
	writeTree(t, upper, map[string]string{"shared/new/f": "f\n"})
	require.NoError(t, os.Chmod(lower+"/shared", 0o775|fs.ModeSetgid))
	require.NoError(t, os.Chmod(upper+"/shared", 0o775|fs.ModeSetgid))
	require.NoError(t, os.Chmod(upper+"/shared/new", 0o750))
	layers := layersOf(t, lower, upper)
	applied, err := mustChanges(t, layers).Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	assert.Empty(t, applied.Stripped)
	assert.Equal(t, 0o750|fs.ModeDir|fs.ModeSetgid, mustManifest(t, lower)["shared/new"].Mode)
}

// Names of one file change each other's ctime when they are replaced.
func TestApplyHardLinks(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"a": "old\n"})
	for _, name := range []string{"b", "c", "untouched"} {
		require.NoError(t, os.Link(lower+"/a", lower+"/"+name))
	}
	writeTree(t, upper, map[string]string{"a": "1\n", "b": "2\n", "c": "old\n"})
	require.NoError(t, os.Chmod(upper+"/c", 0o755))
	layers := layersOf(t, lower, upper)
	_, err := mustChanges(t, layers).Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1\n", readFile(t, lower+"/a"))
	assert.Equal(t, "2\n", readFile(t, lower+"/b"))
	assert.Equal(t, "old\n", readFile(t, lower+"/untouched"))
}

// Another checkout of the same files will do, if what the run changed is the same there.
func TestApplyElsewhere(t *testing.T) {
	lower, elsewhere := everyKindTree(t), t.TempDir()
	copyTree(t, lower, elsewhere)
	result := runOverlay(t, lower, "every kind")
	changes := mustChanges(t, result.Layers)
	target, err := os.Open(elsewhere)
	require.NoError(t, err)
	defer target.Close()

	require.NoError(t, os.WriteFile(elsewhere+"/modified", []byte("one\nTWO\nthree\n"), 0o644))
	_, err = changes.Apply(target, ApplyOptions{})
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	require.NoError(t, os.WriteFile(elsewhere+"/modified", []byte("one\ntwo\nthree\n"), 0o644))
	_, err = changes.Apply(target, ApplyOptions{Sync: true})
	require.NoError(t, err)
	assert.Equal(t, applicable(nil, result.merged), mustManifest(t, elsewhere))
}

func TestApplyOwners(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"d/theirs": "old\n"})
	writeTree(t, upper, map[string]string{"d/theirs": "new\n", "d/new": "n\n", "d/sub/deep": "d\n", "d/link": "-> x"})
	if os.Geteuid() != 0 { // a plain user has no files of others to replace
		require.ErrorIs(t, os.Lchown(lower+"/d", 1001, 1002), unix.EPERM)
		return
	}
	require.NoError(t, os.Lchown(lower+"/d", 1001, 1002))
	require.NoError(t, os.Lchown(lower+"/d/theirs", 1003, 1004))
	layers := layersOf(t, lower, upper)
	_, err := mustChanges(t, layers).Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	for path, want := range map[string]string{"d/theirs": "1003:1004", "d/new": "1001:1002", "d/sub": "1001:1002", "d/sub/deep": "1001:1002", "d/link": "1001:1002"} {
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(lower+"/"+path, &st))
		assert.Equal(t, want, fmt.Sprintf("%d:%d", st.Uid, st.Gid), path)
	}
}

// A full disk stops Apply. What was done is said, what was begun is gone.
func TestApplyFullDisk(t *testing.T) {
	out := inNamespaces(t, "full-disk-child")
	assert.Equal(t, "done [a], left [a host], error: no space left on device\n", out)
}

func fullDiskChild() error {
	dir, err := os.MkdirTemp("", "full-disk-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	upper, err := os.MkdirTemp("", "full-disk-upper-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(upper)
	for path, size := range map[string]int{dir + "/host": 1, upper + "/a": 100, upper + "/b": 1 << 20, upper + "/c": 100} {
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o644); err != nil {
			return err
		}
	}
	low, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer low.Close()
	up, err := os.Open(upper)
	if err != nil {
		return err
	}
	defer up.Close()
	return reportFullDisk(Layers{Lower: low, Upper: up}, dir)
}

func reportFullDisk(layers Layers, dir string) error {
	changes, err := layers.Changes()
	if err != nil {
		return err
	}
	applied, err := changes.Apply(layers.Lower, ApplyOptions{})
	if err == nil {
		return fmt.Errorf("everything fit")
	}
	entries, readErr := os.ReadDir(dir)
	if readErr != nil {
		return readErr
	}
	var done, left []string
	for _, c := range applied.Done {
		done = append(done, c.Path)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	message := err.Error()
	fmt.Printf("done %v, left %v, error: %s\n", done, left, message[strings.LastIndex(message, ": ")+2:])
	return nil
}
