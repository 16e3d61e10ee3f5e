package adapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const realKey = "sk-ant-api03-CANARY-the-real-key-which-must-stay-outside"

// upstream stands in for the model API, outside, and remembers who came with which key.
type upstream struct {
	model model.Server
	mu    sync.Mutex
	keys  map[string]int
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.keys[r.Header.Get("X-Api-Key")]++
	u.mu.Unlock()
	u.model.ServeHTTP(w, r)
}

// The real CLI works with a real key that nothing inside can find: not in its environment, not in any file, not in any
// process that it may look into; only the upstream sees it.
func TestTheKeyStaysOutside(t *testing.T) {
	search := `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'; grep -rs "CANARY-the-[r]eal-key" /home /tmp /etc /run /opt/agent/*.pem /workspace; echo searched`
	script, err := json.Marshal(map[string]any{"turns": []any{
		map[string]any{"tools": []any{map[string]any{"name": "Bash", "input": map[string]string{"command": search}}}},
		map[string]any{"text": "done"},
	}})
	require.NoError(t, err)
	u := &upstream{keys: map[string]int{}}
	u.model.Script, err = model.ParseScript("search.json", script)
	require.NoError(t, err)
	server := httptest.NewServer(u)
	defer server.Close()

	cfg, err := isolation.LoadWith("api-only", fmt.Sprintf("model.base_url=%q", server.URL))
	require.NoError(t, err)
	key := isolation.Source{Literal: isolation.NewSecret(realKey)}
	cfg.APIKey = &key
	var events bytes.Buffer
	res, err := adapter.Run(t.Context(), cfg, adapter.Task{
		Prompt: "search", Workspace: t.TempDir(), CLI: requireCLI(t),
		Events: func(e adapter.Event) { events.Write(e.Raw) },
	})
	require.NoError(t, err)
	defer res.Close()
	assert.Contains(t, events.String(), "searched")
	assert.Contains(t, events.String(), isolation.ModelPlaceholder, "the search must be able to find the placeholder")
	assert.NotContains(t, events.String(), realKey)
	assert.NotContains(t, res.Plan.String(), realKey)
	assert.Equal(t, []string{realKey}, slices.Collect(maps.Keys(u.keys)), "the upstream got the real key, and no other")
}

func TestRunFailsBeforeItStarts(t *testing.T) {
	cfg, err := isolation.Load("api-only")
	require.NoError(t, err)
	t.Setenv("ANTHROPIC_API_KEY", "")
	_, err = adapter.Run(t.Context(), cfg, adapter.Task{Prompt: "x", Workspace: t.TempDir(), CLI: requireCLI(t)})
	assert.ErrorIs(t, err, adapter.ErrNoKey)

	var notFound *claude.NotFoundError
	_, err = adapter.Run(t.Context(), cfg, adapter.Task{Prompt: "x", CLI: "/no/such/claude"})
	assert.ErrorAs(t, err, &notFound)

	_, err = isolation.LoadWith("api-only", `model.source="script"`)
	assert.Error(t, err, "a script needs a path")
}

// A program that is not the CLI, or dies, is a process error with what it said last.
func TestRunReportsADyingCLI(t *testing.T) {
	cfg, err := isolation.LoadWith("api-only", `model.source="script"`, `model.path="testdata/greeting.toml"`)
	require.NoError(t, err)
	fake := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\necho 'cannot go on: token=sk-ant-api03-abcdefghijklmnop' >&2\nexit 3\n"), 0o755))
	_, err = adapter.Run(t.Context(), cfg, adapter.Task{Prompt: "x", Workspace: t.TempDir(), CLI: fake})
	var process *claude.ProcessError
	require.ErrorAs(t, err, &process)
	assert.Equal(t, 3, process.ExitCode)
	assert.Contains(t, process.Stderr, "cannot go on")
	assert.NotContains(t, process.Stderr, "abcdefghijklmnop")
}

// When the caller gives up, so does the run.
func TestRunEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "slow.toml")
	require.NoError(t, os.WriteFile(script, []byte("[[turns]]\ntext = \"late\"\ndelay = \"60s\"\n"), 0o644))
	cfg, err := isolation.LoadWith("api-only", `model.source="script"`, fmt.Sprintf("model.path=%q", script))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := adapter.Run(ctx, cfg, adapter.Task{
		Prompt: "x", Workspace: dir, CLI: requireCLI(t),
		Events: func(e adapter.Event) {
			if e.Kind == claude.KindInit {
				cancel()
			}
		},
	})
	require.Error(t, err)
	require.NotNil(t, res)
	require.NoError(t, res.Close())
}

func TestExecKeepsOutputAndChanges(t *testing.T) {
	cfg, err := isolation.Load("no-network")
	require.NoError(t, err)
	var out, patch bytes.Buffer
	res, err := adapter.Exec(t.Context(), cfg, adapter.ExecTask{
		Args: []string{"sh", "-c", "cat > file; cat file"}, Workspace: t.TempDir(), Stdin: strings.NewReader("hello\n"), Stdout: &out,
	})
	require.NoError(t, err)
	defer res.Close()
	assert.Equal(t, "hello\n", out.String())
	_, err = res.WritePatch(&patch)
	require.NoError(t, err)
	assert.Contains(t, patch.String(), "+hello")
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A run whose audit cannot be written does not go on unwatched.
func TestRunEndsWhenItsAuditCannotBeWritten(t *testing.T) {
	cfg, err := isolation.Load("no-network")
	require.NoError(t, err)
	start := time.Now()
	res, err := adapter.Exec(t.Context(), cfg, adapter.ExecTask{
		Args: []string{"sh", "-c", "curl -s http://denied.test/; sleep 60"}, Workspace: t.TempDir(), Audit: fullDisk{},
	})
	require.ErrorIs(t, err, errFull)
	defer res.Close()
	assert.Less(t, time.Since(start), 30*time.Second)
	assert.Equal(t, isolation.Canceled, res.Exit.Cause)
}

// requireCLI returns the real CLI; without one the test is skipped, unless nothing may be.
func requireCLI(t *testing.T) string {
	if path := cli(); path != "" {
		return path
	}
	if os.Getenv("SANDBOXRUN_TEST_REQUIRE") == "all" {
		t.Fatal("SANDBOXRUN_CLAUDE names no Claude Code CLI, and nothing may be skipped")
	}
	t.Skip("SANDBOXRUN_CLAUDE names no Claude Code CLI")
	return ""
}
