package isolation

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandboxrun/sandboxrun/ephemeral"
)

func TestZeroConfigIsTheShortestPolicy(t *testing.T) {
	file := inspect(t, "")
	assert.Equal(t, (&Config{}).SHA256(), file.SHA256())
	want := Config{Version: 1}
	file.origin = nil
	assert.Equal(t, want, *file)
	assert.NoError(t, (&Config{}).Validate())
	assert.NoError(t, (&Config{}).Enforceable())
	assert.Empty(t, (&Config{}).Warnings())
}

func TestZeroConfigIsTheStrictest(t *testing.T) { // S3-14, S3-17, S3-21
	c := (&Config{}).WithDefaults()
	assert.False(t, c.IncludeHostEnv)
	assert.Empty(t, c.NetworkPolicy.AllowedDomains)
	assert.Nil(t, c.NetworkPolicy.AllowedPorts)
	assert.False(t, c.NetworkPolicy.AllowLocalhost)
	assert.True(t, *c.Sandbox.Enabled)
	assert.True(t, *c.Sandbox.BashAutoAllow)
	assert.False(t, c.Sandbox.AllowUnsandboxedCommands)
	assert.Equal(t, []string{"default"}, c.Sandbox.Protected())
	assert.Equal(t, ephemeral.Overlay, c.Workspace.Mode)
	assert.Equal(t, ephemeral.Memory, c.Workspace.Storage)
	assert.Equal(t, []string{"."}, c.Workspace.AllowedHostRoots)
}

func TestDefaultsOfTheSeeds(t *testing.T) {
	c := (&Config{}).WithDefaults()
	assert.Equal(t, ModeBypassPermissions, c.Agent.PermissionMode, "S2-04, S3-11")
	assert.Equal(t, "claude-sonnet-4-5-20250929", c.Agent.Model, "S2-06, S3-42")
	assert.Nil(t, c.Agent.AllowedTools, "S2-10: none is all")
	assert.Zero(t, c.Agent.MaxTurns, "S3-11")
	assert.True(t, *c.Agent.SuppressStderr, "S3-11")
	assert.True(t, *c.Agent.StopOnStructuredOutput, "S3-11")
	assert.False(t, c.Agent.IncludePartialMessages, "S2-04")
	assert.Equal(t, Limits{WallTime: Duration(time.Hour), PIDs: 1024, OpenFiles: 4096, Disk: 2 << 30, Connections: 512}, c.Limits)
}

func TestWithDefaultsKeepsWhatIsSaid(t *testing.T) {
	c := inspect(t, `
[sandbox]
bash_auto_allow = false
protected_paths = []
[limits]
wall_time = "90s"
[workspace]
allowed_host_roots = []
[agent]
allowed_tools = []
suppress_stderr = false
[agent.permissions]
file_write = "allow"
`).WithDefaults()
	assert.False(t, *c.Sandbox.BashAutoAllow)
	assert.Empty(t, c.Sandbox.Protected())
	assert.Equal(t, Duration(90*time.Second), c.Limits.WallTime)
	assert.Equal(t, []string{}, c.Workspace.AllowedHostRoots)
	assert.Equal(t, []string{}, *c.Agent.AllowedTools, "C12: empty is none")
	assert.False(t, *c.Agent.SuppressStderr)
	assert.Equal(t, Permissions{Allow, Ask, Ask}, *c.Agent.Permissions, "S0-17: what the table leaves out is ask")
}

func TestWithDefaultsCopies(t *testing.T) {
	c := inspect(t, "[agent.permissions]")
	c.WithDefaults()
	assert.Equal(t, Permissions{}, *c.Agent.Permissions)
	assert.Nil(t, c.Sandbox.Enabled)
}

func TestValidateChecksLiterals(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Version: 2}, `version = 2: this release reads version 1`},
		{Config{Workspace: ephemeral.Config{Mode: "ovrlay"}}, `workspace.mode = "ovrlay": want "overlay", "copy", "bind" or "none"; did you mean "overlay"?`},
		{Config{Sandbox: Sandbox{OptionalLayers: []Layer{"x"}}}, `sandbox.optional_layers[0] = "x": want "landlock", "seccomp", "cgroup" or "userns_lock"`},
		{Config{Limits: Limits{PIDs: -1}}, `limits.pids = -1: want zero or more`},
		{Config{Limits: Limits{WallTime: -1}}, `limits.wall_time = "-1ns": want zero or more`},
		{Config{Agent: Agent{MaxBudgetUSD: math.NaN()}}, `agent.max_budget_usd = nan: want zero or more`},
		{Config{Env: map[string]string{"HOME": "/"}}, `env.HOME = [redacted]: reserved: sandboxrun sets this variable or keeps it unset`},
		{Config{APIKey: &Source{}}, `api_key: want exactly one of a string, env, file and command`},
	} {
		assert.EqualError(t, tt.cfg.Validate(), tt.want)
	}
}

