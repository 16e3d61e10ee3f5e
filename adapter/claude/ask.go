package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// asking is how many requests of the CLI may be open at once. A turn has a few; more is a flood.
const asking = 256

var errFlood = errors.New("claude sent too many requests at once")

// ToolRequest is a permission question.
type ToolRequest struct {
	ToolName    string          `json:"tool_name"`
	ToolID      string          `json:"tool_use_id"`
	Input       json.RawMessage `json:"input"`
	Description string          `json:"description"`
	Reason      string          `json:"decision_reason"` // why the CLI asks
	BlockedPath string          `json:"blocked_path"`
	AgentID     string          `json:"agent_id"` // the subagent that wants it
}

// Answer is the reply to a [ToolRequest]. The zero value denies.
type Answer struct {
	Allow     bool
	Input     json.RawMessage // with Allow: run with this input instead; nil keeps it
	Reason    string          // without: what the model is told
	Interrupt bool            // without: end the turn as well
}

func (a Answer) payload() map[string]any {
	if !a.Allow {
		return map[string]any{"behavior": "deny", "message": a.Reason, "interrupt": a.Interrupt}
	}
	p := map[string]any{"behavior": "allow"}
	if a.Input != nil {
		p["updatedInput"] = a.Input
	}
	return p
}

// question is a request of the CLI that has no answer yet.
type question struct{ cancel context.CancelFunc }

// answer replies to a request of the CLI, on a goroutine of its own.
func (s *Session) answer(f *frame) error {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= asking {
		cancel()
		return errFlood
	}
	q := &question{cancel}
	s.open++
	s.asked[f.RequestID] = q
	go func() {
		defer s.answered(f.RequestID, q)
		r := s.replyTo(ctx, f)
		if ctx.Err() != nil {
			return // withdrawn: an answer would be one too many
		}
		if err := s.send(ctx, controlResponse{"control_response", r}); err != nil {
			s.opts.Log.Warn("answer claude", "request", f.requestSubtype(), "err", err)
		}
	}()
	return nil
}

func (s *Session) answered(id string, q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.cancel()
	s.open--
	if s.asked[id] == q {
		delete(s.asked, id)
	}
}

// withdraw obeys a control_cancel_request.
func (s *Session) withdraw(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.asked[id]; q != nil {
		q.cancel()
	}
}

func (s *Session) replyTo(ctx context.Context, f *frame) reply {
	var payload map[string]any
	switch subtype := f.requestSubtype(); subtype {
	case "can_use_tool":
		var r ToolRequest
		fill(f.Request, &r)
		payload = s.ask(ctx, r).payload()
	case "hook_callback": // we register none: no opinion
	case "elicitation":
		payload = map[string]any{"action": "decline"}
	default:
		return reply{
			Subtype: "error", RequestID: f.RequestID,
			Error: "unsupported request: " + subtype, ErrorCode: "unsupported_request",
		}
	}
	if payload == nil {
		payload = map[string]any{}
	}
	body, err := json.Marshal(payload)
	if err != nil { // an Answer.Input that is no JSON; the CLI takes an error for a denial
		return reply{Subtype: "error", RequestID: f.RequestID, Error: "encode answer: " + err.Error()}
	}
	return reply{Subtype: "success", RequestID: f.RequestID, Response: body}
}

// ask has the caller decide. A handler that panics has not allowed anything.
func (s *Session) ask(ctx context.Context, r ToolRequest) (a Answer) {
	if s.opts.Ask == nil {
		return Answer{Reason: unasked(r)}
	}
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log.Error("permission handler panicked", "tool", r.ToolName, "panic", p)
			a = Answer{Reason: "the permission handler broke down"}
		}
	}()
	return s.opts.Ask(ctx, r)
}

// unasked is a refusal that says whom to turn to.
func unasked(r ToolRequest) string {
	if r.ToolName == "SandboxNetworkAccess" { // what the CLI's own sandbox calls a connection
		var in struct {
			Host string `json:"host"`
		}
		fill(r.Input, &in)
		return fmt.Sprintf("nobody answers questions in this run: %q is not among the allowed domains, "+
			"and whoever starts the run can add it; retrying will not help", in.Host)
	}
	return fmt.Sprintf("nobody answers questions in this run: %s needs a permission that whoever starts the run can "+
		"give, by naming it in the allowed tools or by another permission mode; retrying will not help", r.ToolName)
}
