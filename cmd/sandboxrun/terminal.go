//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sandboxrun/sandboxrun/isolation"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// wantsTerminal returns the size of the user's terminal when the command should have one of its own: when it is asked
// questions and answers at the same terminal.
func wantsTerminal(std stdio) *isolation.Terminal {
	in, ok := std.in.(*os.File)
	out, ok2 := std.out.(*os.File)
	if !ok || !ok2 || !isTerminal(in) || !isTerminal(out) {
		return nil
	}
	columns, rows, err := term.GetSize(int(out.Fd()))
	if err != nil {
		columns, rows = 80, 24
	}
	return &isolation.Terminal{Columns: uint16(columns), Rows: uint16(rows)}
}

// attach joins the user's terminal, in raw mode, and the command's until the command ends.
func attach(std stdio, master *os.File) {
	in := std.in.(*os.File)
	if state, err := term.MakeRaw(int(in.Fd())); err == nil {
		defer term.Restore(int(in.Fd()), state)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer func() { signal.Stop(resized); close(resized) }()
	go func() {
		for range resized {
			if size := wantsTerminal(std); size != nil {
				_ = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
			}
		}
	}()
	go func() { _, _ = io.Copy(master, in) }() // ends with the process: a read of a terminal cannot be taken back
	_, _ = io.Copy(std.out, master)            // ends with EIO when the last holder of the other side is gone
}
