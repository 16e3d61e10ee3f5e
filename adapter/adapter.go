// Package adapter runs agents hermetically. [Run] is a whole Claude Code session, [Exec] any command: a policy goes in,
// a sandbox is made, a gateway serves it, and a [Result] with the answer, the denials and the changes comes out.
//
//	cfg, err := isolation.Load("api-only")
//	…
//	res, err := adapter.Run(ctx, cfg, adapter.Task{Prompt: "fix the failing test", Workspace: "."})
//	…
//	defer res.Close()
//	err = res.WritePatch(os.Stdout)
//
// Runs are independent: any number may go on in one process. Nothing of a run is on the host's disk unless the policy
// keeps the workspace there, and nothing of it survives the process.
//
// It does not protect the hosts that the policy allows, nor what is sent to them, nor against bugs of the kernel.
package adapter

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network"
)

// Event is one thing that happened in an agent's session; see [claude.Event].
type Event = claude.Event

// Result is what a run leaves: nothing but values, and descriptors that Close releases.
type Result struct {
	ID       string // of the run, random
	Plan     *isolation.Plan
	Exit     isolation.Exit
	Duration time.Duration
	Denials  []network.Record // connections that the policy refused, in order

	// Answer is how the agent's session ended. Nil for [Exec].
	Answer *claude.Result

	// Changes is what the run did to its workspace. Nil when it had none.
	Changes *ephemeral.Changes

	process *isolation.Process
}

// WritePatch writes the changes as a patch that git apply takes, and counts those for which a patch has no word. Without
// changes it writes nothing.
func (r *Result) WritePatch(w io.Writer) (ephemeral.Omitted, error) {
	if r.Changes == nil {
		return ephemeral.Omitted{}, nil
	}
	return r.Changes.WritePatch(w)
}

// Apply writes the changes into the workspace on the host, all but the policy's protected paths and what the host has
// changed meanwhile; see [ephemeral.Changes.Apply]. Without changes it does nothing.
func (r *Result) Apply() (*ephemeral.Applied, error) {
	if r.Changes == nil {
		return &ephemeral.Applied{}, nil
	}
	return r.Changes.Apply(r.process.Layers()[0].Lower, ephemeral.ApplyOptions{Protected: r.Plan.Protected})
}

// Close releases the changes. It may be called more than once.
func (r *Result) Close() error {
	if r == nil || r.process == nil {
		return nil
	}
	return r.process.Close()
}

// watch is who wants to know of the connections of a run.
type watch struct {
	audit   io.Writer            // nil: nobody
	observe func(network.Record) // nil: nobody
}

// box is what every run needs before its command is known: a plan, and a gateway that collects denials.
type box struct {
	id      string
	plan    *isolation.Plan
	gateway *network.Gateway
	denials denials
	audit   *network.Audit // nil: none
	abort   func(error)    // ends the run
	started time.Time
}

// newBox decides what the run sets up. Nothing is started yet.
func newBox(cfg *isolation.Config, workspace, agent string, model *modelSource, w watch) (*box, error) {
	host, err := isolation.ProbeHost(cfg, cmp.Or(workspace, "."), agent)
	if err != nil {
		return nil, err
	}
	if model != nil {
		host.ModelCA = string(model.route.CA.PEM())
	}
	plan, err := cfg.Plan(host)
	if err != nil {
		return nil, err
	}
	b := &box{id: strings.ToLower(rand.Text()), plan: plan, started: time.Now(), abort: func(error) {}}
	if w.audit != nil {
		b.audit = network.NewAudit(w.audit, b.id)
	}
	b.gateway = &network.Gateway{Policy: plan.Network, Limits: network.Limits{Connections: plan.Limits.Connections}}
	b.gateway.Observe = func(r network.Record) { b.record(r, w.observe) }
	if model != nil {
		b.gateway.Model = model.route
	}
	return b, nil
}

// record takes in a decision of the gateway. A run whose audit cannot be written does not go on.
func (b *box) record(r network.Record, observe func(network.Record)) {
	b.denials.add(r)
	if b.audit != nil {
		if err := b.audit.Record(r); err != nil {
			b.abort(err)
		}
	}
	if observe != nil {
		observe(r)
	}
}

// abortable returns a context that record can end.
func (b *box) abortable(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b.abort = cancel
	return ctx, func() { cancel(nil) }
}

// finish waits for the end of the process and reads what it changed. A Result comes back even with an error.
func (b *box) finish(p *isolation.Process) (*Result, error) {
	exit, err := p.Wait()
	if b.audit != nil {
		err = errors.Join(err, b.audit.Close())
	}
	res := &Result{ID: b.id, Plan: b.plan, Exit: exit, process: p, Denials: b.denials.list()}
	if layers := p.Layers(); len(layers) > 0 {
		changes, errChanges := layers[0].Changes()
		if errChanges != nil {
			err = errors.Join(err, fmt.Errorf("read changes: %w", errChanges))
		}
		res.Changes = changes
	}
	res.Duration = time.Since(b.started)
	return res, err
}

// PlanRun returns what [Run] would set up, and starts nothing.
func PlanRun(ctx context.Context, cfg *isolation.Config, t Task) (*isolation.Plan, error) {
	cli, err := findCLI(t.CLI)
	if err != nil {
		return nil, err
	}
	model, err := newModel(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b, err := newBox(cfg, t.Workspace, cli, model, watch{})
	if err != nil {
		return nil, err
	}
	return b.plan, nil
}

// PlanExec returns what [Exec] would set up, and starts nothing.
func PlanExec(cfg *isolation.Config, t ExecTask) (*isolation.Plan, error) {
	b, err := newBox(cfg, t.Workspace, "", nil, watch{})
	if err != nil {
		return nil, err
	}
	return b.plan, nil
}
