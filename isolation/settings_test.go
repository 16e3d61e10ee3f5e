package isolation

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with testdata/name, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update to write it")
	assert.Equal(t, string(want), got)
}

// inspect parses a policy without asking whether it can be enforced; version = 1 is put in front.
func inspect(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := inspectText("test.toml", []byte("version = 1\n"+text))
	require.NoError(t, err)
	return cfg
}

func settingsOf(t *testing.T, cfg *Config) map[string]any {
	t.Helper()
	text, err := ClaudeSettings(cfg)
	require.NoError(t, err)
	var tree map[string]map[string]any
	require.NoError(t, json.Unmarshal(text, &tree))
	return tree["sandbox"]
}

func TestClaudeSettingsOfThePresets(t *testing.T) {
	for _, name := range Presets() {
		cfg, err := Inspect(name)
		require.NoError(t, err)
		text, err := ClaudeSettings(cfg)
		require.NoError(t, err)
		golden(t, "settings/"+name+".json", string(text))
	}
}

func TestClaudeSettingsOfEveryKey(t *testing.T) {
	text, err := ClaudeSettings(inspect(t, `
[network_policy]
allowed_domains = ["example.com:443", "example.com:80", "*.example.org", "[::1]:8443", "192.0.2.1"]
denied_domains = ["bad.example.org", "worse.example.org:22"]
allow_localhost = true
allow_unix_sockets = ["/run/a.sock"]
[sandbox]
agent_sandbox = "on"
writable_paths = ["../cache"]
readable_paths = ["/opt/tools"]
hidden_paths = ["/opt/tools/keys"]
excluded_commands = ["docker"]
allow_unsandboxed_commands = true
bash_auto_allow = false
`))
	require.NoError(t, err)
	golden(t, "settings/all-keys.json", string(text))
}

// S3-26: with the inner sandbox on, the keys of the seed are there and exact.
func TestClaudeSettingsDefaultsOfTheSeed(t *testing.T) {
	tree := settingsOf(t, inspect(t, "sandbox.agent_sandbox = \"on\""))
	assert.Equal(t, true, tree["enabled"])
	assert.Equal(t, true, tree["autoAllowBashIfSandboxed"])
	assert.Equal(t, []any{}, tree["network"].(map[string]any)["allowedDomains"])
}

func TestClaudeSettingsAlwaysCloseTheInnerSandbox(t *testing.T) {
	for _, text := range []string{"", "sandbox.agent_sandbox = \"on\"", "sandbox.agent_sandbox = \"off\"", "network_policy.allowed_domains = [\"*\"]\nsandbox.enabled = false"} {
		tree := settingsOf(t, inspect(t, text))
		assert.Equal(t, true, tree["failIfUnavailable"], text)
		assert.Equal(t, false, tree["allowUnsandboxedCommands"], text)
		assert.Equal(t, true, tree["network"].(map[string]any)["strictAllowlist"], text)
		assert.Equal(t, text == "sandbox.agent_sandbox = \"on\"", tree["enabled"], text)
	}
}

func TestClaudeSettingsKeys(t *testing.T) {
	network := func(tree map[string]any) any { return tree["network"] }
	for _, tt := range []struct {
		row, policy, key string
		in               func(map[string]any) any
		want             any
	}{
		{"S3-18", `network_policy.allowed_domains = ["a.test", "b.test:443"]`, "allowedDomains", network, []any{"a.test", "b.test"}},
		{"S3-20", "[network_policy]\nallowed_domains = [\"a.test\"]\nallowed_ports = []", "allowedDomains", network, []any{}},
		{"S3-28", "network_policy.allow_localhost = true", "allowLocalBinding", network, true},
		{"S3-28 twin", "", "allowLocalBinding", network, nil},
		{"S3-29 C5", "network_policy.allow_unix_sockets = true", "allowAllUnixSockets", network, true},
		{"S3-29 C5 list", `network_policy.allow_unix_sockets = ["/run/a"]`, "allowUnixSockets", network, []any{"/run/a"}},
		{"S3-27", `sandbox.excluded_commands = ["docker"]`, "excludedCommands", nil, []any{"docker"}},
		{"S3-27 twin", "", "excludedCommands", nil, nil},
		{"S3-30", `sandbox.writable_paths = ["out"]`, "filesystem", nil, map[string]any{"allowWrite": []any{"out"}}},
		{"C7 ask", `agent.permissions.shell_execute = "ask"`, "autoAllowBashIfSandboxed", nil, false},
		{"C7 absent in a table is ask", `agent.permissions.file_write = "allow"`, "autoAllowBashIfSandboxed", nil, false},
		{"C7 allow", `agent.permissions.shell_execute = "allow"`, "autoAllowBashIfSandboxed", nil, true},
	} {
		tree := settingsOf(t, inspect(t, tt.policy))
		if tt.in != nil {
			tree = tt.in(tree).(map[string]any)
		}
		assert.Equal(t, tt.want, tree[tt.key], tt.row)
	}
}

func TestClaudeSettingsAreTwoSpaceJSON(t *testing.T) {
	text, err := ClaudeSettings(&Config{})
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^\{\n  "sandbox": \{\n    "enabled": false,\n.*\}\n$`, string(text))
}
