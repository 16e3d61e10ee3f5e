package claude

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandboxrun/sandboxrun/network/model"
)

// TestMain looks for goroutines that a session has left behind; for those of the conversations synctest does.
func TestMain(m *testing.M) {
	status := m.Run()
	deadline := time.Now().Add(10 * time.Second)
	for stacks := sessions(); status == 0 && stacks != ""; stacks = sessions() {
		if time.Now().After(deadline) {
			os.Stderr.WriteString("goroutines left behind:\n" + stacks)
			status = 1
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(status)
}

func sessions() string {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	if !strings.Contains(all, "claude.(*Session)") {
		return ""
	}
	return all
}

// cli is a real Claude Code CLI, with an environment made from nothing and a scripted model on a loopback port.
type cli struct {
	cmd    *exec.Cmd
	stderr Tail
	model  *model.Server
	dir    string
	Pipes
}

func cliPath(t *testing.T) string {
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

func startCLI(t *testing.T, opts Options, turns []model.Turn, env ...string) *cli {
	c := &cli{model: &model.Server{Script: &model.Script{Turns: turns}}, dir: t.TempDir()}
	web := httptest.NewServer(c.model)
	c.cmd = exec.Command(cliPath(t), opts.Args()...)
	c.cmd.Dir, c.cmd.Stderr = c.dir, &c.stderr
	c.cmd.Env = append([]string{
		"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "CLAUDE_CODE_TMPDIR=" + t.TempDir(),
		"ANTHROPIC_BASE_URL=" + web.URL, "ANTHROPIC_API_KEY=sk-ant-fake",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_SDK_READS_SESSION_STATE=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "IS_SANDBOX=1",
		// Whatever is not loopback goes to a port where nobody listens.
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}, env...)
	var err error
	c.Stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	c.Stdout, err = c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		web.CloseClientConnections()
		web.Close()
		if t.Failed() {
			t.Log(c.stderr.String())
		}
	})
	return c
}

func openCLI(t *testing.T, opts Options, turns []model.Turn, env ...string) (*Session, *cli) {
	c := startCLI(t, opts, turns, env...)
	s, err := Open(t.Context(), c, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, c
}

func says(text string) model.Turn {
	return model.Turn{Blocks: []model.Block{{Type: "text", Text: text}}}
}

func calls(tool, input string) model.Turn {
	return model.Turn{Blocks: []model.Block{{Type: "tool_use", Name: tool, Input: json.RawMessage(input)}}}
}

// fold takes a whole turn.
func fold(t *testing.T, events func(func(Event, error) bool)) (kinds []Kind, sum Result, last error) {
	for e, err := range events {
		if err != nil {
			assert.Nil(t, last, "one error")
			last = err
			continue
		}
		assert.NotEqual(t, KindUnknown, e.Kind, "%s", e.Raw)
		kinds = append(kinds, e.Kind)
		sum.Add(e)
	}
	return kinds, sum, last
}

func writeSettings(t *testing.T, settings string) string {
	path := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(settings), 0o600))
	return path
}

const goodSettings = `{"cleanupPeriodDays":7,"env":{"A":"b"},"permissions":{"deny":["WebFetch"]},
	"sandbox":{"enabled":false,"allowUnsandboxedCommands":false,"network":{"allowedDomains":[],"strictAllowlist":true}}}`

func TestCLITurns(t *testing.T) {
	opts := Options{
		PermissionMode: ModeBypassPermissions, AllowedTools: []string{"Bash", "Read"}, Model: "claude-sonnet-4-5-20250929",
		SystemPrompt: "You are a test.", AppendSystemPrompt: "Quite so.",
		SettingsPath: writeSettings(t, goodSettings), Settings: json.RawMessage(goodSettings),
	}
	s, c := openCLI(t, opts, []model.Turn{
		says("Hello, 世界"), calls("Bash", `{"command":"echo $A$((40+2))","description":"add"}`), says("it said b42"),
	})
	assert.Regexp(t, `^\d+\.\d+\.\d+`, s.Info().Version)
	assert.Equal(t, ModeBypassPermissions, s.Info().PermissionMode)
	assert.True(t, s.Info().HookOnFailure)

	var init *Init
	for e, err := range s.Turn(t.Context(), "/cost @secret") {
		require.NoError(t, err)
		if e.Kind == KindInit {
			init = e.Init
		}
	}
	require.NotNil(t, init)
	assert.Equal(t, []string{"Bash", "Read"}, init.Tools)
	assert.Empty(t, init.MCPServers)
	assert.Equal(t, c.dir, init.Cwd)

	var sum Result
	var toolResult string
	var kinds []Kind
	for e, err := range s.Turn(t.Context(), "add") {
		require.NoError(t, err)
		sum.Add(e)
		kinds = append(kinds, e.Kind)
		if e.Kind == KindToolResult {
			toolResult = e.Text
		}
	}
	assert.Equal(t, []Kind{KindState, KindLifecycle, KindLifecycle, KindInit, KindToolUse, KindToolResult, KindText,
		KindResult, KindLifecycle, KindState}, kinds)
	assert.Equal(t, "b42", toolResult)
	assert.Equal(t, "it said b42", sum.Text)
	assert.Equal(t, 2, sum.NumTurns)
	assert.Positive(t, sum.CostUSD)
	assert.Positive(t, sum.Usage.Output)

	require.NoError(t, s.Close())
	require.NoError(t, c.cmd.Wait(), "exit status 0")
	require.NoError(t, c.model.Err())
	assert.Equal(t, "/cost @secret", c.model.Requests()[0].FirstText, "as written: no command, no file")
	assert.Zero(t, c.model.Unused())
}

