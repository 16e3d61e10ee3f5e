package claude

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeInit(t *testing.T) {
	events, err := Decode([]byte(`{"session_id":"s","type":"system","subtype":"init","model":"m","cwd":"/w","tools":["Bash"],` +
		`"permissionMode":"plan","mcp_servers":[{"name":"x","status":"connected"}],"error":"no retry's"}`))
	require.NoError(t, err)
	require.Len(t, events, 1)
	e := events[0]
	assert.Equal(t, Event{
		Kind: KindInit, Type: "system", Subtype: "init", SessionID: "s", Model: "m", Raw: e.Raw,
		Init: &Init{Cwd: "/w", Tools: []string{"Bash"}, PermissionMode: ModePlan, MCPServers: []MCPServer{{"x", "connected"}}},
	}, e)
}

func TestDecodeMessage(t *testing.T) {
	line := `{"type":"assistant","message":{"id":"m1","model":"m","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],` +
		`"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}}`
	events, err := Decode([]byte(line))
	require.NoError(t, err)
	require.Len(t, events, 2)
	assert.Equal(t, &Usage{1, 2, 3, 4}, events[0].Usage)
	assert.EqualValues(t, 10, events[0].Usage.Total())
	assert.Nil(t, events[1].Usage, "a message counts once")
	assert.Equal(t, []int{0, 1}, []int{events[0].Block, events[1].Block})
	assert.Equal(t, line, string(events[1].Raw))
}

func TestDecodeRefuses(t *testing.T) {
	for _, line := range []string{"", "x", "[]", "{", `{"a":1}{}`, `{"a":"` + "\x00" + `"}`, strings.Repeat("{\"a\":", 20000)} {
		_, err := Decode([]byte(line))
		var bad *DecodeError
		require.ErrorAs(t, err, &bad, line)
		assert.LessOrEqual(t, len(bad.Line), 200)
	}
	_, err := Decode([]byte(`{"key":"sk-ant-api03-AAAA","t":"` + strings.Repeat("ü", 300)))
	assert.NotContains(t, err.Error(), "AAAA")
	assert.True(t, json.Valid([]byte(`"`+strings.ReplaceAll(err.(*DecodeError).Line, `"`, "")+`"`)), "cut between characters")
}

func TestEventJSON(t *testing.T) {
	events, err := Decode([]byte("{\"type\":\"user\",\"message\":{\"content\":\"<a>\\u2028\xff\"},  \"n\":1e2}"))
	require.NoError(t, err)
	e := events[0]
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	data, err := json.Marshal(e)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "\n")
	assert.Equal(t, `{"kind":"user","time":"2026-01-02T03:04:05Z","type":"user","text":"\u003ca\u003e\u2028`+"\uFFFD"+`",`+
		`"raw":{"type":"user","message":{"content":"\u003ca\u003e\u2028`+"\uFFFD"+`"},"n":1e2}}`, string(data))
}

func TestResultAdd(t *testing.T) {
	var sum Result
	for _, line := range []string{
		`{"type":"result","subtype":"success","is_error":false,"result":"answer","total_cost_usd":1,"num_turns":2,"duration_ms":10,"usage":{"input_tokens":5},"structured_output":{"a":1},"permission_denials":[{"tool_name":"A"}]}`,
		`{"type":"keep_alive"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":1.5,"num_turns":1,"duration_ms":5,"usage":{"input_tokens":6},"permission_denials":[{"tool_name":"B"}]}`,
	} {
		events, err := Decode([]byte(line))
		require.NoError(t, err)
		sum.Add(events[0])
	}
	assert.Equal(t, Result{
		Text: "answer", Structured: json.RawMessage(`{"a":1}`), Subtype: "success", Usage: Usage{Input: 11},
		CostUSD: 1.5, NumTurns: 3, DurationMS: 15, PermissionDenials: []Denial{{ToolName: "A"}, {ToolName: "B"}},
	}, sum)
	assert.Equal(t, 15*time.Millisecond, sum.Duration())
}

func TestErrorsUnwrap(t *testing.T) {
	var plain *ResultError
	for _, r := range []Result{
		{IsError: true, Subtype: "error_max_turns"},
		{IsError: true, Subtype: "error_max_budget_usd"},
		{IsError: true, Subtype: "success", APIStatus: 529},
		{IsError: true, Subtype: "success", APIError: "connection_failed"},
		{IsError: true, Subtype: "error_during_execution"},
	} {
		assert.ErrorAs(t, r.Err(), &plain)
		assert.NotErrorIs(t, r.Err(), ErrInterrupted)
	}
	stopped := Result{IsError: true, TerminalReason: "aborted_tools"}
	assert.ErrorIs(t, stopped.Err(), ErrInterrupted)

	err := error(&ProcessError{ExitCode: -1, Signal: "killed", Stderr: " boom\n", Err: &NoResultError{}})
	var none *NoResultError
	assert.ErrorAs(t, err, &none)
	assert.ErrorIs(t, err, ErrEnded)
	assert.EqualError(t, err, "claude process ended with signal killed: boom")
	assert.EqualError(t, &ProcessError{ExitCode: 1}, "claude process ended with exit status 1")
	assert.EqualError(t, &NotFoundError{}, "Claude Code CLI not found. Install: npm install -g @anthropic-ai/claude-code")
}

// FuzzDecode: any line is events or a DecodeError, the events marshal to one line of JSON, and that reads as the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","input":{}}]}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text"}]}]}}`))
	f.Add([]byte(`{"type":"result","is_error":false,"subtype":"success","errors":["[ede_diagnostic]"],"usage":null}`))
	f.Add([]byte(`{"type":"system","subtype":"init","tools":null}`))
	f.Add([]byte(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"\ud800"}}}`))
	f.Add([]byte(`{"type":"control_request","request":{"subtype":"can_use_tool","input":[1]}}`))
	f.Add([]byte("{\"type\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		events, err := Decode(line)
		if err != nil {
			var bad *DecodeError
			require.ErrorAs(t, err, &bad)
			return
		}
		require.NotEmpty(t, events)
		for _, e := range events {
			data, err := json.Marshal(e)
			require.NoError(t, err)
			require.NotContains(t, string(data), "\n")
			var again Event
			require.NoError(t, json.Unmarshal(data, &again))
			twice, err := json.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(data), string(twice))
		}
	})
}
