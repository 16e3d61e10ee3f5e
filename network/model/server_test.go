package model

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files instead of comparing")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// serverOf plays a script given as text.
func serverOf(t *testing.T, script string) *Server {
	s, err := ParseScript("x.toml", []byte(script))
	require.NoError(t, err)
	return &Server{Script: s}
}

// call sends a body to the API as a client with credentials does. The answer of a stream that broke off has all that
// came before.
func call(ctx context.Context, h http.Handler, path, body string, header ...string) *httptest.ResponseRecorder {
	method := http.MethodPost
	if body == "" {
		method, path, _ = strings.Cut(path, " ")
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("x-api-key", "sk-ant-fake")
	r.Header.Set("anthropic-version", "2023-06-01")
	for _, h := range header {
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			}
		}()
		h.ServeHTTP(w, r)
	}()
	return w
}

// say asks for the next turn of a conversation.
func say(t *testing.T, s *Server, messages ...string) *httptest.ResponseRecorder {
	return call(t.Context(), s, "/v1/messages?beta=true", conversation(false, messages...))
}

// conversation is a request whose messages are the user's and the assistant's in turn.
func conversation(stream bool, texts ...string) string {
	messages := []object{}
	for i, text := range texts {
		messages = append(messages, object{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	return string(compactJSON(object{"model": "claude-test", "max_tokens": 100, "stream": stream, "messages": messages}))
}

func TestServerGolden(t *testing.T) {
	script, err := LoadScript("testdata/everything.json")
	require.NoError(t, err)
	s := &Server{Script: script}
	var b strings.Builder
	show := func(title, body string) {
		w := call(t.Context(), s, "/v1/messages", body)
		fmt.Fprintf(&b, "-- %s --\n%d\n", title, w.Code)
		for _, key := range []string{"content-type", "request-id", "retry-after", "x-should-retry"} {
			if v := w.Header().Get(key); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", key, v)
			}
		}
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSuffix(w.Body.String(), "\n"))
	}
	show("a stream in small pieces", conversation(true, "hello"))
	show("an error", conversation(true, "hello", "", "a b"))
	show("the same again", conversation(true, "hello", "", "a b"))
	show("a stream that breaks", conversation(true, "hello", "", "a b"))
	show("the retry in one piece", conversation(false, "hello", "", "a b"))
	show("another conversation, empty blocks", conversation(true, "be a helper"))
	show("an empty answer", conversation(true, "hello", "", "a b", "", "x"))
	show("one too many", conversation(true, "hello", "", "a b", "", "x", "", "y"))
	golden(t, "testdata/everything.golden", b.String())
}

// A script is consumed once, whatever the client's retries look like.
func TestServerTurns(t *testing.T) {
	t.Run("a turn each", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\ntext = 'one'\n[[turns]]\ntext = 'two'\n")
		assert.Equal(t, 2, s.Unused())
		assert.Contains(t, say(t, s, "a").Body.String(), `"one"`)
		assert.Equal(t, 1, s.Unused())
		assert.Contains(t, say(t, s, "a").Body.String(), `"two"`)
		assert.Equal(t, 0, s.Unused())
		assert.NoError(t, s.Err())
	})
	t.Run("too many", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\ntext = 'one'\n")
		say(t, s, "a")
		w := say(t, s, "b")
		assert.Equal(t, 400, w.Code)
		assert.Equal(t, "false", w.Header().Get("x-should-retry"))
		assert.Contains(t, w.Body.String(), `"sandboxrun script x.toml ran out after 1 turn"`)
		var e *ExhaustedError
		require.ErrorAs(t, s.Err(), &e)
		assert.Equal(t, 1, e.Turns)
		assert.EqualError(t, e, `script x.toml ran out after 1 turn: asked again with "b"`)
		say(t, s, "c")
		assert.Same(t, e, s.Err(), "the first failure counts")
	})
	t.Run("no script", func(t *testing.T) {
		s := &Server{}
		assert.Contains(t, say(t, s, "a").Body.String(), "ran out after 0 turns")
		assert.Error(t, s.Err())
		assert.Equal(t, 0, s.Unused())
	})
	t.Run("not as expected", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\nexpect = { contains = ['a', 'b'], lacks = 'c' }\ntext = 'one'\n")
		assert.Equal(t, 400, say(t, s, "abc").Code)
		var e *ExpectError
		require.ErrorAs(t, s.Err(), &e)
		assert.EqualError(t, e, `script x.toml:1: turn 1 was asked for by a request that contains "c": "abc"`)
		assert.Equal(t, 400, say(t, s, "a").Code)
		assert.Equal(t, 1, s.Unused())
		assert.Equal(t, 200, say(t, s, "ab").Code)
		assert.Same(t, e, s.Err())
	})
	t.Run("an error for good ends with the conversation's next step", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\nerror = { status = 400, message = 'no' }\n[[turns]]\ntext = 'one'\n")
		for range 7 {
			assert.Equal(t, 400, say(t, s, "a").Code)
		}
		assert.Equal(t, 200, say(t, s, "a", "x", "b").Code)
		assert.NoError(t, s.Err(), "an error that the script asked for is no failure of the script")
	})
	t.Run("an error once", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\nerror = { status = 529 }\n[[turns]]\ntext = 'one'\n")
		assert.Equal(t, 529, say(t, s, "a").Code)
		assert.Equal(t, 200, say(t, s, "a").Code)
	})
	t.Run("conversations by agent", func(t *testing.T) {
		s := serverOf(t, "[[turns]]\nagent = 'SUB'\ntext = 'sub'\n[[turns]]\ntext = 'main'\n")
		assert.Contains(t, say(t, s, "call it").Body.String(), "main")
		assert.Contains(t, say(t, s, "SUB task", "x", "y").Body.String(), "sub")
		assert.Equal(t, "SUB", s.Requests()[1].Agent)
		assert.Contains(t, say(t, s, "SUB task").Body.String(), "ran out after 1 turn")
	})
}

