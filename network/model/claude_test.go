package model

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests run the real CLI: what it makes of the server's answers is the only proof that they are the API's.

func TestClaudeText(t *testing.T) {
	a := newAgent(t, `
[[turns]]
expect = { contains = "say <hello>" }
text = "Hello, <world> & ünïcode."
usage = { input = 1000, output = 200, cache_read = 30, cache_write = 4 }
`)
	r := a.ask("say <hello>")
	assert.Equal(t, "success", r.Subtype)
	assert.False(t, r.IsError, a.transcript())
	assert.Equal(t, "Hello, <world> & ünïcode.", r.Result)
	assert.Equal(t, []int{1000, 200, 30, 4}, []int{r.Usage.Input, r.Usage.Output, r.Usage.CacheRead, r.Usage.CacheWrite})
	assert.NoError(t, a.server.Err())
	assert.Len(t, a.server.Requests(), 1, "nothing but the conversation")
	assert.Equal(t, "say <hello>", a.server.Requests()[0].FirstText)
	assert.Contains(t, a.server.Requests()[0].Tools, "Bash")
}

// The example is a whole session: thinking, several tools in a turn, a file written, every result checked.
func TestClaudeFixTest(t *testing.T) {
	script, err := os.ReadFile("testdata/fix_test.toml")
	require.NoError(t, err)
	a := newAgent(t, string(script))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600))
	}
	write("add.sh", "#!/bin/sh\necho $(($1 - $2))\n")
	write("test.sh", "got=$(sh add.sh 2 3); test \"$got\" = 5 && echo ok || echo \"want 5, got $got\"\n")
	r := a.ask("fix the failing test")
	require.NoError(t, a.server.Err())
	assert.Equal(t, 0, a.server.Unused())
	assert.Equal(t, "Fixed: `add.sh` subtracted instead of adding. The tests pass.", r.Result)
	assert.Len(t, a.server.Requests(), 5)
	fixed, err := os.ReadFile(filepath.Join(a.dir, "add.sh"))
	require.NoError(t, err)
	assert.Contains(t, string(fixed), "$(($1 + $2))")
	assert.Len(t, a.server.Requests()[2].ToolResults, 2, "both tools of a turn come back in one request")
	assert.True(t, slices.ContainsFunc(a.seen, func(f frame) bool {
		return f.Type == "assistant" && len(f.Message.Content) > 0 && f.Message.Content[0].Type == "thinking"
	}), a.transcript())
}

func TestClaudePartialMessages(t *testing.T) {
	a := newAgent(t, `
[[turns]]
thinking = "one two three"
text = "a text in several pieces"
chunk_bytes = 5
`)
	a.args = []string{"--include-partial-messages"}
	r := a.ask("go")
	assert.False(t, r.IsError, a.transcript())
	text, thinking, events := []string{}, "", []string{}
	for _, f := range a.seen {
		if f.Type != "stream_event" {
			continue
		}
		events = append(events, f.Event.Type)
		thinking += f.Event.Delta.Thinking
		if f.Event.Delta.Text != "" {
			text = append(text, f.Event.Delta.Text)
		}
	}
	assert.Equal(t, []string{"a tex", "t in ", "sever", "al pi", "eces"}, text)
	assert.Equal(t, "one two three", thinking)
	assert.Equal(t, "message_start", events[0])
	assert.Equal(t, []string{"message_delta", "message_stop"}, events[len(events)-2:])
}

