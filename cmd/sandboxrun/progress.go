package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/network"
)

// progress prints on standard error what happens as it happens: what the agent says, its tools and what became of them,
// denials, and at the end time, tokens and cost.
type progress struct {
	mu      sync.Mutex
	p       *printer
	quiet   bool
	verbose bool
	started time.Time
	tools   map[string]string // what each call does, until its result
}

func newProgress(p *printer, f runFlags) *progress {
	return &progress{p: p, quiet: f.quiet, verbose: f.verbose, started: time.Now(), tools: map[string]string{}}
}

func (g *progress) event(e adapter.Event) {
	if g.quiet {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch e.Kind {
	case claude.KindInit:
		g.line(dim, "model %s, tools %s", e.Model, strings.Join(initTools(e), " "))
	case claude.KindText:
		g.line("", "%s", clip(e.Text, 400))
	case claude.KindToolUse:
		g.tools[e.ToolID] = e.ToolName
		g.line("", "%s: %s", e.ToolName, clip(subject(e.Input), 200))
	case claude.KindToolResult:
		g.result(e)
	case claude.KindPermissionDenied:
		g.line(red, "denied %s: %s", e.ToolName, clip(e.Text, 200))
	case claude.KindAPIRetry:
		g.line(yellow, "model API failed, trying again: %s", describeRetry(e.Retry))
	}
}

func (g *progress) result(e adapter.Event) {
	tool := cmp.Or(g.tools[e.ToolID], "tool")
	delete(g.tools, e.ToolID)
	if e.IsError {
		g.line(red, "%s failed: %s", tool, clip(e.Text, 600))
		return
	}
	g.line(dim, "%s ok: %s", tool, clip(e.Text, 200))
}

// connection prints what the gateway decided: denials always, the rest on request.
func (g *progress) connection(r network.Record) {
	if g.quiet || !g.verbose && r.Verdict == network.Allow {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.p.connection(r)
}

// end prints what the run took and cost.
func (g *progress) end(res *adapter.Result) {
	if g.quiet || res == nil || res.Answer == nil {
		return
	}
	a := res.Answer
	g.line(dim, "%.1f s, %d turns, %d tokens in, %d out, $%.4f", time.Since(g.started).Seconds(), a.NumTurns,
		a.Usage.Input+a.Usage.CacheRead+a.Usage.CacheWrite, a.Usage.Output, a.CostUSD)
}

func (g *progress) line(color, format string, args ...any) {
	text := fmt.Sprintf("[%5.1fs] ", time.Since(g.started).Seconds()) + fmt.Sprintf(format, args...)
	if color == "" {
		g.p.line("%s", text)
		return
	}
	g.p.colored(color, "%s", text)
}

func initTools(e adapter.Event) []string {
	if e.Init == nil {
		return nil
	}
	return e.Init.Tools
}

func describeRetry(r *claude.Retry) string {
	if r == nil {
		return "no reason given"
	}
	return fmt.Sprintf("attempt %d of %d, %s", r.Attempt, r.Max, cmp.Or(r.Error, fmt.Sprint("status ", r.Status)))
}

// subject is what a tool call is about, for one line.
func subject(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return string(input)
	}
	for _, name := range []string{"command", "file_path", "pattern", "query", "url", "description", "prompt"} {
		if text, ok := fields[name].(string); ok && text != "" {
			return text
		}
	}
	return string(input)
}

// clip shortens to n bytes at a rune's border.
func clip(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// connection prints one decision of the gateway.
func (p *printer) connection(r network.Record) {
	if r.Verdict == network.Deny {
		p.colored(red, "denied connection to %s: %s", destination(r), cmp.Or(r.Reason, r.Rule))
		return
	}
	p.colored(dim, "%s %s %s (%s)", r.Event, r.Via, destination(r), r.Rule)
}

func destination(r network.Record) string {
	if r.Host.IsZero() {
		return "(no valid host)"
	}
	if r.Port == 0 {
		return r.Host.String()
	}
	return r.Host.Authority(r.Port)
}
