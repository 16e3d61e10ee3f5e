package claude

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

const (
	// idleWait is how long after a result background work may go on before the turn counts as over.
	idleWait = 10 * time.Minute
	// grace is how long a CLI that does not say when it is idle may add to its result.
	grace = 250 * time.Millisecond
)

// errLeft says that the caller left the loop.
var errLeft = errors.New("loop left")

type userMessage struct {
	Type      string      `json:"type"`
	Message   userContent `json:"message"`
	Parent    *string     `json:"parent_tool_use_id"`
	SessionID string      `json:"session_id"`
	UUID      string      `json:"uuid"`

	// ClientComposed has the text delivered as it is: "/cost" is no command, "@file" attaches nothing.
	ClientComposed bool `json:"client_composed"`
}

type userContent struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Turn sends a prompt when the loop begins, yields what happens, and ends when the CLI is idle again. An error comes
// last, with a zero event: what [Result.Err] says of the last result, [ErrNoStructured], *[NoResultError],
// *[DecodeError], [ErrBusy], or the context's cause. Leaving the loop or ending the context interrupts the turn, and
// the session is closed if the CLI does not obey within [Options].StopTimeout.
func (s *Session) Turn(ctx context.Context, prompt string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !s.turning.TryLock() {
			yield(Event{}, ErrBusy)
			return
		}
		defer s.turning.Unlock()
		t := turn{Session: s, id: newUUID(), yield: yield}
		if err := t.run(ctx, prompt); err != nil && !t.left {
			yield(Event{}, err)
		}
	}
}

// turn is the state of one loop over events.
type turn struct {
	*Session
	id    string // of the user message
	yield func(Event, error) bool
	left  bool // the caller takes no more

	ours     bool    // the result for our message is in
	result   *Result // the last one since
	taken    bool    // the CLI gave our message back without beginning with it
	done     bool    // and nothing is left to wait for
	states   bool    // the CLI says when it is idle
	failures int     // calls to the model API that failed
	deadline time.Time
}

func (t *turn) run(ctx context.Context, prompt string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message := userMessage{
		Type: "user", Message: userContent{"user", prompt}, UUID: t.id, ClientComposed: true,
	}
	if err := t.send(ctx, message); err != nil && !t.gone() {
		t.abort() // part of the line may be on its way
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &NoResultError{Err: fmt.Errorf("send prompt: %w", err)}
	}
	err := t.follow(ctx)
	switch {
	case t.done:
		return t.verdict()
	case t.left || ctx.Err() != nil:
		t.stop(ctx)
		return context.Cause(ctx)
	}
	return noResult(err)
}

// follow yields events until the turn is done, the caller leaves, or there are no more.
func (t *turn) follow(ctx context.Context) error {
	for {
		e, err := t.next(ctx)
		if err != nil {
			t.done = t.over() && ctx.Err() == nil // after a result, the end of output or of patience ends the turn
			return err
		}
		t.see(e)
		t.done = t.over() && e.Kind == KindState && e.Text == "idle"
		if !t.left && !t.yield(e, nil) {
			t.left = true
			return errLeft
		}
		if t.done {
			return nil
		}
	}
}

// next takes an event, waiting no longer than the turn's deadline once there is one. The context goes first: events
// may come faster than anyone can take them.
func (t *turn) next(ctx context.Context) (Event, error) {
	if ctx.Err() != nil {
		return Event{}, context.Cause(ctx)
	}
	if !t.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.deadline)
		defer cancel()
	}
	return t.events.take(ctx)
}

// over says that there will be no other result unless background work brings one.
func (t *turn) over() bool { return t.ours || t.taken }

func (t *turn) see(e Event) {
	before := t.over()
	switch e.Kind {
	case KindState:
		t.states = true
	case KindAPIRetry:
		t.failures++
	case KindResult:
		t.ours = t.ours || len(e.Result.Messages) == 0 && e.Result.Origin == "" || slices.Contains(e.Result.Messages, t.id)
		if t.ours {
			t.result = e.Result
		}
	case KindLifecycle:
		t.taken = t.taken || e.MessageID == t.id && e.Text == "cancelled"
	}
	if !before && t.over() {
		t.deadline = time.Now().Add(grace)
		if t.states {
			t.deadline = time.Now().Add(idleWait)
		}
	}
}

// stop interrupts the turn and takes the rest of it. A CLI that goes on regardless loses its connection.
func (t *turn) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.opts.StopTimeout)
	defer cancel()
	err := t.Interrupt(ctx)
	for err == nil && !t.done {
		if err = t.follow(ctx); err == errLeft { // while the context was ending
			err = nil
		}
	}
	if !t.done {
		t.opts.Log.Warn("interrupt claude", "err", err)
		t.abort()
	}
}

func (t *turn) verdict() error {
	if t.result == nil {
		return ErrInterrupted // taken back before it began
	}
	err := t.result.Err()
	var throttled *ThrottleError
	if errors.As(err, &throttled) {
		throttled.Attempts = t.failures + 1
	}
	if err == nil && t.opts.Schema != nil && t.result.Structured == nil {
		return ErrNoStructured
	}
	return err
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
