package model

import (
	"fmt"
	"strings"
)

// ExhaustedError says that the agent asked for more turns than the script has.
type ExhaustedError struct {
	File    string
	Turns   int     // that the script has for this agent
	Request Request // the one too many
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("script %s ran out after %s: asked again with %s", e.File, count(e.Turns), e.Request.brief())
}

// ExpectError says that a request did not say what a turn expects.
type ExpectError struct {
	File    string
	Line    int
	Turn    int    // 1 is the first
	Problem string // `lacks "…"` or `contains "…"`
	Request Request
}

func (e *ExpectError) Error() string {
	return fmt.Sprintf("script %s:%d: turn %d was asked for by a request that %s: %s", e.File, e.Line, e.Turn, e.Problem, e.Request.brief())
}

func count(turns int) string {
	if turns == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", turns)
}

// brief shows what the request says, for an error or a log line.
func (r *Request) brief() string {
	return fmt.Sprintf("%q", clip(strings.TrimSpace(r.said()), 200))
}

// check returns what is wrong with a request that says text: "" for nothing.
func (e Expect) check(text string) string {
	for _, want := range e.Contains {
		if !strings.Contains(text, want) {
			return fmt.Sprintf("lacks %q", want)
		}
	}
	for _, bad := range e.Lacks {
		if strings.Contains(text, bad) {
			return fmt.Sprintf("contains %q", bad)
		}
	}
	return ""
}

// progress is how far a turn has come.
type progress struct {
	attempts int
	errors   int // served
	serving  int // requests that it is being delivered to
	cut      bool
	left     bool // a client went away in the middle
	done     bool
	print    fingerprint // of the conversation that asked last
}

// delivery is what take hands out; exactly one of its fields is meant.
type delivery struct {
	index  int // of the turn
	answer answer
	err    *apiError
}

// breaks reports whether the stream breaks off as the script says.
func (d delivery) breaks() bool { return d.err == nil && d.answer.cut >= 0 }

// play is the state of a script being played. The caller holds the server's lock.
type play struct {
	turns []progress
	err   error // the first failure of the script itself
}

// take chooses what a request gets: the first turn of its lane that is not done. A turn that is being delivered belongs
// to its conversation, so a retry waits for nothing and another conversation gets the next. A turn that a client walked
// out of (an interrupt), or that is an error for good, is over when the conversation has moved on, and comes again when it
// is asked for again.
func (p *play) take(s *Script, r *Request, print fingerprint) delivery {
	turns := 0
	for i, t := range s.turns() {
		if t.Agent != r.Agent {
			continue
		}
		turns++
		st := &p.turns[i]
		if st.print != print && (st.left || st.errors > 0 && t.Error.Repeat == 0) {
			st.done = true
		}
		if st.done || st.serving > 0 && st.print != print {
			continue
		}
		return p.start(s, i, r, print)
	}
	p.fail(&ExhaustedError{File: s.file(), Turns: turns, Request: *r})
	return delivery{err: badRequest(fmt.Sprintf("sandboxrun script %s ran out after %s", s.file(), count(turns))).final()}
}

// start begins a delivery of turn i, which the caller ends with finish.
func (p *play) start(s *Script, i int, r *Request, print fingerprint) delivery {
	t, st := s.Turns[i], &p.turns[i]
	r.Turn = i + 1
	if problem := t.Expect.check(r.said()); problem != "" && st.attempts == 0 {
		err := &ExpectError{File: s.File, Line: t.Line, Turn: i + 1, Problem: problem, Request: *r}
		p.fail(err)
		return delivery{index: i, err: badRequest("sandboxrun " + err.Error()).final()}
	}
	st.attempts++
	st.serving++
	st.left, st.print = false, print
	r.Attempt = st.attempts
	d := delivery{index: i, answer: answer{turn: t, model: r.Model, cut: -1}}
	d.answer.serial = serial{messages: r.Messages, turn: i + 1, attempt: st.attempts}
	switch {
	case t.Error != nil && (t.Error.Repeat == 0 || st.errors < t.Error.Repeat):
		d.err = t.Error.scripted()
	case t.Cut != nil && !st.cut && r.Stream:
		d.answer.cut = *t.Cut
	}
	return d
}

// finish ends a delivery. arrived: all of it was written, as far as one can know.
func (p *play) finish(s *Script, d delivery, arrived bool) {
	t, st := s.Turns[d.index], &p.turns[d.index]
	st.serving--
	switch {
	case !arrived:
		st.left = true
	case d.err != nil:
		st.errors++
		st.done = t.Error.Repeat > 0 && st.errors >= t.Error.Repeat && len(t.Blocks) == 0
	case d.breaks():
		st.cut = true
	default:
		st.done = true
	}
}

func (p *play) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}
