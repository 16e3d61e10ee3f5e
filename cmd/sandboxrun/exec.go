package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network"
)

func runExec(args []string, std stdio) int {
	var f runFlags
	flags := newFlags("exec", "[--] CMD ARG…", "no-network", &f, std.err)
	if status, ok := parse(flags, args, std); !ok {
		return status
	}
	p := newPrinter(std.err, f.noColor)
	if flags.NArg() == 0 {
		return p.failed(&usageError{errors.New("exec needs a command")})
	}
	cfg, err := f.load()
	if err != nil {
		return p.failed(err)
	}
	task := adapter.ExecTask{Args: flags.Args(), Workspace: f.workspace}
	if f.dryRun {
		plan, err := adapter.PlanExec(cfg, task)
		return p.printPlan(std, plan, err)
	}
	f.warn(p, cfg)
	ctx, stop := interruptible()
	defer stop()
	task.Stdin, task.Stdout, task.Stderr = std.in, std.out, std.err
	if task.Terminal = wantsTerminal(std); task.Terminal != nil {
		task.Attach = func(master *os.File) { attach(std, master) }
	}
	if f.verbose {
		task.Connections = func(r network.Record) { p.connection(r) }
	}
	audit, closeAudit, err := f.openAudit()
	if err != nil {
		return p.failed(err)
	}
	task.Audit = audit
	res, err := adapter.Exec(ctx, cfg, task)
	err = errors.Join(err, closeAudit())
	if res != nil {
		defer res.Close()
	}
	return f.finish(ctx, p, res, err)
}

// parse reads the flags. When there is nothing to run any more it says with which status to end.
func parse(flags *flag.FlagSet, args []string, std stdio) (status int, ok bool) {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	case err != nil:
		fmt.Fprintf(std.err, "sandboxrun: hint: sandboxrun %s -h\n", flags.Name())
		return statusUsage, false
	}
	return 0, true
}

// interruptible returns a context that SIGINT, SIGTERM and SIGHUP end, with the signal as its cause.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			cancel(isolation.Interrupt(s.(syscall.Signal)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// finish writes the patch, applies, sums up, and returns the exit status of the run.
func (f *runFlags) finish(ctx context.Context, p *printer, res *adapter.Result, err error) int {
	if res == nil {
		return p.failed(err)
	}
	status := res.Exit.Status()
	if res.Answer != nil {
		status = 0 // the CLI's own exit status says less than its answer
	}
	var by isolation.Interrupt
	switch {
	case err != nil && errors.As(context.Cause(ctx), &by):
		p.colored(red, "%s", by)
		status = 128 + int(by)
	case err != nil:
		status = p.failed(err)
	}
	if res.Exit.Cause == isolation.WallTime {
		p.colored(red, "%s (limits.wall_time %s)", res.Exit, res.Plan.Limits.WallTime)
		status = res.Exit.Status()
	}
	if f.patch != "" {
		if err := p.patch(res, f.patch); err != nil {
			status = p.failed(err)
		}
	}
	if f.apply && status == 0 {
		if err := p.apply(res); err != nil {
			status = p.failed(err)
		}
	}
	if !f.quiet {
		p.summary(res, f)
	}
	return status
}
