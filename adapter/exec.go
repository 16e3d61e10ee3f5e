package adapter

import (
	"context"
	"io"
	"os"

	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network"
)

// ExecTask is a command to run in a sandbox. The streams are those of [isolation.Command].
type ExecTask struct {
	Args           []string
	Workspace      string // directory on the host; "": the current one
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal gives the command a terminal of its own instead of the streams, and Attach its other side, until it
	// returns; both or neither.
	Terminal *isolation.Terminal
	Attach   func(master *os.File)

	Audit       io.Writer            // gets the audit, see [network.Audit]; nil: none
	Connections func(network.Record) // called for every decision of the gateway, from several goroutines; nil: not
}

// Exec runs a command under the policy. An error means that the sandbox could not be made or broke; the command's own
// end, good or bad, is in Result.Exit. When ctx ends, so does the run; see [isolation.Plan.Start].
func Exec(ctx context.Context, cfg *isolation.Config, t ExecTask) (*Result, error) {
	b, err := newBox(cfg, t.Workspace, "", nil, watch{t.Audit, t.Connections})
	if err != nil {
		return nil, err
	}
	ctx, cancel := b.abortable(ctx)
	defer cancel()
	p, err := b.plan.Start(ctx, isolation.Command{
		Args: t.Args, Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Terminal: t.Terminal, Gateway: b.gateway,
	})
	if err != nil {
		return nil, err
	}
	if master := p.Terminal(); master != nil && t.Attach != nil {
		t.Attach(master)
	}
	return b.finish(p)
}
