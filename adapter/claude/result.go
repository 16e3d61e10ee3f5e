package claude

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Result is the end of a turn, or with [Result.Add] of a whole run.
type Result struct {
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"` // the answer to Options.Schema
	IsError    bool            `json:"is_error"`             // decides, not Subtype: a failed model call is a "success"
	Subtype    string          `json:"subtype"`
	Errors     []string        `json:"errors,omitempty"`

	Usage      Usage   `json:"usage"`    // of the main loop in this turn
	CostUSD    float64 `json:"cost_usd"` // of the session so far
	NumTurns   int     `json:"num_turns"`
	DurationMS int64   `json:"duration_ms"`
	APIMS      int64   `json:"duration_api_ms"`
	SessionID  string  `json:"session_id,omitempty"`

	StopReason     string   `json:"stop_reason,omitempty"`
	TerminalReason string   `json:"terminal_reason,omitempty"`
	APIStatus      int      `json:"api_status,omitempty"` // HTTP status of the failed model call
	APIError       string   `json:"api_error,omitempty"`  // or what else went wrong with it
	StartupFailure string   `json:"startup_failure,omitempty"`
	Origin         string   `json:"origin,omitempty"`   // "task-notification": nobody prompted this turn
	Messages       []string `json:"messages,omitempty"` // ids of the user messages it answers

	PermissionDenials []Denial `json:"permission_denials,omitempty"`
}

// Denial is a tool call that was refused.
type Denial struct {
	ToolName string          `json:"tool_name"`
	ToolID   string          `json:"tool_use_id"`
	Input    json.RawMessage `json:"tool_input,omitempty"`
}

// Duration is how long the turn took.
func (r *Result) Duration() time.Duration { return time.Duration(r.DurationMS) * time.Millisecond }

// Add takes in the next event of a run, of which only results count: the last one decides, the last text that is not
// empty is the answer, usage, rounds, time and denials add up, and cost is a running total already.
func (r *Result) Add(e Event) {
	if e.Result == nil {
		return
	}
	next := *e.Result
	next.Text = cmp.Or(next.Text, r.Text)
	if next.Structured == nil {
		next.Structured = r.Structured
	}
	next.Usage = r.Usage.plus(next.Usage)
	next.NumTurns += r.NumTurns
	next.DurationMS += r.DurationMS
	next.APIMS += r.APIMS
	next.PermissionDenials = append(slices.Clip(r.PermissionDenials), next.PermissionDenials...)
	*r = next
}

// Err is nil for a result that is no error, and otherwise *[MaxTurnsError], *[BudgetError], *[ThrottleError] or
// *[ResultError]; the first three hold the last.
func (r *Result) Err() error {
	if !r.IsError {
		return nil
	}
	err := &ResultError{
		Subtype: r.Subtype, Errors: r.Errors, Text: r.Text,
		APIStatus: r.APIStatus, TerminalReason: r.TerminalReason, SessionID: r.SessionID,
	}
	switch {
	case r.Subtype == "error_max_turns":
		return &MaxTurnsError{Turns: r.NumTurns, Err: err}
	case r.Subtype == "error_max_budget_usd":
		return &BudgetError{CostUSD: r.CostUSD, Err: err}
	case r.throttled() != "":
		return &ThrottleError{Kind: r.throttled(), Err: err}
	}
	return err
}

// throttled names the failures that waiting may cure.
func (r *Result) throttled() string {
	switch {
	case r.APIStatus == 429:
		return "rate_limit"
	case r.APIStatus == 529:
		return "overloaded"
	case r.APIError == "connection_failed":
		return "timeout"
	}
	return ""
}

type wireResult struct {
	Result         string          `json:"result"`
	Structured     json.RawMessage `json:"structured_output"`
	IsError        json.RawMessage `json:"is_error"`
	Subtype        string          `json:"subtype"`
	Errors         []string        `json:"errors"`
	Usage          Usage           `json:"usage"`
	CostUSD        float64         `json:"total_cost_usd"`
	NumTurns       int             `json:"num_turns"`
	DurationMS     int64           `json:"duration_ms"`
	APIMS          int64           `json:"duration_api_ms"`
	SessionID      string          `json:"session_id"`
	StopReason     string          `json:"stop_reason"`
	TerminalReason string          `json:"terminal_reason"`
	APIStatus      int             `json:"api_error_status"`
	APIError       string          `json:"api_error"`
	StartupFailure string          `json:"startup_failure_reason"`
	Origin         struct {
		Kind string `json:"kind"`
	} `json:"origin"`
	Message  string   `json:"user_message_uuid"`
	Messages []string `json:"user_message_uuids"`
	Denials  []Denial `json:"permission_denials"`
}

// result reads a result frame. Only is_error false together with subtype success is no error: a frame that leaves
// either out must not pass for one.
func (w *wireResult) result() *Result {
	if len(w.Messages) == 0 && w.Message != "" {
		w.Messages = []string{w.Message}
	}
	if string(w.Structured) == "null" {
		w.Structured = nil
	}
	return &Result{
		Text: w.Result, Structured: w.Structured, Subtype: w.Subtype, Errors: shown(w.Errors),
		IsError: string(w.IsError) != "false" || w.Subtype != "success",
		Usage:   w.Usage, CostUSD: w.CostUSD, NumTurns: w.NumTurns, DurationMS: w.DurationMS, APIMS: w.APIMS,
		SessionID: w.SessionID, StopReason: w.StopReason, TerminalReason: w.TerminalReason,
		APIStatus: w.APIStatus, APIError: w.APIError, StartupFailure: w.StartupFailure, Origin: w.Origin.Kind,
		Messages: w.Messages, PermissionDenials: w.Denials,
	}
}

// shown leaves the CLI's internal diagnostics out.
func shown(errs []string) []string {
	return slices.DeleteFunc(errs, func(s string) bool { return strings.HasPrefix(s, "[ede_diagnostic]") })
}
