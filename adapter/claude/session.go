package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Session is a running CLI that has accepted its options. Turns go one at a time; the other methods may be called from
// any goroutine, also while a turn runs.
type Session struct {
	conn io.ReadWriteCloser
	opts Options
	info Info

	ctx    context.Context // of permission questions; ends with the session
	cancel context.CancelFunc

	out     chan outgoing
	events  *queue
	skipped atomic.Int64
	turning sync.Mutex

	mu    sync.Mutex
	calls map[string]chan reply // our requests that wait for an answer
	asked map[string]*question
	open  int // questions being answered, withdrawn ones included
	last  int // number of our last request

	ended chan struct{} // the reader is done; err says why
	err   error

	workers   sync.WaitGroup // reader and writer
	closeOnce sync.Once
	closeErr  error
}

// Open takes conn over: it has the CLI initialised, checks that it is one we know and that it goes by its options and
// settings, and returns a session that waits for a prompt. An error is a *[StartupError], and conn is closed then.
// The context counts for Open only. Close of conn must end a Read and a Write in progress, as it does
// for pipes and sockets.
func Open(ctx context.Context, conn io.ReadWriteCloser, opts Options) (*Session, error) {
	s := &Session{
		conn: conn, opts: opts.withDefaults(),
		out: make(chan outgoing), events: newQueue(),
		calls: map[string]chan reply{}, asked: map[string]*question{},
		ended: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.workers.Go(s.read)
	s.workers.Go(s.write)
	if err := s.start(ctx); err != nil {
		s.abort()
		return nil, err
	}
	return s, nil
}

// Info is what the CLI said of itself when the session began.
func (s *Session) Info() Info { return s.info }

// Skipped counts the lines of output so far that were no protocol, and were left out.
func (s *Session) Skipped() int { return int(s.skipped.Load()) }

// Close asks the CLI to end, closes its input and then, at the latest after [Options].StopTimeout, the connection. It
// does not wait for permission questions in progress, whose context it cancels. A second call returns the same error.
func (s *Session) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.end() })
	return s.closeErr
}

func (s *Session) end() error {
	defer s.events.hurried()() // nobody may be taking events any more
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.StopTimeout)
	defer cancel()
	if _, err := s.Control(ctx, "end_session", nil); err != nil {
		s.opts.Log.Debug("end session", "err", err)
	}
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			s.opts.Log.Debug("close input of claude", "err", err)
		}
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return s.shut()
}

// abort ends a session whose CLI cannot be expected to answer.
func (s *Session) abort() {
	s.closeOnce.Do(func() {
		defer s.events.hurried()()
		s.closeErr = s.shut()
	})
}

func (s *Session) shut() error {
	s.cancel()
	err := s.conn.Close()
	s.workers.Wait()
	if err != nil {
		return fmt.Errorf("close connection to claude: %w", err)
	}
	return nil
}

// read is the reader's goroutine. It never waits for anyone but the caller's loop, and for that only when [held]
// bytes lie there.
func (s *Session) read() {
	in := newLines(s.conn, s.opts.MaxLine)
	err := s.readAll(in)
	if bad := (*DecodeError)(nil); in.partial && errors.As(err, &bad) {
		err = &cutShort{err}
	}
	s.err = err
	close(s.ended)
	s.cancel()
	s.events.close(err)
}

func (s *Session) readAll(in *lines) error {
	for {
		line, err := in.next()
		if errors.Is(err, ErrLineTooLong) {
			return newDecodeError(line, err)
		}
		if err != nil {
			return err
		}
		if line[0] != '{' {
			s.skip(line)
			continue
		}
		if err := s.dispatch(line); err != nil {
			return err
		}
	}
}

// skip passes over output that is no frame: a runtime's warning ended up on the wrong stream.
func (s *Session) skip(line []byte) {
	s.skipped.Add(1)
	s.opts.Log.Warn("claude wrote a line that is no frame", "line", newDecodeError(line, nil).Line)
}

func (s *Session) dispatch(line []byte) error {
	f, err := parseFrame(line)
	if err != nil {
		return err
	}
	switch f.Type {
	case "control_response":
		s.deliver(f)
	case "control_cancel_request":
		s.withdraw(f.RequestID)
	case "control_request":
		if err := s.answer(f); err != nil {
			return err
		}
	}
	now := s.opts.Now()
	for _, e := range f.events() {
		if e.Time = now; e.Kind != KindControl {
			s.events.put(e)
		}
	}
	return nil
}

// cutShort is what was wrong with output that stopped in the middle of a line.
type cutShort struct{ err error }

func (e *cutShort) Error() string { return "output stops in the middle of a line" }
func (e *cutShort) Unwrap() error { return e.err }

// noResult is the error of a turn that was still running when the reader stopped.
func noResult(err error) error {
	var cut *cutShort
	var bad *DecodeError
	switch {
	case errors.As(err, &cut):
		return &NoResultError{Err: cut}
	case errors.As(err, &bad):
		return bad
	case err == io.EOF:
		return &NoResultError{}
	}
	return &NoResultError{Err: err}
}

// gone says that the reader is done.
func (s *Session) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// why is the reason for the end of the session, as far as there is one.
func (s *Session) why() error {
	if !s.gone() || s.err == io.EOF {
		return ErrEnded
	}
	return fmt.Errorf("%w: %w", ErrEnded, s.err)
}