func TestServerKinds(t *testing.T) {
	s := serverOf(t, "[[turns]]\ntext = 'one'\n[[turns]]\nagent = 'TITLE'\ntext = 'mine'\n")
	schema := `{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"},"l":{"type":"array"},
		"e":{"enum":["x","y"]},"b":{"type":"boolean"},"o":{"type":"null"}},"required":["title","n","l","e","b","o"]}`
	format := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"%s"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`
	tests := []struct {
		name, path, body, header string
		kind                     Kind
		want                     string
	}{
		{"probe", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`, "", KindProbe, `"stop_reason":"max_tokens"`},
		{"count", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`, "", KindCount, `{"input_tokens":`},
		{"marked", "/v1/messages", conversation(false, "name this"), "x-claude-code-request-class: auxiliary", KindAside, `"text":"ok"`},
		{"title", "/v1/messages", fmt.Sprintf(format, "name"), "", KindAside, `{\"b\":false,\"e\":\"x\",\"l\":[],\"n\":0,\"o\":null,\"title\":\"ok\"}`},
		{"compaction", "/v1/messages", conversation(true, "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. And so on."), "", KindAside, "<summary>ok</summary>"},
		{"an aside that the script answers", "/v1/messages", fmt.Sprintf(format, "TITLE"), "", KindAside, `"text":"mine"`},
		{"a turn", "/v1/messages", conversation(false, "name this"), "x-claude-code-request-class: main", KindTurn, `"text":"one"`},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t.Context(), s, tt.path, tt.body, tt.header)
			assert.Equal(t, 200, w.Code)
			assert.Contains(t, w.Body.String(), tt.want)
			require.Len(t, s.Requests(), i+1)
			assert.Equal(t, tt.kind, s.Requests()[i].Kind)
		})
	}
	assert.NoError(t, s.Err())
	assert.Equal(t, 0, s.Unused())
}

