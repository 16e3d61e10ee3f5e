package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
)

// outgoing is a line on its way to the writer, which says on done how it went.
type outgoing struct {
	line []byte
	done chan error
}

// write is the writer's goroutine: one line at a time, so that a context that ends never leaves half of one behind.
func (s *Session) write() {
	for {
		select {
		case o := <-s.out:
			_, err := s.conn.Write(o.line)
			o.done <- err
		case <-s.ctx.Done():
			return
		}
	}
}

// send writes a frame. Without an error the CLI's input has it.
func (s *Session) send(ctx context.Context, frame any) error {
	line, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	o := outgoing{append(line, '\n'), make(chan error, 1)}
	select {
	case s.out <- o:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return ErrEnded
	}
	select {
	case err := <-o.done:
		return s.written(ctx, err)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ctx.Done():
		return ErrEnded
	}
}

// written makes the end of the session out of a failed write, giving the reader time for the CLI's last words.
func (s *Session) written(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.StopTimeout)
	defer cancel()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

// reply is the body of a control_response.
type reply struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response,omitempty"`
	Error     string          `json:"error,omitempty"`
	ErrorCode string          `json:"error_code,omitempty"`
}

type controlResponse struct {
	Type     string `json:"type"`
	Response reply  `json:"response"`
}

type controlRequest struct {
	Type      string         `json:"type"`
	RequestID string         `json:"request_id"`
	Request   map[string]any `json:"request"`
}

// Control sends any control request that the CLI knows, and returns the answer's payload, which may be empty. A
// refusal is a *[ControlError]. It waits until the CLI answers, has ended, or the context is over.
func (s *Session) Control(ctx context.Context, subtype string, fields map[string]any) (json.RawMessage, error) {
	defer s.events.hurried()() // the answer may be behind events that only our caller takes
	request := map[string]any{}
	maps.Copy(request, fields)
	request["subtype"] = subtype

	id, answer := s.expect()
	defer s.forget(id)
	if err := s.send(ctx, controlRequest{"control_request", id, request}); err != nil {
		return nil, fmt.Errorf("%s: %w", subtype, err)
	}
	select {
	case r := <-answer:
		return r.payload(subtype)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", subtype, context.Cause(ctx))
	case <-s.ended:
	}
	select {
	case r := <-answer: // it came with the last words
		return r.payload(subtype)
	default:
		return nil, fmt.Errorf("%s: %w", subtype, s.why())
	}
}

func (r reply) payload(subtype string) (json.RawMessage, error) {
	if r.Subtype != "success" {
		return nil, &ControlError{Subtype: subtype, Message: Redact(r.Error), Code: r.ErrorCode}
	}
	return r.Response, nil
}

func (s *Session) expect() (id string, answer chan reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id, answer = strconv.Itoa(s.last), make(chan reply, 1)
	s.calls[id] = answer
	return id, answer
}

func (s *Session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// deliver hands an answer to whoever waits for it. One that nobody waits for is late or made up: dropped.
func (s *Session) deliver(f *frame) {
	var r reply
	fill(f.Response, &r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.calls[r.RequestID]; answer != nil {
		delete(s.calls, r.RequestID)
		answer <- r
	}
}

// Interrupt ends the turn that runs, if any, and takes back a prompt that the CLI has not begun with. The turn's
// loop sees the result; the session can go on.
func (s *Session) Interrupt(ctx context.Context) error {
	_, err := s.Control(ctx, "interrupt", map[string]any{"cancel_queued": true})
	return err
}

// SetPermissionMode changes the mode for tool calls to come. The CLI refuses bypassPermissions unless it was started
// with it.
func (s *Session) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	_, err := s.Control(ctx, "set_permission_mode", map[string]any{"mode": mode})
	return err
}

// SetModel changes the model. The CLI tries a new one with a request of one token first.
func (s *Session) SetModel(ctx context.Context, model string) error {
	_, err := s.Control(ctx, "set_model", map[string]any{"model": model})
	return err
}
