package ephemeral

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// everyKindTree is the lower of the edit "every kind".
func everyKindTree(t testing.TB) string {
	lower := t.TempDir()
	writeTree(t, lower, map[string]string{
		"modified": "one\ntwo\nthree\n", "deleted": "x\n", "deleted-dir/a": "a\n", "deleted-dir/b/c": "c\n", "mode": "m\n",
		"link": "-> here", "to-file/inner": "i\n", "to-dir": "f\n", "to-link/inner": "i\n", "again/same": "same\n",
		"again/gone": "gone\n", "copied-up": "same\n", "touched": "t\n", "untouched": "u\n",
	})
	return lower
}

// writeTree makes files by path; a content "-> x" makes a link to x, a path that ends with a slash a directory.
func writeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case link:
			require.NoError(t, os.Symlink(target, full))
		case strings.HasSuffix(path, "/"):
			require.NoError(t, os.Mkdir(full, 0o755))
		default:
			require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
		}
	}
}

// layersOf opens two directories that look like an overlay's, without a mount.
func layersOf(t testing.TB, lower, upper string) Layers {
	t.Helper()
	low, err := os.Open(lower)
	require.NoError(t, err)
	up, err := os.Open(upper)
	require.NoError(t, err)
	t.Cleanup(func() { low.Close(); up.Close() })
	return Layers{Lower: low, Upper: up}
}

func mustChanges(t testing.TB, l Layers) *Changes {
	t.Helper()
	changes, err := l.Changes()
	require.NoError(t, err)
	return changes
}

func kindsOf(changes *Changes) map[string]Kind {
	kinds := make(map[string]Kind)
	for _, c := range changes.List {
		kinds[c.Path] = c.Kind
	}
	return kinds
}

func TestEveryKindOfChange(t *testing.T) {
	changes := mustChanges(t, runOverlay(t, everyKindTree(t), "every kind").Layers)
	assert.Equal(t, map[string]Kind{
		"created": Created, "created-dir": Created, "modified": Modified, "deleted": Deleted,
		"deleted-dir": Deleted, "deleted-dir/a": Deleted, "deleted-dir/b": Deleted, "deleted-dir/b/c": Deleted,
		"mode": ModeChanged, "link-new": Linked, "link": Linked,
		"to-file": Retyped, "to-file/inner": Deleted, "to-dir": Retyped, "to-dir/x": Created,
		"to-link": Retyped, "to-link/inner": Deleted, "again/gone": Deleted, "fifo": Special,
	}, kindsOf(changes))
	for i, c := range changes.List[1:] {
		assert.Less(t, changes.List[i].Path, c.Path, "sorted")
	}
	modified, err := changes.Open(Change{Path: "modified"})
	require.NoError(t, err)
	assert.NoError(t, modified.Close())
	_, err = changes.Open(Change{Path: "fifo"})
	assert.ErrorIs(t, err, errNotRegular, "and does not wait for a writer")
}

func TestNothingChanged(t *testing.T) {
	changes := mustChanges(t, runOverlay(t, everyKindTree(t), "nothing").Layers)
	assert.Empty(t, changes.List)
	var patch strings.Builder
	omitted, err := changes.WritePatch(&patch)
	require.NoError(t, err)
	assert.Empty(t, patch.String())
	assert.Zero(t, omitted.Total())
}

// What the run made unreadable for its owner is read all the same, and is as unreadable afterwards.
func TestUnreadableUpper(t *testing.T) {
	lower := t.TempDir()
	writeTree(t, lower, map[string]string{"host/old": "old\n"})
	t.Cleanup(func() { os.Chmod(lower+"/host", 0o755); os.Chmod(lower+"/d", 0o755); os.Chmod(lower+"/d/e", 0o755) })
	result := runOverlay(t, lower, "locked")
	changes := mustChanges(t, result.Layers)
	assert.Equal(t, map[string]Kind{
		"file": Created, "d": Created, "d/e": Created, "d/e/f": Created, "host": ModeChanged, "host/new": Created,
	}, kindsOf(changes))
	assert.Equal(t, changes.List, mustChanges(t, result.Layers).List)

	var patch strings.Builder
	_, err := changes.WritePatch(&patch)
	require.NoError(t, err)
	assert.Contains(t, patch.String(), "+deep\n")
	applied, err := changes.Apply(result.Lower, ApplyOptions{})
	require.NoError(t, err)
	assert.Empty(t, applied.Skipped)
	assert.Equal(t, result.merged, mustManifest(t, lower))
}

// The kernel marks a directory opaque with "y". "x" announces whiteouts that are files, and hides nothing.
func TestOverlayMarks(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"y/a": "a\n", "y/sub/b": "b\n", "x/a": "a\n", "x/b": "b\n", "white": "w\n"})
	writeTree(t, upper, map[string]string{"y/sub/": "", "x/a": "", "x/stray": "", "real-empty": ""})
	require.NoError(t, unix.Setxattr(upper+"/y", "user.overlay.opaque", []byte("y"), 0))
	require.NoError(t, unix.Setxattr(upper+"/x", "user.overlay.opaque", []byte("x"), 0))
	require.NoError(t, unix.Setxattr(upper+"/x/a", "user.overlay.whiteout", []byte("y"), 0))
	require.NoError(t, unix.Setxattr(upper+"/x/stray", "user.overlay.whiteout", []byte("y"), 0))
	require.NoError(t, unix.Mknod(upper+"/white", unix.S_IFCHR, 0))
	require.NoError(t, unix.Mknod(upper+"/nothing", unix.S_IFCHR, 0))
	assert.Equal(t, map[string]Kind{
		"y/a": Deleted, "y/sub/b": Deleted, "x/a": Deleted, "white": Deleted, "real-empty": Created,
	}, kindsOf(mustChanges(t, layersOf(t, lower, upper))))
}