// What the API does wrong, the CLI gets over, or not, as it does with the real one.
func TestClaudeTrouble(t *testing.T) {
	const tool = "[[turns.tools]]\nname = 'Bash'\ninput = { command = 'echo run >>runs; cat runs' }\n"
	tests := []struct {
		name, script string
		result       string
		isError      bool
		requests     int
		retries      int // that the CLI reports
	}{
		{"overloaded, then well", "[[turns]]\nerror = { status = 529 }\n[[turns]]\ntext = 'fine'\n", "fine", false, 2, 1},
		{"rate limit with retry-after", "[[turns]]\nerror = { status = 429, retry_after = 1 }\ntext = 'fine'\n", "fine", false, 2, 1},
		{"bad request", "[[turns]]\nerror = { status = 400, message = 'not like this' }\n", "API Error: 400 not like this", true, 6, 0},
		{"bad request that need not be asked again", "[[turns]]\nerror = { status = 500, message = 'broken', retry = false }\n", "API Error: 500 broken", true, 1, 0},
		{"not found, then not streamed", "[[turns]]\nerror = { status = 404 }\ntext = 'in one piece'\n", "in one piece", false, 2, 0},
		{"cut at once", "[[turns]]\ntext = 'the whole text'\ncut = 0\n", "the whole text", false, 2, 1},
		{"cut in a text", "[[turns]]\ntext = 'the whole text'\ncut = 5\nchunk_bytes = 2\nchunk_delay = '10ms'\n", "the whole text", false, 2, 1},
		{"cut in a tool call", "[[turns]]\ntext = 'abc'\ncut = 9\n" + tool + "[[turns]]\nexpect = { contains = 'run', lacks = \"run\\nrun\" }\ntext = 'ran once'\n", "ran once", false, 3, either},
		{"out of tokens", "[[turns]]\ntext = 'half'\nstop_reason = 'max_tokens'\n[[turns]]\ntext = 'rest'\n", "rest", false, 2, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t, tt.script)
			r := a.ask("go")
			assert.Equal(t, tt.isError, r.IsError, a.transcript())
			assert.True(t, strings.HasPrefix(r.Result, tt.result), "%q", r.Result)
			assert.NoError(t, a.server.Err())
			assert.Equal(t, 0, a.server.Unused())
			assert.Len(t, a.server.Requests(), tt.requests)
			retries := 0
			for _, f := range a.seen {
				if f.Subtype == "api_retry" {
					retries++
				}
			}
			if tt.retries != either {
				assert.Equal(t, tt.retries, retries, a.transcript())
			}
		})
	}
}

// either: the CLI retries, or has it go on where it was cut, by whether it read the whole text block before the reset.
const either = -1

// After an error for good the session goes on with the next turn.
func TestClaudeTurnAfterError(t *testing.T) {
	a := newAgent(t, "[[turns]]\nerror = { status = 400 }\n[[turns]]\ntext = 'fine'\n")
	assert.True(t, a.ask("one").IsError)
	a.prompt("two")
	assert.Equal(t, "fine", a.result().Result)
	assert.NoError(t, a.server.Err())
}

