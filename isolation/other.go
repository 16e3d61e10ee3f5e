//go:build !linux

package isolation

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/sandboxrun/sandboxrun/ephemeral"
)

func (o *Object) identify(os.FileInfo) {}

func ownsSystem() bool { return true }

// Process is a command that runs in a sandbox. On this platform there is none.
type Process struct{}

// Start returns [ErrPlatform].
func (p *Plan) Start(context.Context, Command) (*Process, error) {
	return nil, &SetupError{"start", errors.Join(ErrPlatform, errors.ErrUnsupported)}
}

// Signal does nothing.
func (p *Process) Signal(syscall.Signal) {}

// End does nothing.
func (p *Process) End() {}

// Kill does nothing.
func (p *Process) Kill() {}

// Terminal returns nil.
func (p *Process) Terminal() *os.File { return nil }

// Wait returns [ErrPlatform].
func (p *Process) Wait() (Exit, error) { return Exit{}, ErrPlatform }

// Layers returns nil.
func (p *Process) Layers() []ephemeral.Layers { return nil }

// Close does nothing.
func (p *Process) Close() error { return nil }
