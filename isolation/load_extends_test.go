package isolation

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExtendsMergesTablesAndReplacesTheRest(t *testing.T) {
	dir := t.TempDir()
	base, top := filepath.Join(dir, "lib", "base.toml"), filepath.Join(dir, "top.toml")
	write(t, base, `version = 1
description = "the base"
extends = "no-network"
pass_env = ["A", "B"]
api_key = { file = "key" }
[env]
X = "1"
Y = "2"
[network_policy]
allowed_domains = ["a.test", "b.test"]
denied_domains = ["c.test"]
[limits]
pids = 5
`)
	write(t, top, `version = 1
extends = "lib/base.toml"
pass_env = ["C"]
api_key = { env = "KEY" }
env.Y = "3"
[network_policy]
allowed_domains = []
[limits]
open_files = 6
`)
	cfg, err := Load(top)
	require.NoError(t, err)
	assert.Equal(t, []string{"C"}, cfg.PassEnv)
	assert.Equal(t, map[string]string{"X": "1", "Y": "3"}, cfg.Env)
	assert.Equal(t, "env", cfg.APIKey.kind(), "a source is one value")
	assert.Empty(t, cfg.NetworkPolicy.AllowedDomains)
	assert.Len(t, cfg.NetworkPolicy.DeniedDomains, 1)
	assert.Equal(t, 5, cfg.Limits.PIDs)
	assert.Equal(t, 6, cfg.Limits.OpenFiles)
	assert.Empty(t, cfg.Description, "a description is about one file")
	assert.Equal(t, "lib/base.toml", cfg.Extends)
	assert.Equal(t, []string{top, base, "no-network"}, cfg.Files())
	assert.Equal(t, base+":7", cfg.originOf("env.X"))
	assert.Equal(t, top+":5", cfg.originOf("env.Y"))
	assert.Equal(t, "no-network:15", cfg.originOf("workspace.mode"))
	assert.Equal(t, "default", cfg.originOf("workspace.storage"))
}

func TestExtendsErrors(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("self.toml"), "version = 1\nextends = \"./self.toml\"\n")
	write(t, path("a.toml"), "version = 1\nextends = \"b.toml\"\n")
	write(t, path("b.toml"), "version = 1\n\nextends = \"sub/c.toml\"\n")
	write(t, path("sub/c.toml"), "version = 1\nextends = \"../a.toml\"\n")
	write(t, path("typo.toml"), "version = 1\nextends = \"strct\"\n")
	write(t, path("gone.toml"), "version = 1\nextends = \"gone/gone.toml\"\n")
	write(t, path("kind.toml"), "version = 1\nextends = [\"strict\"]\n")
	write(t, path("empty.toml"), "version = 1\nextends = \"\"\n")
	write(t, path("old.toml"), "version = 0\n")
	write(t, path("onold.toml"), "version = 1\nextends = \"old.toml\"\n")
	write(t, path("bad.toml"), "version = 1\n[limits]\npids = 0\n")
	write(t, path("onbad.toml"), "version = 1\nextends = \"bad.toml\"\n[agent]\nkind = 1\n")
	write(t, path("unfit.toml"), "version = 1\nextends = \"api-only\"\nsandbox.enabled = false\n")
	for i := range maxExtends {
		write(t, path(fmt.Sprintf("d%d.toml", i)), fmt.Sprintf("version = 1\nextends = \"d%d.toml\"\n", i+1))
	}
	write(t, path(fmt.Sprintf("d%d.toml", maxExtends)), "version = 1\n")
	for name, want := range map[string]string{
		"self.toml":  path("self.toml") + `:2: extends = "./self.toml": the chain of extends is a cycle: ` + path("self.toml") + " -> " + path("self.toml"),
		"a.toml":     path("sub/c.toml") + `:2: extends = "../a.toml": the chain of extends is a cycle: ` + path("a.toml") + " -> " + path("b.toml") + " -> " + path("sub/c.toml") + " -> " + path("a.toml"),
		"typo.toml":  path("typo.toml") + `:2: extends = "strct": no preset is called "strct"; the presets are api-only, ci, dev, no-network, project, strict; did you mean "strict"?`,
		"gone.toml":  path("gone.toml") + `:2: extends = "gone/gone.toml": read policy: open ` + path("gone/gone.toml") + ": no such file or directory",
		"kind.toml":  path("kind.toml") + `:2: extends = ["strict"]: want the name of a preset or a file`,
		"empty.toml": path("empty.toml") + `:2: extends = "": want the name of a preset or a file`,
		"onold.toml": path("old.toml") + ":1: version = 0: this release reads version 1",
		"onbad.toml": path("onbad.toml") + ":4: agent.kind = 1: want a string, not an integer\n" + path("bad.toml") + ":3: limits.pids = 0: want a number above zero",
		"unfit.toml": path("unfit.toml") + ":3: sandbox.enabled = false: without a sandbox nothing enforces the network policy",
	} {
		_, err := Inspect(path(name))
		assert.EqualError(t, err, want)
	}
	_, err := Inspect(path("d0.toml"))
	assert.ErrorContains(t, err, "the chain of extends is longer than 8: "+path("d0.toml")+" -> ")
	_, err = Inspect(path("d1.toml"))
	assert.NoError(t, err)
}

func TestMergeDoesNotWriteIntoDocuments(t *testing.T) {
	for range 2 {
		cfg, err := LoadWith("api-only", `agent.max_turns=3`, `network_policy.hosts={"a.test"="::1"}`, `network_policy.hosts."b.test"="::1"`)
		require.NoError(t, err)
		assert.Len(t, cfg.NetworkPolicy.Hosts, 2)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"allowed_domains", "denied_domains", "env", "mode"}
	for in, want := range map[string]string{
		"allowed_domain": "allowed_domains", "alowed_domians": "allowed_domains", "evn": "env", "mod": "mode", "modus": "", "x": "", "": "", "allow": "",
	} {
		assert.Equal(t, want, nearest(in, words), in)
	}
}
