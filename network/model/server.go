package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxBody is the largest request body; the API's own limit is 32 MB.
const maxBody = 64 << 20

// Server plays a script as the Messages API. It is an [http.Handler] for POST /v1/messages, streamed or not, POST
// /v1/messages/count_tokens, GET /v1/models and HEAD /; requests in a proxy's form (with scheme and host) are served
// alike. It may be used by several goroutines; fields must not change once it serves.
//
// A stream that breaks off as the script says panics with [http.ErrAbortHandler], which net/http expects.
type Server struct {
	Script *Script          // nil: a script without turns
	Logger *slog.Logger     // a line per request at debug level; nil: none
	Now    func() time.Time // the clock of [Request.Time]; nil: time.Now

	mu       sync.Mutex
	play     play
	requests []Request
	served   int // requests of any kind
}

// Err returns the first failure of the script itself, an [*ExhaustedError] or an [*ExpectError], or nil. The agent got a
// 400 for it; errors that the script asked for are not failures.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.play.err
}

// Unused returns how many turns nobody has asked for.
func (s *Server) Unused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready()
	n := 0
	for _, st := range s.play.turns {
		if st.attempts == 0 {
			n++
		}
	}
	return n
}

// Requests returns every well-formed request so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ready makes the zero value usable. The caller holds the lock.
func (s *Server) ready() {
	if s.play.turns == nil {
		s.play.turns = make([]progress, len(s.Script.turns()))
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("request-id", s.requestID())
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/messages":
		s.post(w, r, false)
	case "POST /v1/messages/count_tokens":
		s.post(w, r, true)
	case "GET /v1/models":
		s.models(w, r)
	case "HEAD /", "HEAD ":
		w.WriteHeader(http.StatusOK)
	default:
		s.refuse(w, r, &apiError{status: http.StatusNotFound, kind: "not_found_error", message: "Not Found"})
	}
}

func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served++
	return fmt.Sprintf("req_01%022d", s.served)
}

// post serves a request with a body, after the checks that the API makes.
func (s *Server) post(w http.ResponseWriter, r *http.Request, counting bool) {
	wire, problem := receive(w, r, counting)
	if problem != nil {
		s.refuse(w, r, problem)
		return
	}
	q := wire.summary()
	q.Time, q.Kind, q.Agent = s.now(), wire.kind(r.Header, counting), s.Script.lane(wire.firstText())
	switch {
	case q.Kind == KindTurn, q.Kind == KindAside && q.Agent != "":
		s.turn(w, r, q, wire.print())
	case counting:
		s.record(r.Context(), q)
		writeJSON(w, http.StatusOK, object{"input_tokens": max(1, len(compactJSON(wire.Messages))/4)})
	default:
		s.record(r.Context(), q)
		s.deliver(r.Context(), w, aside(wire, q), q.Stream)
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, problem *apiError) {
	s.log(r.Context(), "model request refused", "method", r.Method, "path", r.URL.Path, "status", problem.status, "reason", problem.message)
	problem.write(w)
}

func receive(w http.ResponseWriter, r *http.Request, counting bool) (*wireRequest, *apiError) {
	if problem := authenticate(r.Header); problem != nil {
		return nil, problem
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, kind: "request_too_large", message: "Request exceeds the maximum size"}
	}
	if err != nil {
		return nil, badRequest("The request body could not be read")
	}
	return readRequest(body, counting)
}

// authenticate wants a credential of any value: which one is good is for the real API to say.
func authenticate(h http.Header) *apiError {
	if h.Get("x-api-key") == "" && h.Get("authorization") == "" {
		return &apiError{status: http.StatusUnauthorized, kind: "authentication_error", message: "x-api-key header is required"}
	}
	if h.Get("anthropic-version") == "" {
		return badRequest("anthropic-version: header is required")
	}
	return nil
}

// turn serves a request from the script.
func (s *Server) turn(w http.ResponseWriter, r *http.Request, q Request, print fingerprint) {
	d := s.take(&q, print)
	s.record(r.Context(), q)
	if q.Attempt == 0 { // the script has failed: nothing is being delivered
		d.err.write(w)
		return
	}
	arrived := false
	defer func() { s.finish(d, arrived) }()
	arrived = s.serve(r.Context(), w, d, q.Stream)
	if arrived && d.breaks() {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) take(q *Request, print fingerprint) delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready()
	return s.play.take(s.Script, q, print)
}

func (s *Server) finish(d delivery, arrived bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.play.finish(s.Script, d, arrived)
}

func (s *Server) serve(ctx context.Context, w http.ResponseWriter, d delivery, stream bool) bool {
	if !pause(ctx, d.answer.turn.Delay) {
		return false
	}
	if d.err != nil {
		d.err.write(w)
		return ctx.Err() == nil
	}
	return s.deliver(ctx, w, d.answer, stream)
}

// deliver writes the answer and reports whether the client was there until its end.
func (s *Server) deliver(ctx context.Context, w http.ResponseWriter, a answer, stream bool) bool {
	if !stream {
		writeJSON(w, http.StatusOK, a.message())
		return ctx.Err() == nil
	}
	w.Header().Set("content-type", "text/event-stream; charset=utf-8")
	w.Header().Set("cache-control", "no-cache")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for e := range a.events() {
		if e.name == "content_block_delta" && !pause(ctx, a.turn.ChunkDelay) {
			return false
		}
		if _, err := w.Write(e.bytes()); err != nil {
			return false
		}
		if err := flush.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
	}
	return ctx.Err() == nil
}

// pause waits, and reports whether ctx was still alive at the end.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// aside answers what is not the conversation with something of the form asked for, of which nothing can be made.
func aside(wire *wireRequest, q Request) answer {
	text, stop := "ok", ""
	switch {
	case q.Kind == KindProbe:
		stop = "max_tokens"
	case wire.compacts():
		text = "<summary>ok</summary>"
	case wire.schema() != nil:
		text = string(compactJSON(sample(wire.schema(), 0)))
	}
	t := Turn{Blocks: []Block{{Type: "text", Text: text}}, StopReason: stop}
	return answer{turn: t, model: q.Model, cut: -1, serial: serial{messages: q.Messages}}
}

// models lists the models that requests have named so far, which all exist.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if problem := authenticate(r.Header); problem != nil {
		s.refuse(w, r, problem)
		return
	}
	names := []string{}
	for _, q := range s.Requests() {
		names = append(names, q.Model)
	}
	slices.Sort(names)
	list := []object{}
	for _, name := range slices.Compact(names) {
		list = append(list, object{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"})
	}
	writeJSON(w, http.StatusOK, object{"data": list, "has_more": false, "first_id": nil, "last_id": nil})
}

func (s *Server) record(ctx context.Context, r Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	s.log(ctx, "model request", "kind", string(r.Kind), "turn", r.Turn, "attempt", r.Attempt, "agent", r.Agent,
		"model", r.Model, "stream", r.Stream, "messages", r.Messages, "said", r.brief())
}

func (s *Server) log(ctx context.Context, message string, args ...any) {
	cmp.Or(s.Logger, slog.New(slog.DiscardHandler)).DebugContext(ctx, message, args...)
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
