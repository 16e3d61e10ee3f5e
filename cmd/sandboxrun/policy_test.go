package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandboxrun/sandboxrun/isolation"
)

func policy(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = runPolicy(args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestPolicyListsThePresets(t *testing.T) {
	status, out, errs := policy("list")
	assert.Equal(t, 0, status)
	assert.Empty(t, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, len(isolation.Presets()))
	assert.Equal(t, "api-only    the model API only; the workspace is a copy-on-write view", lines[0])
	assert.True(t, strings.HasSuffix(lines[5], "(not enforced yet)"), lines[5])
}

func TestPolicyShowsTheAnnotatedFile(t *testing.T) {
	for _, name := range isolation.Presets() {
		text, err := isolation.PresetText(name)
		require.NoError(t, err)
		status, out, errs := policy("show", name)
		assert.Equal(t, 0, status)
		assert.Equal(t, string(text), out)
		assert.Empty(t, errs)
	}
	status, out, errs := policy("show", "api-onyl")
	assert.Equal(t, 2, status)
	assert.Empty(t, out)
	assert.Equal(t, "sandboxrun: no preset is called \"api-onyl\"; the presets are api-only, ci, dev, no-network, project, strict; did you mean \"api-only\"?\n"+
		"sandboxrun: hint: write a policy file with a slash or .toml: ./api-onyl\n", errs)
}

func TestPolicyCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("good.toml", []byte("version = 1\n"), 0o644))
	require.NoError(t, os.WriteFile("warn.toml", []byte("version = 1\nsandbox.run_as = \"root\"\n"), 0o644))
	require.NoError(t, os.WriteFile("bad.toml", []byte("version = 1\nlimits.pids = 0\nsandbx = 1\n"), 0o644))
	require.NoError(t, os.WriteFile("later.toml", []byte("version = 1\nlimits.memory = \"1GiB\"\n"), 0o644))

	status, out, errs := policy("check", "good.toml", "./good.toml", "api-only")
	assert.Equal(t, 0, status)
	assert.Equal(t, "good.toml: ok\n./good.toml: ok\napi-only: ok\n", out)
	assert.Empty(t, errs)

	status, out, errs = policy("check", "warn.toml")
	assert.Equal(t, 0, status)
	assert.Equal(t, "warn.toml: ok\n", out)
	assert.Equal(t, "sandboxrun: warn.toml: warning: sandbox.run_as = \"root\": a kernel bug is the only thing between the run and root\n", errs)

	status, out, errs = policy("check", "bad.toml", "good.toml", "later.toml")
	assert.Equal(t, 2, status)
	assert.Equal(t, "good.toml: ok\n", out)
	assert.Equal(t, `sandboxrun: bad.toml:2: limits.pids = 0: want a number above zero
sandboxrun: hint: remove the key for the default
sandboxrun: bad.toml:3: sandbx = 1: unknown key; did you mean "sandbox"?
sandboxrun: later.toml:2: limits.memory = "1GiB": not enforced yet; remove the key (limits.pids and limits.disk bound the run)
`, errs)
}

func TestPolicyExplain(t *testing.T) {
	cfg, err := isolation.Inspect("strict")
	require.NoError(t, err)
	status, out, errs := policy("explain", "strict")
	assert.Equal(t, 0, status)
	assert.Equal(t, isolation.Explain(cfg), out)
	assert.Empty(t, errs)

	for _, args := range [][]string{{"explain", "--set", "limits.pids=7", "api-only"}, {"explain", "api-only", "--set=limits.pids=7"}} {
		status, out, _ = policy(args...)
		assert.Equal(t, 0, status)
		assert.Regexp(t, `(?m)^  limits\.pids = 7 +--set$`, out)
	}
	status, _, errs = policy("explain", "api-only", "--set", "limits.pids=none")
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "sandboxrun: --set limits.pids=none: limits.pids: ")
	assert.Contains(t, errs, "sandboxrun: hint: quote a string")
}

func TestPolicyInit(t *testing.T) {
	status, out, _ := policy("init")
	assert.Equal(t, 0, status)
	assert.Equal(t, isolation.Starter, out)

	path := filepath.Join(t.TempDir(), "sandboxrun.toml")
	status, out, errs := policy("init", path)
	assert.Equal(t, 0, status)
	assert.Empty(t, out+errs)
	status, out, _ = policy("check", path)
	assert.Equal(t, 0, status)
	assert.Equal(t, path+": ok\n", out)

	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o644))
	status, _, errs = policy("init", path)
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "sandboxrun: "+path+": exists already\nsandboxrun: hint: ")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(kept))
	status, _, errs = policy("init", filepath.Join(path, "below"))
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "sandboxrun: write policy: open ")
}

func TestPolicySchema(t *testing.T) {
	text, err := isolation.Schema()
	require.NoError(t, err)
	status, out, _ := policy("schema")
	assert.Equal(t, 0, status)
	assert.Equal(t, string(text), out)
}

func TestPolicyUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "policy needs a command"},
		{[]string{"shwo"}, `policy has no command "shwo"`},
		{[]string{"show"}, "wrong number of arguments for policy show"},
		{[]string{"show", "dev", "ci"}, "wrong number of arguments for policy show"},
		{[]string{"check"}, "wrong number of arguments for policy check"},
		{[]string{"list", "x"}, "wrong number of arguments for policy list"},
		{[]string{"schema", "--set", "a=1"}, "flag provided but not defined: -set"},
		{[]string{"explain", "dev", "--set"}, "flag needs an argument: -set"},
	} {
		status, out, errs := policy(tt.args...)
		assert.Equal(t, 2, status)
		assert.Empty(t, out)
		assert.True(t, strings.HasPrefix(errs, "sandboxrun: "+tt.want+"\nusage: sandboxrun policy COMMAND\n"), errs)
	}
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}, {"list", "-h"}} {
		status, out, errs := policy(args...)
		assert.Equal(t, 0, status)
		assert.Equal(t, policyHelp, out)
		assert.Empty(t, errs)
	}
}

func TestPolicySaysThatItCannotWrite(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"show", "dev"}, {"check", "project"}, {"explain", "dev"}, {"init"}, {"schema"}, {"help"}} {
		var errs bytes.Buffer
		assert.Equal(t, 125, runPolicy(args, fullDisk{}, &errs), args)
		assert.Contains(t, errs.String(), "sandboxrun: no space left\n", args)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }
