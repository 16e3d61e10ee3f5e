package ephemeral

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var unixEpoch = time.Unix(0, 0)

// Whatever is done to whatever tree through an overlay: the changes are those between the two trees, the patch makes the new
// files out of the old ones, and applying makes the new tree.
func TestRandomRuns(t *testing.T) {
	const children, perChild = 13, 25
	for child := range children {
		t.Run(fmt.Sprint(child), func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			var jobs []overlayJob
			for i := range perChild {
				seed := uint64(child*perChild + i)
				lower := filepath.Join(base, fmt.Sprint(seed))
				require.NoError(t, os.Mkdir(lower, 0o755))
				require.NoError(t, randomTree(rand.New(rand.NewPCG(seed, 1)), lower, 3))
				jobs = append(jobs, overlayJob{Lower: lower, Edit: "random", Seed: seed, Report: lower + ".report"})
			}
			t.Cleanup(func() { removeAll(t, base) })
			for i, result := range runOverlays(t, jobs...) {
				checkRun(t, jobs[i], result)
			}
		})
	}
}

func checkRun(t *testing.T, job overlayJob, result overlayResult) {
	before := mustManifest(t, job.Lower)
	changes, err := result.Changes()
	require.NoError(t, err)
	got := make(map[string]Kind)
	for _, c := range changes.List {
		got[c.Path] = c.Kind
	}
	require.Len(t, got, len(changes.List), "no path twice")
	require.Equal(t, expectedKinds(before, result.merged), got, "seed %d", job.Seed)
	require.Equal(t, before, mustManifest(t, job.Lower), "the lower is only read")
	again, err := result.Changes()
	require.NoError(t, err)
	require.Equal(t, changes.List, again.List, "reading leaves the upper as it is")

	want := applicable(before, result.merged)
	checkPatch(t, job, changes, maps.Clone(want))
	applied, err := changes.Apply(result.Lower, ApplyOptions{Protected: []string{}})
	require.NoError(t, err, "seed %d", job.Seed)
	for _, s := range applied.Skipped {
		require.Contains(t, s.Reason, "special file", "seed %d: %q", job.Seed, s.Path)
	}
	require.Equal(t, want, mustManifest(t, job.Lower), "seed %d", job.Seed)
}

// checkPatch applies the patch with git, to the tree that the run started from.
func checkPatch(t *testing.T, job overlayJob, changes *Changes, want manifest) {
	dir := job.Lower + ".patched"
	copyTree(t, job.Lower, dir)
	for path, it := range mustManifest(t, job.Lower) {
		if isSpecial(it.Mode) {
			delete(want, path) // git neither removes nor replaces what it does not track
		}
	}
	var patch bytes.Buffer
	omitted, err := changes.WritePatch(&patch)
	require.NoError(t, err, "seed %d", job.Seed)
	out, err := gitApply(dir, patch.Bytes())
	if bytes.Contains(out, []byte("beyond a symbolic link")) && linkBecameDir(changes) {
		return // git looks for links on the way to new files through the link that goes away
	}
	require.NoError(t, err, "%s\n%s", out, &patch)
	if omitted.Blocked == 0 {
		require.Equal(t, want.tracked(), mustManifest(t, dir).tracked(), "seed %d\n%s", job.Seed, &patch)
	}
}

func linkBecameDir(changes *Changes) bool {
	return slices.ContainsFunc(changes.List, func(c Change) bool { return isLink(c.Old) && isDir(c.New) })
}

func gitApply(dir string, patch []byte, flags ...string) ([]byte, error) {
	if len(patch) == 0 {
		return nil, nil // git apply takes no empty patch
	}
	args := append([]string{"-c", "core.autocrlf=false", "apply", "--binary", "--whitespace=nowarn"}, flags...)
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null")
	return cmd.CombinedOutput()
}

// removeAll is RemoveAll for trees with directories that forbid it.
func removeAll(t testing.TB, dir string) {
	root, err := os.OpenRoot(filepath.Dir(dir))
	require.NoError(t, err)
	defer root.Close()
	assert.NoError(t, removeTree(root, filepath.Base(dir)))
}