// A script that is too short, or that expected something else, ends the run at once and in its own words.
func TestClaudeScriptFails(t *testing.T) {
	tests := []struct{ name, script, result string }{
		{"exhausted", "[[turns]]\n[[turns.tools]]\nname = 'Bash'\ninput = { command = 'echo hi' }\n",
			"API Error: 400 sandboxrun script x.toml ran out after 1 turn"},
		{"not as expected", "[[turns]]\nexpect = { contains = 'xyzzy' }\ntext = 'a'\n",
			`API Error: 400 sandboxrun script x.toml:1: turn 1 was asked for by a request that lacks "xyzzy": "go"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t, tt.script)
			r := a.ask("go")
			assert.True(t, r.IsError)
			assert.Equal(t, 400, r.APIErrorStatus)
			assert.Equal(t, tt.result, r.Result)
			assert.Error(t, a.server.Err())
			for _, f := range a.seen {
				assert.NotEqual(t, "api_retry", f.Subtype, "no waiting for a script")
			}
		})
	}
}

// An interrupt leaves the turn behind.
func TestClaudeInterrupt(t *testing.T) {
	a := newAgent(t, "[[turns]]\ntext = 'slow'\ndelay = '1h'\n[[turns]]\ntext = 'next'\n")
	a.start()
	a.prompt("one")
	require.Eventually(t, func() bool { return len(a.server.Requests()) == 1 }, time.Minute, time.Millisecond)
	a.send(object{"type": "control_request", "request_id": "1", "request": object{"subtype": "interrupt"}})
	assert.Equal(t, "error_during_execution", a.result().Subtype)
	a.prompt("two")
	assert.Equal(t, "next", a.result().Result)
	assert.NoError(t, a.server.Err())
}

// A subagent has its own turns.
func TestClaudeSubagent(t *testing.T) {
	a := newAgent(t, subagentScript)
	assert.Equal(t, "main done", a.ask("delegate").Result)
	assert.NoError(t, a.server.Err())
	assert.Equal(t, 0, a.server.Unused())
}

const subagentScript = `
[[turns]]
[[turns.tools]]
name = "Agent"
input = { description = "look", prompt = "SUBTASK: look around", subagent_type = "general-purpose" }

[[turns]]
agent = "SUBTASK"
[[turns.tools]]
name = "Bash"
input = { command = "echo inside" }

[[turns]]
agent = "SUBTASK"
expect = { contains = "inside" }
text = "sub done"

[[turns]]
expect = { contains = "sub done" }
text = "main done"
`

// The CLI's own questions are answered and use up no turn.
func TestClaudeAsides(t *testing.T) {
	a := newAgent(t, "[[turns]]\ntext = 'one'\n[[turns]]\ntext = 'two'\n")
	assert.Equal(t, "one", a.ask("one").Result)
	a.asides()
	a.prompt("two")
	assert.Equal(t, "two", a.result().Result)
	assert.NoError(t, a.server.Err())
	kinds := map[Kind]int{}
	for _, r := range a.server.Requests() {
		kinds[r.Kind]++
	}
	assert.Equal(t, 2, kinds[KindTurn])
	assert.Equal(t, 1, kinds[KindProbe])
	assert.Equal(t, 2, kinds[KindAside])
	assert.Greater(t, kinds[KindCount], 10)
}

// asides makes the CLI ask for everything that is not a turn.
func (a *agent) asides() {
	request := func(id string, v object) string {
		a.send(object{"type": "control_request", "request_id": id, "request": v})
		f := a.until("its answer to "+id, func(f frame) bool { return f.Response.RequestID == id })
		assert.Equal(a.t, "success", f.Response.Subtype, f.raw)
		return string(f.Response.Response)
	}
	request("model", object{"subtype": "set_model", "model": "claude-haiku-4-5"})
	request("context", object{"subtype": "get_context_usage"})
	title := request("title", object{"subtype": "generate_session_title", "description": "fix the bug", "persist": true})
	assert.Contains(a.t, title, `"ok"`)
	a.send(object{"type": "user", "message": object{"role": "user", "content": "/compact"}})
	assert.False(a.t, a.result().IsError)
}

// With ANTHROPIC_BASE_URL=http://api.anthropic.com and a proxy the CLI believes that it talks to the real API: it marks
// its requests and sends the proxy's form. With a bearer token it asks for nothing else; with an API key it would first
// fetch managed settings by TLS and wait 18 s for them.
func TestClaudeFirstParty(t *testing.T) {
	a := newAgent(t, subagentScript)
	var mu sync.Mutex
	seen := []string{}
	proxy := a.listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, r.Header.Get("x-claude-code-request-class")))
		mu.Unlock()
		a.server.ServeHTTP(w, r)
	}))
	a.env = append(slices.DeleteFunc(a.env, func(v string) bool { return strings.HasPrefix(v, "ANTHROPIC_API_KEY=") }),
		"ANTHROPIC_AUTH_TOKEN=sk-ant-fake-placeholder", "ANTHROPIC_BASE_URL=http://api.anthropic.com",
		"HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy)
	assert.Equal(t, "main done", a.ask("delegate").Result)
	assert.NoError(t, a.server.Err())
	mu.Lock()
	defer mu.Unlock()
	const post = "POST http://api.anthropic.com/v1/messages?beta=true "
	assert.Equal(t, []string{post + "main", post + "subagent", post + "subagent", post + "main"}, seen)
}
