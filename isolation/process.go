package isolation

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/sandboxrun/sandboxrun/network"
)

// Command is what [Plan.Start] runs in the sandbox.
type Command struct {
	Args []string // Args[0] is looked up in the sandbox's PATH

	// The standard streams. A pipe is handed to the command as it is; everything else (files, terminals, sockets, other
	// values) is copied through a pipe, because a descriptor can be reopened: a file that is only read from could be
	// written through /proc/self/fd. Nil means /dev/null. When Stdout and Stderr are one value, one goroutine writes to it.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal gives the command a terminal of its own, whose other side is [Process.Terminal]; the streams are not
	// used then. Nil means none.
	Terminal *Terminal

	// Gateway answers what the command sends to the network. Nil means one that denies everything. The process closes it.
	Gateway *network.Gateway
}

// Terminal is the size of a terminal.
type Terminal struct{ Columns, Rows uint16 }

// Cause says what ended a run.
type Cause string

// The causes that this release tells apart.
const (
	Exited   Cause = "exited"
	Signaled Cause = "signal"
	WallTime Cause = "wall"
	Canceled Cause = "canceled" // the caller's context ended
)

// Exit is how a command ended.
type Exit struct {
	Cause  Cause
	Code   int            // when it exited by itself
	Signal syscall.Signal // when a signal ended it
}

// Status is the exit status that sandboxrun itself ends with: the command's own, 128+n for signal n, 124 for wall time.
func (e Exit) Status() int {
	switch {
	case e.Cause == WallTime:
		return 124
	case e.Signal != 0:
		return 128 + int(e.Signal)
	default:
		return e.Code
	}
}

func (e Exit) String() string {
	switch {
	case e.Cause == WallTime:
		return "wall time is over"
	case e.Signal != 0:
		return fmt.Sprintf("signal %d (%s)", int(e.Signal), e.Signal)
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

// StepNamespaces is the step of a [SetupError] that fails where user namespaces are not to be had.
const StepNamespaces = "make namespaces"

// SetupError says that the sandbox could not be made, so nothing ran in it.
type SetupError struct {
	Step string
	Err  error
}

func (e *SetupError) Error() string { return "set up sandbox: " + e.Step + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// ExecError says that the command could not be executed in a sandbox that stood.
type ExecError struct {
	Name string
	Err  error
}

func (e *ExecError) Error() string { return "execute " + e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ExecError) Unwrap() error { return e.Err }

// Status is 127 when the command was not found and 126 when it cannot be executed, as in a shell.
func (e *ExecError) Status() int {
	if errors.Is(e.Err, syscall.ENOENT) {
		return 127
	}
	return 126
}

// Interrupt as the cause of a context that ends (context.WithCancelCause) makes a run end by this signal.
type Interrupt syscall.Signal

func (i Interrupt) Error() string { return "interrupted by signal " + syscall.Signal(i).String() }

// ErrBroken says that the sandbox ended without the command's end having been seen.
var ErrBroken = errors.New("the sandbox ended before its command did")
