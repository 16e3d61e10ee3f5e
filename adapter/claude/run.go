package claude

import (
	"context"
	"io"
	"iter"
)

// Run is a session of one turn: it takes conn over when the loop begins, and closes it when the loop ends. Errors are
// those of [Open] and [Session.Turn], last.
func Run(ctx context.Context, conn io.ReadWriteCloser, opts Options, prompt string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s, err := Open(ctx, conn, opts)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer s.Close()
		s.Turn(ctx, prompt)(yield)
	}
}