func TestCLISettingsRefused(t *testing.T) {
	for name, opts := range map[string]Options{
		"one invalid value": {SettingsPath: writeSettings(t, `{"cleanupPeriodDays":"soon","permissions":{"deny":["WebFetch"]}}`)},
		"not as generated":  {SettingsPath: writeSettings(t, `{}`), Settings: json.RawMessage(goodSettings)},
		"no such file":      {SettingsPath: "/nonexistent.json"},
		"unknown session":   {Resume: "00000000-0000-4000-8000-000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCLI(t, opts, nil)
			_, err := Open(t.Context(), c, opts)
			var refused *StartupError
			require.ErrorAs(t, err, &refused)
			t.Log(err)
			assert.Empty(t, c.model.Requests())
		})
	}
}

func TestCLIErrors(t *testing.T) {
	t.Run("bad request", func(t *testing.T) {
		fail := says("")
		fail.Error = &model.Failure{Status: 400, Type: "invalid_request_error", Message: "no such thing", Repeat: 10}
		_, sum, err := runCLI(t, Options{}, []model.Turn{fail})
		var bad *ResultError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, 400, bad.APIStatus)
		assert.Equal(t, "success", bad.Subtype)
		assert.Contains(t, err.Error(), "no such thing")
		assert.True(t, sum.IsError)
	})
	t.Run("rate limit", func(t *testing.T) {
		fail := says("")
		fail.Error = &model.Failure{Status: 429, Type: "rate_limit_error", Message: "slowly", Repeat: 10}
		_, _, err := runCLI(t, Options{}, []model.Turn{fail}, "CLAUDE_CODE_MAX_RETRIES=1")
		var throttled *ThrottleError
		require.ErrorAs(t, err, &throttled)
		assert.Equal(t, "rate_limit", throttled.Kind)
		assert.Equal(t, 2, throttled.Attempts)
	})
	t.Run("nobody listens", func(t *testing.T) {
		_, _, err := runCLI(t, Options{}, nil, "CLAUDE_CODE_MAX_RETRIES=0", "ANTHROPIC_BASE_URL=http://127.0.0.1:1")
		var throttled *ThrottleError
		require.ErrorAs(t, err, &throttled)
		assert.Equal(t, "timeout", throttled.Kind)
	})
	t.Run("max turns", func(t *testing.T) {
		again := calls("Bash", `{"command":"true"}`)
		_, _, err := runCLI(t, Options{MaxTurns: 1, PermissionMode: ModeBypassPermissions}, []model.Turn{again, again, again})
		var enough *MaxTurnsError
		require.ErrorAs(t, err, &enough)
	})
	t.Run("budget", func(t *testing.T) {
		again := calls("Bash", `{"command":"true"}`)
		_, _, err := runCLI(t, Options{MaxBudgetUSD: 0.000001, PermissionMode: ModeBypassPermissions}, []model.Turn{again, again, again})
		var spent *BudgetError
		require.ErrorAs(t, err, &spent)
		assert.Positive(t, spent.CostUSD)
	})
	t.Run("fine", func(t *testing.T) {
		_, sum, err := runCLI(t, Options{MaxTurns: 1, MaxBudgetUSD: 100}, []model.Turn{says("ok")})
		require.NoError(t, err)
		assert.Equal(t, "ok", sum.Text)
	})
}

func runCLI(t *testing.T, opts Options, turns []model.Turn, env ...string) ([]Kind, Result, error) {
	return fold(t, Run(t.Context(), startCLI(t, opts, turns, env...), opts, "go"))
}

