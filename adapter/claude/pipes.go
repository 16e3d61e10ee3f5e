package claude

import (
	"errors"
	"io"
	"io/fs"
)

// Pipes makes a connection of a process's two pipes. The zero value is of no use.
type Pipes struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
}

// Read reads what the CLI wrote to its standard output.
func (p Pipes) Read(b []byte) (int, error) { return p.Stdout.Read(b) }

// Write writes to the CLI's standard input.
func (p Pipes) Write(b []byte) (int, error) { return p.Stdin.Write(b) }

// CloseWrite ends the CLI's input and goes on reading.
func (p Pipes) CloseWrite() error { return p.Stdin.Close() }

// Close closes both pipes, of which the one to the CLI may be closed already.
func (p Pipes) Close() error {
	err := p.Stdin.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	return errors.Join(err, p.Stdout.Close())
}
