package isolation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestSourceResolve(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), "from-file\n")
	write(t, filepath.Join(dir, "crlf"), "from-file\r\n")
	write(t, filepath.Join(dir, "empty"), "\n")
	write(t, filepath.Join(dir, "lines"), "one\ntwo\n")
	write(t, filepath.Join(dir, "huge"), strings.Repeat("x", maxSecret+1))
	env := lookup(map[string]string{"KEY": "from-env", "EMPTY": "", "HEADER": "a\r\nx: y"})
	for _, tt := range []struct {
		source    Source
		want, err string
	}{
		{Source{Literal: NewSecret("plain")}, "plain", ""},
		{Source{Env: "KEY"}, "from-env", ""},
		{Source{File: "key"}, "from-file", ""},
		{Source{File: "crlf"}, "from-file", ""},
		{Source{File: filepath.Join(dir, "key")}, "from-file", ""},
		{Source{Command: []string{"cat", "key"}}, "from-file", ""},
		{Source{Command: []string{"printf", "%s", "$HOME; *"}}, "$HOME; *", ""},
		{Source{Env: "NONE"}, "", "the variable NONE is not set"},
		{Source{Env: "EMPTY"}, "", "the variable EMPTY gives an empty secret"},
		{Source{Env: "HEADER"}, "", "the variable HEADER gives a secret with control characters"},
		{Source{File: "empty"}, "", "the file empty gives an empty secret"},
		{Source{File: "lines"}, "", "the file lines gives a secret with control characters"},
		{Source{File: "huge"}, "", "is larger than 64 KiB"},
		{Source{File: "none"}, "", "read secret: open " + filepath.Join(dir, "none")},
		{Source{Command: []string{"false"}}, "", "run secret command false: exit status 1"},
		{Source{Command: []string{"/no/such/program"}}, "", "run secret command /no/such/program: "},
		{Source{Command: []string{"sh", "-c", "echo hunter2 >&2; exit 3"}}, "", "exit status 3"},
		{Source{Command: []string{"head", "-c", "70000", "/dev/zero"}}, "", "run secret command head"},
		{Source{}, "", "exactly one"},
		{Source{Env: "KEY", File: "key"}, "", "exactly one"},
	} {
		got, err := tt.source.Resolve(t.Context(), env, dir)
		assert.Equal(t, tt.want, got.Reveal())
		if tt.err == "" {
			assert.NoError(t, err)
		} else if assert.ErrorContains(t, err, tt.err) {
			assert.NotContains(t, err.Error(), "hunter2")
		}
	}
}

func TestSourceCommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Source{Command: []string{"sleep", "60"}}.Resolve(ctx, os.LookupEnv, "")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestResolveAPIKey(t *testing.T) { // S3-34
	host := lookup(map[string]string{"ANTHROPIC_API_KEY": "host", "OTHER": "other"})
	for _, tt := range []struct {
		policy string
		env    func(string) (string, bool)
		want   string
		fails  bool
	}{
		{"", host, "host", false},
		{"", lookup(nil), "", false},
		{"", lookup(map[string]string{"ANTHROPIC_API_KEY": ""}), "", false},
		{`api_key = "policy"`, host, "policy", false},
		{`api_key = { env = "OTHER" }`, host, "other", false},
		{`api_key = { env = "NONE" }`, host, "", true},
	} {
		key, err := inspect(t, tt.policy).ResolveAPIKey(t.Context(), tt.env)
		assert.Equal(t, tt.want, key.Reveal(), tt.policy)
		assert.Equal(t, tt.fails, err != nil, tt.policy)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p.toml"), "version = 1\napi_key = { file = \"key\" }\n")
	write(t, filepath.Join(dir, "key"), "near\n")
	cfg, err := Load(filepath.Join(dir, "p.toml"))
	require.NoError(t, err)
	key, err := cfg.ResolveAPIKey(t.Context(), host)
	require.NoError(t, err)
	assert.Equal(t, "near", key.Reveal(), "the file is next to the policy")
}
