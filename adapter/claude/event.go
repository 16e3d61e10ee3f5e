package claude

import (
	"encoding/json"
	"time"
)

// Kind says what an [Event] is, whatever the CLI calls it.
type Kind string

// The kinds of events, with the fields that each fills.
const (
	KindInit              Kind = "init"               // a turn starts: Init, Model
	KindText              Kind = "text"               // the model said: Text
	KindTextDelta         Kind = "text_delta"         // a piece of what it is saying: Text
	KindThinking          Kind = "thinking"           // the model thought: Text
	KindThinkingDelta     Kind = "thinking_delta"     // Text
	KindToolStart         Kind = "tool_start"         // a call is being written: ToolName, ToolID
	KindToolUse           Kind = "tool_use"           // a call: ToolName, ToolID, Input
	KindToolResult        Kind = "tool_result"        // its outcome: ToolID, Text, IsError
	KindUser              Kind = "user"               // a message on the user's side: Text
	KindPermissionRequest Kind = "permission_request" // the CLI asks us: ToolName, ToolID, Input, Text
	KindPermissionDenied  Kind = "permission_denied"  // the CLI refused by itself: ToolName, ToolID, Text
	KindAPIRetry          Kind = "api_retry"          // the model API failed, it tries again: Retry
	KindState             Kind = "state"              // Text is running, requires_action or idle
	KindStatus            Kind = "status"             // Text says what the CLI is busy with
	KindNotice            Kind = "notice"             // a remark for people: Text
	KindLifecycle         Kind = "lifecycle"          // a prompt was queued, started, completed or cancelled: MessageID, Text
	KindTask              Kind = "task"               // something in the background: Text is its status
	KindResult            Kind = "result"             // a turn is over: Result
	KindStream            Kind = "stream"             // any other piece of a streamed message
	KindControl           Kind = "control"            // the protocol itself; a Session keeps these
	KindUnknown           Kind = "unknown"            // something newer than this package
)

// Event is one thing that happened in a session. Type, Subtype and Raw are as the CLI wrote them; the rest is what
// the kind makes of them. A message with several blocks is several events, in order, with the same Raw.
type Event struct {
	Kind      Kind      `json:"kind"`
	Time      time.Time `json:"time,omitzero"` // when it was read; zero from Decode
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Parent    string    `json:"parent_tool_use_id,omitempty"` // the tool call whose subagent this is
	MessageID string    `json:"message_id,omitempty"`
	Block     int       `json:"block,omitempty"` // which event of this Raw
	Model     string    `json:"model,omitempty"`

	Text     string          `json:"text,omitempty"`
	ToolName string          `json:"tool_name,omitempty"`
	ToolID   string          `json:"tool_use_id,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	IsError  bool            `json:"is_error,omitempty"`
	Error    string          `json:"error,omitempty"` // the CLI's word for a failed model call, as "rate_limit"

	Usage  *Usage  `json:"usage,omitempty"` // first event of a message only; not final while it streams
	Init   *Init   `json:"init,omitempty"`
	Retry  *Retry  `json:"retry,omitempty"`
	Result *Result `json:"result,omitempty"`

	// Raw is the line. It is shared between the events of a message: do not change it.
	Raw json.RawMessage `json:"raw"`
}

// Usage counts tokens. Input is what no cache held.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// Total is everything that passed.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u Usage) plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Init is what the CLI says of itself when a turn starts.
type Init struct {
	Cwd            string         `json:"cwd"`
	Tools          []string       `json:"tools"`
	MCPServers     []MCPServer    `json:"mcp_servers"`
	PermissionMode PermissionMode `json:"permissionMode"`
	APIKeySource   string         `json:"apiKeySource"`
	Version        string         `json:"claude_code_version"`
	Capabilities   []string       `json:"capabilities"`
}

// MCPServer is one tool server and whether the CLI reached it.
type MCPServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Retry is one failed call to the model API.
type Retry struct {
	Attempt int     `json:"attempt"`
	Max     int     `json:"max_retries"`
	DelayMS float64 `json:"retry_delay_ms"`
	Status  int     `json:"error_status"` // 0: there was no answer
	Error   string  `json:"error"`
}
