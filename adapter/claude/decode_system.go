package claude

import (
	"cmp"
	"strings"
)

type wireSystem struct {
	Init
	Retry
	Model    string `json:"model"`
	State    string `json:"state"`
	Status   string `json:"status"`
	Content  string `json:"content"`
	Text     string `json:"text"`
	Message  string `json:"message"`
	ToolName string `json:"tool_name"`
	ToolID   string `json:"tool_use_id"`
}

func (f *frame) systemEvent(e *Event) {
	var w wireSystem
	fill(f.raw, &w)
	switch f.Subtype {
	case "init":
		e.Kind, e.Init, e.Model = KindInit, &w.Init, w.Model
	case "session_state_changed":
		e.Kind, e.Text = KindState, w.State
	case "status":
		e.Kind, e.Text = KindStatus, w.Status
	case "permission_denied":
		e.Kind, e.ToolName, e.ToolID, e.Text = KindPermissionDenied, w.ToolName, w.ToolID, w.Message
	case "api_retry":
		e.Kind, e.Retry = KindAPIRetry, &w.Retry
	default:
		w.noteEvent(e)
	}
}

func (w *wireSystem) noteEvent(e *Event) {
	switch {
	case e.Subtype == "informational", e.Subtype == "notification", strings.HasPrefix(e.Subtype, "model_"):
		e.Kind, e.Text = KindNotice, cmp.Or(w.Content, w.Text, w.Message)
	case strings.HasPrefix(e.Subtype, "task_"):
		e.Kind, e.ToolID, e.Text = KindTask, w.ToolID, w.Status
	}
}
