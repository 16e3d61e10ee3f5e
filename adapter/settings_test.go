package adapter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The real CLI takes the settings of every preset, whole: it says which are in force, and names files that it dropped.
func TestTheCLITakesTheSettingsOfEveryPreset(t *testing.T) {
	for _, preset := range isolation.Presets() {
		t.Run(preset, func(t *testing.T) {
			cfg, err := isolation.Inspect(preset)
			require.NoError(t, err)
			settings, err := isolation.ClaudeSettings(cfg)
			require.NoError(t, err)
			assert.NoError(t, openWith(t, settings))
		})
	}
	assert.Error(t, openWith(t, []byte(`{"sandbox":{"enabled":"yes"}}`)), "the twin: settings of a wrong type")
}

// openWith starts the CLI with these settings, outside of any sandbox and with an environment of its own, and asks it.
func openWith(t *testing.T, settings []byte) error {
	home := t.TempDir()
	path := filepath.Join(home, "settings.json")
	require.NoError(t, os.WriteFile(path, settings, 0o600))
	options := claude.Options{SettingsPath: path, Settings: settings, PermissionMode: claude.ModeDefault}
	cmd := exec.Command(requireCLI(t), options.Args()...)
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + home, "ANTHROPIC_API_KEY=sk-ant-fake", "ANTHROPIC_BASE_URL=http://127.0.0.1:9",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
	}
	cmd.Dir = home
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	session, err := claude.Open(t.Context(), claude.Pipes{Stdin: stdin, Stdout: stdout}, options)
	if err != nil {
		return err
	}
	return session.Close()
}