// Marks of other kinds of overlay would make the result wrong, so there is none.
func TestForeignOverlayMarks(t *testing.T) {
	for path, mark := range map[string]string{"d": "user.overlay.redirect", "f": "user.overlay.metacopy"} {
		upper := t.TempDir()
		writeTree(t, upper, map[string]string{"d/x": "x\n", "f": "f\n"})
		layers := layersOf(t, t.TempDir(), upper)
		require.Len(t, mustChanges(t, layers).List, 3)
		require.NoError(t, unix.Setxattr(upper+"/"+path, mark, []byte("/x"), 0))
		_, err := layers.Changes()
		assert.ErrorContains(t, err, mark)
	}
}

// A tree deeper than PATH_MAX ends in a change that is never applied; it costs no descriptors.
func TestDeepUpper(t *testing.T) {
	upper := t.TempDir()
	deepTree(t, upper, 3000)
	t.Cleanup(func() { removeAll(t, upper) })
	changes := mustChanges(t, layersOf(t, t.TempDir(), upper))
	last := changes.List[len(changes.List)-1]
	assert.Equal(t, Special, last.Kind)
	assert.Greater(t, len(last.Path), maxPath)
	assert.LessOrEqual(t, len(changes.List[len(changes.List)-2].Path), maxPath)
}

// deepTree makes directories "d/d/d/…".
func deepTree(t testing.TB, top string, depth int) {
	t.Helper()
	dir, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	for range depth {
		require.NoError(t, unix.Mkdirat(dir, "d", 0o755))
		next, err := unix.Openat(dir, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		unix.Close(dir)
		dir = next
	}
	unix.Close(dir)
}

// A file of a terabyte that is one hole costs neither time nor disk.
func TestSparseFile(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(upper+"/sparse", []byte("start"), 0o644))
	require.NoError(t, os.Truncate(upper+"/sparse", 1<<40))
	layers := layersOf(t, lower, upper)
	changes := mustChanges(t, layers)
	omitted, err := changes.WritePatch(new(strings.Builder))
	require.NoError(t, err)
	assert.Equal(t, Omitted{TooLarge: 1}, omitted)

	_, err = changes.Apply(layers.Lower, ApplyOptions{})
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(lower+"/sparse", &st))
	assert.Equal(t, int64(1<<40), st.Size)
	assert.Less(t, st.Blocks, int64(1000))
}

// Without openat2, in old kernels and containers, the walk step by step finds and refuses the same.
func TestWalkStepByStep(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"a/b/c": "c\n", "link": "-> a", "out": "-> /etc"})
	root, err := os.Open(dir)
	require.NoError(t, err)
	defer root.Close()
	tr := tree{root: root}
	for path, want := range map[string]error{
		"a/b/c": nil, "link": nil, ".": nil, "link/b": unix.ENOTDIR, "out/passwd": unix.ENOTDIR,
		"../a": unix.EXDEV, "/etc": unix.EXDEV, "none": unix.ENOENT,
	} {
		h, err := tr.walk(path)
		assert.Equal(t, want, err, path)
		if err == nil {
			h.close()
		}
		if h, err := tr.resolve(path); assert.Equal(t, want == nil, err == nil, path) && err == nil {
			h.close()
		}
	}
}

func TestHostChangedDuringTheRun(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	writeTree(t, lower, map[string]string{"before": "1\n", "during": "1\n", "dir/x": "x\n"})
	writeTree(t, upper, map[string]string{"before": "2\n", "during": "2\n", "new": "n\n"})
	layers := layersOf(t, lower, upper)
	layers.Since = time.Now()
	require.Eventually(t, func() bool { // the kernel's clock for files ticks in milliseconds
		require.NoError(t, os.WriteFile(lower+"/during", []byte("host\n"), 0o644))
		changes := mustChanges(t, layers)
		return changes.List[1].HostChanged && !changes.List[0].HostChanged && !changes.List[2].HostChanged
	}, 10*time.Second, time.Millisecond)

	changes := mustChanges(t, layers)
	_, err := changes.Apply(layers.Lower, ApplyOptions{})
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "during", conflict.Conflicts[0].Path)
}

func BenchmarkChangesThreeEditsInTenThousandFiles(b *testing.B) {
	lower := b.TempDir()
	for i := range 100 {
		dir := filepath.Join(lower, fmt.Sprint(i))
		require.NoError(b, os.Mkdir(dir, 0o755))
		for j := range 100 {
			require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), []byte("content\n"), 0o644))
		}
	}
	layers := runOverlay(b, lower, "three").Layers
	for b.Loop() {
		changes, err := layers.Changes()
		if err != nil || len(changes.List) != 3 {
			b.Fatal(err, changes)
		}
	}
}
