package ephemeral

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Permission bits mean nothing to root, so root runs the tests that are about them once more as somebody else.
func TestAsPlainUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // all tests run so
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "plain-user-") // t.TempDir is in a directory that only root may enter
	require.NoError(t, err)
	t.Cleanup(func() { removeAll(t, dir) })
	require.NoError(t, os.Chown(dir, nobody, nobody))
	cmd := exec.Command("/proc/self/exe", "-test.run", "^(TestUnreadableUpper|TestRandomRuns|TestReap|TestHome|TestRunDirectory.*|TestApply.*)$/^[0-2]?$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "XDG_RUNTIME_DIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, string(out))
}