func TestSHA256(t *testing.T) {
	sum := func(text string) string { return inspect(t, text).SHA256() }
	assert.Regexp(t, `^[0-9a-f]{64}$`, sum(""))
	same := []string{
		"limits.pids = 5\nnetwork_policy.allowed_domains = [\"a.test\"]",
		"# a comment\n[network_policy]\nallowed_domains = [ 'a.test' ]\n[limits]\npids = 0x5",
		"description = \"other words\"\n[limits]\npids = 5\nwall_time = \"60m\"\n[sandbox]\nenabled = true\n[network_policy]\nallowed_domains = [\"a.test\"]",
		"extends = \"no-network\"\n[limits]\npids = 5\n[network_policy]\nallowed_domains = [\"a.test\"]",
		"api_key = \"one\"\n[limits]\npids = 5\n[network_policy]\nallowed_domains = [\"a.test\"]",
	}
	for _, text := range same[1:4] {
		assert.Equal(t, sum(same[0]), sum(text), text)
	}
	assert.NotEqual(t, sum(same[0]), sum(same[4]), "that there is a key in the file counts")
	assert.Equal(t, sum(`api_key = "one"`), sum(`api_key = "two"`), "the key itself does not")
	for _, pair := range [][2]string{
		{"limits.pids = 5", "limits.pids = 6"},
		{"", "network_policy.allowed_ports = []"},
		{"", "agent.allowed_tools = []"},
		{"", "[agent.permissions]"},
		{`env.A = "1"`, `env.A = "2"`},
		{`api_key = { env = "A" }`, `api_key = { env = "B" }`},
		{`network_policy.allow_unix_sockets = true`, `network_policy.allow_unix_sockets = ["/a"]`},
		{`agent.system_prompt = "` + longText + `a"`, `agent.system_prompt = "` + longText + `b"`},
	} {
		assert.NotEqual(t, sum(pair[0]), sum(pair[1]), pair[1])
	}
}

const longText = "a long text a long text a long text a long text a long text a long text a long text a long text a long text " +
	"a long text a long text a long text a long text a long text a long text a long text a long text a long text"

// Every key must have a row in keyInfos, and every row a key: the schema, the checks and the hints rely on it.
func TestKeyInfosAndTypesAgree(t *testing.T) {
	seen := map[string]bool{}
	typeKeys("", reflect.TypeFor[Config](), func(key string) { seen[key] = true })
	for key := range seen {
		assert.NotEmpty(t, infoOf(key).doc, "keyInfos has nothing about %s", key)
	}
	for _, info := range keyInfos {
		if info.doc != "" {
			assert.True(t, seen[info.key], "keyInfos has %s, which is no key", info.key)
		}
	}
	assert.Greater(t, len(seen), 80)
}

func typeKeys(key string, rt reflect.Type, visit func(string)) {
	for rt.Kind() == reflect.Pointer {
		rt = rt.Elem()
	}
	switch {
	case rt.Kind() == reflect.Struct && hasTables(rt):
		for i := range rt.NumField() {
			if name := tomlName(rt.Field(i)); name != "" {
				visit(joinKey(key, name))
				typeKeys(joinKey(key, name), rt.Field(i).Type, visit)
			}
		}
	case rt.Kind() == reflect.Slice && hasTables(rt.Elem()):
		typeKeys(key+"[]", rt.Elem(), visit)
	}
}

// The rows of the design's table of defaults, as a policy would have to say them.
func TestLeavesOfTheDefaults(t *testing.T) {
	texts := map[string]string{}
	for _, l := range leaves((&Config{}).WithDefaults()) {
		texts[l.key] = l.text()
	}
	assert.Equal(t, map[string]string{
		"version": "1", "sandbox.enabled": "true", "sandbox.backend": `"auto"`, "sandbox.protected_paths": `["default"]`,
		"sandbox.bash_auto_allow": "true", "sandbox.agent_sandbox": `"auto"`, "sandbox.run_as": `"auto"`,
		"limits.wall_time": `"1h"`, "limits.pids": "1024", "limits.open_files": "4096", "limits.disk": `"2GiB"`, "limits.connections": "512",
		"workspace.mode": `"overlay"`, "workspace.allowed_host_roots": `["."]`, "workspace.storage": `"memory"`,
		"agent.kind": `"claude-code"`, "agent.model": `"claude-sonnet-4-5-20250929"`, "agent.permission_mode": `"bypassPermissions"`,
		"agent.stop_on_structured_output": "true", "agent.suppress_stderr": "true",
		"model.source": `"upstream"`, "model.base_url": `"https://api.anthropic.com"`,
	}, texts)
}

func TestModelPathStartsAtItsFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/sub/base.toml", "version = 1\n[model]\nsource = \"script\"\npath = \"turns.toml\"\n")
	write(t, dir+"/top.toml", "version = 1\nextends = \"sub/base.toml\"\n")
	cfg, err := Load(dir + "/top.toml")
	require.NoError(t, err)
	assert.Equal(t, dir+"/sub/turns.toml", cfg.ModelPath())
	assert.Equal(t, dir+"/sub", cfg.Dir("model.path"))
	assert.Equal(t, dir, cfg.Dir("api_key"))
	cfg, err = LoadWith(dir+"/top.toml", `model.path="here.toml"`)
	require.NoError(t, err)
	assert.Equal(t, "here.toml", cfg.ModelPath())
	assert.Empty(t, (&Config{}).ModelPath())
	assert.Equal(t, "x", (&Config{Model: Model{Path: "x"}}).ModelPath())
}