func TestServerRefusals(t *testing.T) {
	good := conversation(false, "x")
	tests := []struct {
		name, path, body, header string
		status                   int
		want                     string
	}{
		{"no credential", "/v1/messages", good, "x-api-key: ", 401, `"authentication_error","message":"x-api-key header is required"`},
		{"no version", "/v1/messages", good, "anthropic-version: ", 400, "anthropic-version: header is required"},
		{"not JSON", "/v1/messages", "{", "", 400, "The request body is not valid JSON"},
		{"no object", "/v1/messages", "[]", "", 400, "The request body is not valid JSON"},
		{"no model", "/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":""}]}`, "", 400, "model: Field required"},
		{"no max_tokens", "/v1/messages", `{"model":"m","messages":[{"role":"user","content":""}]}`, "", 400, "max_tokens: Field required"},
		{"no tokens", "/v1/messages", `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":""}]}`, "", 400, "max_tokens: Input should be greater than or equal to 1"},
		{"no messages", "/v1/messages", `{"model":"m","max_tokens":1}`, "", 400, "messages: Field required"},
		{"empty messages", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[]}`, "", 400, "messages: at least one message is required"},
		{"a role that is none", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"tool","content":""}]}`, "", 400, "messages.0.role: Input should be"},
		{"no content", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":null}]}`, "", 400, "messages.0.content: Field required"},
		{"wrong type", "/v1/messages", `{"model":1}`, "", 400, "model: Input should be a valid string"},
		{"elsewhere", "/v1/complete", good, "", 404, `{"type":"error","error":{"type":"not_found_error","message":"Not Found"},"request_id":"req_01`},
		{"managed settings", "GET /api/claude_code/settings", "", "", 404, "not_found_error"},
		{"models without a credential", "GET /v1/models", "", "x-api-key: ", 401, "authentication_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serverOf(t, "[[turns]]\ntext = 'one'\n")
			w := call(t.Context(), s, tt.path, tt.body, tt.header)
			assert.Equal(t, tt.status, w.Code)
			assert.Contains(t, w.Body.String(), tt.want)
			assert.Equal(t, "application/json", w.Header().Get("content-type"))
			assert.Equal(t, 1, s.Unused())
			assert.Equal(t, 200, say(t, s, "x").Code, "the same server serves a good request")
		})
	}
}

func TestServerOtherEndpoints(t *testing.T) {
	s := serverOf(t, "[[turns]]\ntext = 'one'\n")
	assert.Equal(t, 200, call(t.Context(), s, "HEAD /", "").Code)
	say(t, s, "x")
	w := call(t.Context(), s, "GET /v1/models?limit=1000", "")
	assert.Equal(t, 200, w.Code)
	assert.Contains(t, w.Body.String(), `"id":"claude-test"`)
	w = call(t.Context(), s, "http://api.anthropic.com/v1/messages/count_tokens", conversation(false, "in a proxy's form"))
	assert.Equal(t, 200, w.Code)
}

func TestServerBodyLimit(t *testing.T) {
	s := serverOf(t, "[[turns]]\ntext = 'one'\n")
	big := strings.Repeat("x", maxBody)
	w := call(t.Context(), s, "/v1/messages", big)
	assert.Equal(t, 400, w.Code, "read to its end, which is no JSON")
	w = call(t.Context(), s, "/v1/messages", big+"x")
	assert.Equal(t, 413, w.Code)
	assert.Contains(t, w.Body.String(), "request_too_large")
}

