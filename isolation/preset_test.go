package isolation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandboxrun/sandboxrun/network"
)

func TestPresets(t *testing.T) {
	assert.Equal(t, []string{"api-only", "ci", "dev", "no-network", "project", "strict"}, Presets())
	enforced := map[string]bool{"api-only": true, "no-network": true, "project": true}
	for _, name := range Presets() {
		cfg, err := Inspect(name)
		require.NoError(t, err, name)
		assert.NotEmpty(t, cfg.Description, name)
		_, err = Load(name)
		assert.Equal(t, enforced[name], err == nil, "%s: %v", name, err)
		text, err := PresetText(name)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "# "), "%s says what it is for", name)
		if !enforced[name] {
			assert.Contains(t, string(text), "does not enforce", name)
		}
	}
	_, err := PresetText("api")
	assert.ErrorContains(t, err, `no preset is called "api"`)
}

func TestPresetsGrantWhatTheySay(t *testing.T) {
	load := func(name string) *Config {
		cfg, err := Inspect(name)
		require.NoError(t, err)
		return cfg
	}
	assert.Equal(t, (&Config{}).SHA256(), load("no-network").SHA256(), "no-network is the zero policy") // S3-18
	api := load("api-only")                                                                             // S3-18, S3-58
	assert.Equal(t, "api.anthropic.com", ruleList(api.NetworkPolicy.AllowedDomains))
	assert.False(t, api.IncludeHostEnv)
	assert.True(t, api.Sandbox.IsEnabled())
	dev := load("dev") // S3-41, S3-58
	assert.Equal(t, "*", ruleList(dev.NetworkPolicy.AllowedDomains))
	assert.True(t, dev.IncludeHostEnv)
	assert.False(t, dev.Sandbox.IsEnabled())
	project := load("project")
	for _, host := range []string{"registry.npmjs.org", "pypi.org", "proxy.golang.org", "static.crates.io", "github.com", "gitlab.com", "api.anthropic.com", "objects.githubusercontent.com"} {
		h, err := network.ParseHost(host)
		require.NoError(t, err)
		assert.Equal(t, network.Allow, project.NetworkPolicy.Decide(h, 443).Verdict, host)
		assert.Equal(t, network.Deny, project.NetworkPolicy.Decide(h, 22).Verdict, host)
	}
	strict := load("strict")
	assert.Equal(t, StrictSyscalls, strict.Sandbox.Syscalls)
	assert.Equal(t, "api.anthropic.com", ruleList(strict.NetworkPolicy.AllowedDomains))
	ci := load("ci")
	assert.Equal(t, Replay, ci.Model.Source)
	assert.Empty(t, ci.NetworkPolicy.AllowedDomains)
}

func TestStarterIsAPolicy(t *testing.T) {
	cfg, err := Parse("sandboxrun.toml", []byte(Starter))
	require.NoError(t, err)
	assert.Empty(t, cfg.Warnings())
	// The keys that it shows in comments exist too.
	uncommented := strings.NewReplacer("# api_key", "api_key", "# CI", "CI", "# denied", "denied", "# allowed", "allowed", "# readable", "readable",
		"# writable", "writable", "# pids", "pids", "# disk ", "disk ", "# model", "model", "# max", "max", "# disallowed", "disallowed").Replace(Starter)
	cfg, err = Parse("sandboxrun.toml", []byte(uncommented))
	require.NoError(t, err)
	assert.Equal(t, 50, cfg.Agent.MaxTurns)
	assert.Equal(t, "1", cfg.Env["CI"])
}

func BenchmarkLoadPreset(b *testing.B) {
	for _, name := range []string{"no-network", "api-only", "project"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