func TestCLIPermissions(t *testing.T) {
	write := []model.Turn{calls("Bash", `{"command":"touch made","description":"x"}`), says("done")}
	for _, allow := range []bool{false, true} {
		opts := Options{Ask: func(_ context.Context, r ToolRequest) Answer {
			return Answer{Allow: allow, Reason: "not " + r.ToolName}
		}}
		s, c := openCLI(t, opts, write)
		kinds, sum, err := fold(t, s.Turn(t.Context(), "go"))
		require.NoError(t, err)
		assert.Contains(t, kinds, KindPermissionRequest)
		_, statErr := os.Stat(filepath.Join(c.dir, "made"))
		assert.Equal(t, allow, statErr == nil)
		assert.Equal(t, allow, len(sum.PermissionDenials) == 0)
	}
	// With nobody to ask the CLI refuses by itself.
	kinds, sum, err := runCLI(t, Options{}, write)
	require.NoError(t, err)
	assert.Contains(t, kinds, KindPermissionDenied)
	require.Len(t, sum.PermissionDenials, 1)
	assert.Equal(t, "Bash", sum.PermissionDenials[0].ToolName)
}

func TestCLIStructured(t *testing.T) {
	opts := Options{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	_, sum, err := runCLI(t, opts, []model.Turn{calls("StructuredOutput", `{"n":7}`)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"n":7}`, string(sum.Structured))

	_, _, err = runCLI(t, opts, []model.Turn{says("seven"), says("seven, I said")})
	assert.ErrorIs(t, err, ErrNoStructured)
}

func TestCLIPartialMessages(t *testing.T) {
	turn := model.Turn{Blocks: []model.Block{
		{Type: "text", Text: "Grüße"}, {Type: "tool_use", Name: "Bash", Input: json.RawMessage(`{"command":"true"}`)},
	}, ChunkBytes: 3}
	opts := Options{IncludePartialMessages: true, PermissionMode: ModeBypassPermissions}
	var text, tool string
	for e, err := range Run(t.Context(), startCLI(t, opts, []model.Turn{turn, says("!")}), opts, "go") {
		require.NoError(t, err)
		switch e.Kind {
		case KindTextDelta:
			text += e.Text
		case KindToolStart:
			tool = e.ToolName
		}
	}
	assert.Equal(t, "Grüße!", text)
	assert.Equal(t, "Bash", tool)
}

// However a turn is stopped, the next one works.
func TestCLIInterrupt(t *testing.T) {
	slow := says("never")
	slow.Delay = time.Minute
	asked := func(c *cli) func() bool { return func() bool { return len(c.model.Requests()) == 1 } }

	for name, stop := range map[string]func(*testing.T, *Session, *cli){
		"method": func(t *testing.T, s *Session, c *cli) {
			var last error
			for e, err := range s.Turn(t.Context(), "one") {
				if last = err; e.Kind == KindInit {
					waitFor(t, asked(c))
					require.NoError(t, s.Interrupt(t.Context()))
				}
			}
			require.ErrorIs(t, last, ErrInterrupted)
			assert.EqualError(t, last, "turn interrupted", "no internal diagnostics")
		},
		"context": func(t *testing.T, s *Session, c *cli) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var last error
			for e, err := range s.Turn(ctx, "one") {
				if last = err; e.Kind == KindInit {
					waitFor(t, asked(c))
					cancel(errors.New("enough"))
				}
			}
			require.EqualError(t, last, "enough")
		},
		"context at once": func(t *testing.T, s *Session, c *cli) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var last error
			for _, err := range s.Turn(ctx, "one") {
				last = err
				cancel(errors.New("enough"))
			}
			require.EqualError(t, last, "enough")
		},
		"leave": func(t *testing.T, s *Session, c *cli) {
			for e := range s.Turn(t.Context(), "one") {
				if e.Kind == KindInit {
					waitFor(t, asked(c))
					break
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			turns := []model.Turn{slow, says("still here")}
			if name == "context at once" {
				turns = []model.Turn{says("still here"), says("still here")} // the CLI may not have begun
			}
			s, c := openCLI(t, Options{}, turns)
			began := time.Now()
			stop(t, s, c)
			assert.Less(t, time.Since(began), 30*time.Second)
			_, sum, err := fold(t, s.Turn(t.Context(), "two"))
			require.NoError(t, err)
			assert.Equal(t, "still here", sum.Text)
		})
	}
}

func TestCLIKilled(t *testing.T) {
	slow := says("never")
	slow.Delay = time.Minute
	c := startCLI(t, Options{}, []model.Turn{slow})
	var last error
	for e, err := range Run(t.Context(), c, Options{}, "go") {
		if last = err; e.Kind == KindInit {
			waitFor(t, func() bool { return len(c.model.Requests()) == 1 })
			require.NoError(t, c.cmd.Process.Kill())
		}
	}
	var none *NoResultError
	require.ErrorAs(t, last, &none)
	c.cmd.Wait()
	err := error(&ProcessError{
		ExitCode: c.cmd.ProcessState.ExitCode(), Signal: c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal().String(),
		Stderr: c.stderr.String(), Err: last,
	})
	assert.EqualError(t, err, "claude process ended with signal killed")
	assert.ErrorIs(t, err, ErrEnded)
}

func waitFor(t *testing.T, ok func() bool) {
	assert.Eventually(t, ok, 20*time.Second, 5*time.Millisecond)
}
