package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

var errNotObject = errors.New("not a JSON object")

// Decode reads one line of the CLI's output. It gives at least one event: frames, blocks and fields that it does not
// know are kept in Raw, and a known field of the wrong type counts as absent. Only a line that is no JSON object is an
// error, a *[DecodeError]. Decode keeps line.
func Decode(line []byte) ([]Event, error) {
	f, err := parseFrame(line)
	if err != nil {
		return nil, err
	}
	return f.events(), nil
}

// frame is one line, taken apart as far as everyone needs it.
type frame struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Parent    string          `json:"parent_tool_use_id"`
	Message   json.RawMessage `json:"message"`
	Event     json.RawMessage `json:"event"`
	Error     string          `json:"error"`
	Command   string          `json:"command_uuid"`
	State     string          `json:"state"`

	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`

	raw json.RawMessage
}

func parseFrame(line []byte) (*frame, error) {
	line = bytes.TrimSpace(line)
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD")) // Raw must be JSON
	}
	if len(line) == 0 || line[0] != '{' {
		return nil, newDecodeError(line, errNotObject)
	}
	f := &frame{raw: line}
	if err := lenient(line, f); err != nil {
		return nil, newDecodeError(line, err)
	}
	return f, nil
}

// lenient unmarshals what fits. A value of the wrong type is skipped by encoding/json and the rest still decoded; only
// broken JSON is an error.
func lenient(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return nil
	}
	return err
}

// fill is lenient for a part of a frame, which parseFrame found to be JSON, or which is absent.
func fill(data []byte, v any) {
	if len(data) == 0 {
		return
	}
	if err := lenient(data, v); err != nil {
		panic("BUG: frame is not JSON: " + err.Error())
	}
}

func (f *frame) events() []Event {
	e := Event{
		Kind: KindUnknown, Type: f.Type, Subtype: f.Subtype, SessionID: f.SessionID, Parent: f.Parent, Raw: f.raw,
	}
	switch f.Type {
	case "assistant", "user":
		return f.messageEvents(e)
	case "system":
		f.systemEvent(&e)
	case "stream_event":
		f.streamEvent(&e)
	case "result":
		var w wireResult
		fill(f.raw, &w)
		e.Kind, e.Result, e.IsError = KindResult, w.result(), w.result().IsError
	case "command_lifecycle":
		e.Kind, e.MessageID, e.Text = KindLifecycle, f.Command, f.State
	case "control_request":
		f.requestEvent(&e)
	case "control_response", "control_cancel_request":
		e.Kind = KindControl
	}
	return []Event{e}
}

func (f *frame) requestEvent(e *Event) {
	var r ToolRequest
	fill(f.Request, &r)
	e.Kind, e.Subtype = KindControl, f.requestSubtype()
	if e.Subtype == "can_use_tool" {
		e.Kind = KindPermissionRequest
		e.ToolName, e.ToolID, e.Input, e.Text = r.ToolName, r.ToolID, r.Input, r.Reason
	}
}

func (f *frame) requestSubtype() string {
	var r struct {
		Subtype string `json:"subtype"`
	}
	fill(f.Request, &r)
	return r.Subtype
}
