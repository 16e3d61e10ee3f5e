package model

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame is a line of the CLI's stream-json.
type frame struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Message struct {
		Content wireContent `json:"content"`
	} `json:"message"`
	Event struct {
		Type  string `json:"type"`
		Delta struct {
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		} `json:"delta"`
	} `json:"event"`
	Response struct {
		RequestID string `json:"request_id"`
		Subtype   string `json:"subtype"`
		Response  json.RawMessage
	} `json:"response"`
	Result         string `json:"result"`
	IsError        bool   `json:"is_error"`
	APIErrorStatus int    `json:"api_error_status"`
	Usage          struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
	} `json:"usage"`
	raw string
}

// claude returns the path of the CLI under test.
func claude(t *testing.T) string {
	path := os.Getenv("SANDBOXRUN_CLAUDE")
	if path == "" {
		path, _ = exec.LookPath("claude")
	}
	if path == "" && os.Getenv("SANDBOXRUN_TEST_REQUIRE") == "all" {
		t.Fatal("no claude: set SANDBOXRUN_CLAUDE to the CLI's path")
	}
	if path == "" {
		t.Skip("no claude on PATH and no SANDBOXRUN_CLAUDE")
	}
	return path
}

// agent is a running CLI that talks to a scripted model.
type agent struct {
	t      *testing.T
	server *Server
	dir    string // its working directory
	env    []string
	args   []string

	stdin  io.WriteCloser
	frames chan frame
	seen   []frame
}

// newAgent prepares a CLI against the script; its network is the loopback address of the script's server and no other.
func newAgent(t *testing.T, script string) *agent {
	t.Helper()
	claude(t)
	t.Parallel()
	parsed, err := ParseScript("x.toml", []byte(script))
	require.NoError(t, err)
	a := &agent{t: t, server: &Server{Script: parsed}, dir: t.TempDir()}
	a.env = a.environment(a.listen(a.server))
	return a
}

// listen serves h on loopback and returns its address.
func (a *agent) listen(h http.Handler) string {
	web := httptest.NewUnstartedServer(h)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Start()
	a.t.Cleanup(web.Close)
	return web.URL
}

// environment is built from nothing: no variable of the host, no credential, no way out.
func (a *agent) environment(api string) []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + a.t.TempDir(), "NO_PROXY=127.0.0.1", "IS_SANDBOX=1",
		"ANTHROPIC_BASE_URL=" + api, "ANTHROPIC_API_KEY=sk-ant-fake-placeholder",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_TMPDIR=" + a.t.TempDir(),
		// Anything that is not loopback goes to a port where nobody listens.
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1",
	}
}

func (a *agent) start() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Minute)
	args := append([]string{
		"--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--setting-sources=", "--strict-mcp-config", "--permission-mode=bypassPermissions",
	}, a.args...)
	cmd := exec.CommandContext(ctx, claude(a.t), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = a.dir, a.env, a.t.Output()
	stdout, err := cmd.StdoutPipe()
	require.NoError(a.t, err)
	a.stdin, err = cmd.StdinPipe()
	require.NoError(a.t, err)
	require.NoError(a.t, cmd.Start())
	a.frames = make(chan frame, 1000)
	go func() {
		defer close(a.frames)
		lines := bufio.NewReaderSize(stdout, 1<<20)
		for {
			line, err := lines.ReadString('\n')
			var f frame
			if json.Unmarshal([]byte(line), &f) == nil {
				f.raw = line
				a.frames <- f
			}
			if err != nil {
				return
			}
		}
	}()
	a.t.Cleanup(func() {
		cancel()
		for range a.frames {
		}
		cmd.Wait() // its status says less than its result frame
	})
}

func (a *agent) send(v any) {
	_, err := a.stdin.Write(append(compactJSON(v), '\n'))
	require.NoError(a.t, err)
}

func (a *agent) prompt(text string) {
	a.send(object{"type": "user", "message": object{"role": "user", "content": text}, "client_composed": true})
}

// until reads frames up to the first that is wanted.
func (a *agent) until(what string, want func(frame) bool) frame {
	a.t.Helper()
	for f := range a.frames {
		a.seen = append(a.seen, f)
		if want(f) {
			return f
		}
	}
	require.FailNow(a.t, "the CLI ended before "+what, a.transcript())
	return frame{}
}

func (a *agent) result() frame {
	a.t.Helper()
	return a.until("its result", func(f frame) bool { return f.Type == "result" })
}

func (a *agent) transcript() string {
	var b strings.Builder
	for _, f := range a.seen {
		b.WriteString(clip(f.raw, 300) + "\n")
	}
	return b.String()
}

// ask runs the CLI for one prompt and returns its result.
func (a *agent) ask(prompt string) frame {
	a.t.Helper()
	a.start()
	a.prompt(prompt)
	return a.result()
}