func TestServerRequests(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := serverOf(t, "[[turns]]\ntext = 'one'\n")
	s.Now = func() time.Time { return now }
	s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	call(t.Context(), s, "/v1/messages", `{"model":"m","max_tokens":7,"stream":true,"tools":[{"name":"Bash"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"first"}]},
		{"role":"system","content":"environment"},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"t1","content":"hi","is_error":true},
			{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"a"},{"type":"image"}]},
			{"type":"tool_result","tool_use_id":"t3","content":{"type":"error"}},
			{"type":"text","text":"last"}]}]}`)
	assert.Equal(t, []Request{{
		Time: now, Kind: KindTurn, Turn: 1, Attempt: 1, Model: "m", MaxTokens: 7, Stream: true, Messages: 4,
		FirstText: "first", LastText: "last", Tools: []string{"Bash"},
		ToolResults: []ToolResult{{ID: "t1", Text: "hi", IsError: true}, {ID: "t2", Text: "a"}, {ID: "t3"}},
	}}, s.Requests())
	assert.Contains(t, log.String(), `kind=turn turn=1 attempt=1`)
	assert.NotContains(t, log.String(), "sk-ant-fake")
}

// A client that goes away in the middle gets the same turn when it asks again, and the next when it asks something new.
func TestServerInterrupt(t *testing.T) {
	script := "[[turns]]\ntext = 'slow'\ndelay = '1h'\n[[turns]]\ntext = 'two'\n"
	leave := func(t *testing.T, s *Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		call(ctx, s, "/v1/messages", conversation(true, "a"))
	}
	t.Run("asks again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serverOf(t, script)
			leave(t, s)
			begin := time.Now()
			assert.Contains(t, say(t, s, "a").Body.String(), "slow")
			assert.Equal(t, time.Hour, time.Since(begin))
		})
	})
	t.Run("goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serverOf(t, script)
			leave(t, s)
			assert.Contains(t, say(t, s, "a", "", "b").Body.String(), "two")
		})
	})
}

func TestServerPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(t, "[[turns]]\ntext = '1234567890'\ndelay = '1s'\nchunk_bytes = 2\nchunk_delay = '10s'\n")
		begin := time.Now()
		w := call(t.Context(), s, "/v1/messages", conversation(true, "a"))
		assert.Equal(t, 51*time.Second, time.Since(begin))
		assert.Equal(t, 5, strings.Count(w.Body.String(), "event: content_block_delta\n"))
	})
}

// Two conversations at once get a turn each; none is served twice.
func TestServerConcurrent(t *testing.T) {
	s := serverOf(t, strings.Repeat("[[turns]]\ntext = 'x'\nchunk_delay = '1ms'\n", 50))
	web := httptest.NewServer(s)
	defer web.Close()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/v1/messages", strings.NewReader(conversation(true, fmt.Sprint(i))))
			r.Header.Set("authorization", "Bearer x")
			r.Header.Set("anthropic-version", "2023-06-01")
			w, err := http.DefaultClient.Do(r)
			if assert.NoError(t, err) {
				body, err := io.ReadAll(w.Body)
				assert.NoError(t, err)
				assert.Contains(t, string(body), "message_stop")
				w.Body.Close()
			}
		})
	}
	wg.Wait()
	assert.NoError(t, s.Err())
	turns := map[int]bool{}
	for _, r := range s.Requests() {
		turns[r.Turn] = true
	}
	assert.Len(t, turns, 50)
}

// The stream of a cut turn breaks off on the wire, too.
func TestServerCutOnTheWire(t *testing.T) {
	web := httptest.NewServer(serverOf(t, "[[turns]]\ntext = 'one two'\ncut = 3\n"))
	defer web.Close()
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	ask := func() (string, error) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/v1/messages", strings.NewReader(conversation(true, "x")))
		r.Header.Set("x-api-key", "x")
		r.Header.Set("anthropic-version", "2023-06-01")
		w, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer w.Body.Close()
		body, err := io.ReadAll(w.Body)
		return string(body), err
	}
	body, err := ask()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Contains(t, body, `"text":"one"`)
	assert.NotContains(t, body, "content_block_stop")
	body, err = ask()
	assert.NoError(t, err)
	assert.Contains(t, body, `"text":"one two"`)
}
