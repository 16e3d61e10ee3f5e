package isolation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/isolation/inside"
	"github.com/sandboxrun/sandboxrun/network"
)

// Process is a command that runs in a sandbox. Its methods may be called from several goroutines.
type Process struct {
	terminal *os.File
	layers   []ephemeral.Layers
	cmd      *exec.Cmd
	init     *inside.Control
	gateway  *network.Gateway
	streams  *streams
	diag     *diagnostics
	runDir   *ephemeral.Run
	started  chan struct{} // closed at the end: the thread that holds PDEATHSIG may go

	sending sync.Mutex
	stopped chan Cause // the first reason why the command was told to end
	done    chan struct{}
	exit    Exit
	err     error
}

// run turns a start that worked into a process and begins to watch it.
func (s *start) run(ctx context.Context) *Process {
	p := &Process{
		terminal: s.terminal, cmd: s.cmd, init: s.init, gateway: s.gateway(), streams: &s.streams, diag: s.diag, runDir: s.runDir,
		started: s.ended, stopped: make(chan Cause, 1), done: make(chan struct{}),
	}
	for _, src := range s.sources {
		if src.lower != nil {
			p.layers = append(p.layers, ephemeral.Layers{Lower: src.lower, Upper: s.uppers[len(p.layers)], Since: s.since})
		}
	}
	for _, l := range s.listeners {
		go p.serve(l)
	}
	p.streams.start()
	go p.watch()
	go p.limitTime(ctx, s.plan.Limits.WallTime)
	return p
}

// serve is the way out of the sandbox. When it breaks, the run does not go on without it.
func (p *Process) serve(l net.Listener) {
	if err := p.gateway.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
		p.fail(fmt.Errorf("gateway: %w", err))
	}
}

// watch follows the command to its end and takes everything down.
func (p *Process) watch() {
	defer close(p.done)
	exit, err := p.awaitExit()
	p.reap()
	p.streams.wait.Wait()
	closing := p.gateway.Close()
	p.sending.Lock()
	defer p.sending.Unlock()
	p.init.Close()
	p.init = nil
	close(p.started)
	p.exit = exit
	p.err = errors.Join(p.err, err, closing)
}

// reap waits until bubblewrap has collected init and ended, as it does at once after init; one that does not is killed,
// and with it every process inside: PID 1 dies with its parent. To kill it right away would leave init for the host's own
// PID 1 to collect, and in a container that may be a program which collects nothing.
func (p *Process) reap() {
	timer := time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
}

// awaitExit waits for init's report. Without one the sandbox was killed: by us, or by something outside.
func (p *Process) awaitExit() (Exit, error) {
	m, files, err := p.init.Receive()
	closeFiles(files)
	var cause Cause
	select {
	case cause = <-p.stopped:
	default:
	}
	switch {
	case err == nil && m.Exit != nil:
		return finalExit(*m.Exit, cause), nil
	case err == nil && m.Error != nil:
		return Exit{}, m.Error
	case cause != "":
		return finalExit(inside.Exit{Signal: int(syscall.SIGKILL)}, cause), nil
	default:
		p.reap()
		if text := p.diag.text(); text != "" {
			return Exit{}, fmt.Errorf("%w: %s", ErrBroken, text)
		}
		return Exit{}, ErrBroken
	}
}

func finalExit(e inside.Exit, cause Cause) Exit {
	exit := Exit{Cause: Exited, Code: e.Code, Signal: syscall.Signal(e.Signal)}
	if e.Signal != 0 {
		exit.Cause = Signaled
	}
	if cause == WallTime || cause == Canceled {
		exit.Cause = cause
	}
	return exit
}

func (p *Process) limitTime(ctx context.Context, wall Duration) {
	var over <-chan time.Time
	if wall > 0 {
		timer := time.NewTimer(time.Duration(wall))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.done:
	case <-over:
		p.stop(WallTime, syscall.SIGTERM)
	case <-ctx.Done():
		p.interrupted(context.Cause(ctx))
	}
}

// interrupted ends the run because its context ended: by the signal that the cause names, or SIGTERM.
func (p *Process) interrupted(cause error) {
	var by Interrupt
	if errors.As(cause, &by) {
		p.stop(Signaled, syscall.Signal(by))
		return
	}
	p.stop(Canceled, syscall.SIGTERM)
}

// Signal sends sig to the command's process group.
func (p *Process) Signal(sig syscall.Signal) {
	p.sending.Lock()
	defer p.sending.Unlock()
	if p.init != nil {
		_ = p.init.Send(inside.Message{Signal: int(sig)}) // an error: it ended meanwhile
	}
}

// stop ends the run: the command gets sig, and 5 s later everything in the sandbox is killed.
func (p *Process) stop(cause Cause, sig syscall.Signal) {
	select {
	case p.stopped <- cause:
	default: // told already
	}
	p.Signal(sig)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// End waits a moment for the command to end by itself, as it should when its input has ended, then makes it.
func (p *Process) End() {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.stop(Signaled, syscall.SIGTERM)
	}
}

// Kill ends everything in the sandbox at once: init kills the command and ends, or is killed itself a second later.
func (p *Process) Kill() {
	select {
	case p.stopped <- Signaled:
	default:
	}
	p.Signal(syscall.SIGKILL)
	timer := time.AfterFunc(time.Second, func() { _ = p.cmd.Process.Kill() })
	go func() {
		<-p.done
		timer.Stop()
	}()
}

// fail ends the run because of err, which Wait will return.
func (p *Process) fail(err error) {
	p.sending.Lock()
	p.err = errors.Join(p.err, err)
	p.sending.Unlock()
	p.Kill()
}

// Terminal is the other side of the command's terminal, or nil when none was asked for. [Process.Close] closes it.
func (p *Process) Terminal() *os.File { return p.terminal }

// Wait waits until the command and everything else in the sandbox has ended and its output was delivered. An error
// means that the sandbox broke; the exit says nothing then.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Layers are the directories that the run wrote over, one a workspace mount, to be read after Wait and before Close.
func (p *Process) Layers() []ephemeral.Layers { return p.layers }

// Close ends the run if it still goes on and releases everything: descriptors, memory, the run's directory.
func (p *Process) Close() error {
	p.Kill()
	<-p.done
	for _, o := range p.layers {
		o.Lower.Close()
		o.Upper.Close()
	}
	p.layers = nil
	if p.terminal != nil {
		p.terminal.Close()
	}
	if p.runDir != nil {
		return p.runDir.Close()
	}
	return nil
}
