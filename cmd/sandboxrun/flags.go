package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sandboxrun/sandboxrun/isolation"
)

// runFlags are the flags that exec and agent share.
type runFlags struct {
	policy    string
	set       []string
	workspace string
	apply     bool
	patch     string
	audit     string
	dryRun    bool
	timeout   time.Duration
	quiet     bool
	verbose   bool
	noColor   bool
}

// newFlags returns the flag set of a command with the shared flags in it.
func newFlags(name, arguments, policy string, f *runFlags, w io.Writer) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(w)
	set.Usage = func() {
		fmt.Fprintf(w, "usage: sandboxrun %s [flags] %s\n\n", name, arguments)
		set.PrintDefaults()
	}
	set.StringVar(&f.policy, "policy", policy, "`NAME|FILE` of the policy")
	set.Func("set", "`key=value`, a TOML value that replaces one of the policy; repeatable", func(s string) error {
		f.set = append(f.set, s)
		return nil
	})
	set.StringVar(&f.workspace, "workspace", ".", "`DIR` to work on")
	set.BoolVar(&f.apply, "apply", false, "write the changes back when the run succeeded")
	set.StringVar(&f.patch, "patch", "", "write the changes as a git patch to `FILE`")
	set.StringVar(&f.audit, "audit", "", "write every connection and denial to `FILE`, a new one, as JSON lines")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the plan, start nothing")
	set.DurationVar(&f.timeout, "timeout", 0, "wall time of this run, such as 90s, instead of the policy's")
	set.BoolVar(&f.quiet, "quiet", false, "no summary, no progress")
	set.BoolVar(&f.verbose, "verbose", false, "every connection, every dropped variable")
	set.BoolVar(&f.noColor, "no-color", false, "no colour on a terminal")
	return set
}

// load reads the policy with the overrides of the command line.
func (f *runFlags) load() (*isolation.Config, error) {
	set := f.set
	if f.timeout < 0 {
		return nil, &usageError{errors.New("-timeout must be positive")}
	}
	if f.timeout > 0 {
		set = append(set, fmt.Sprintf("limits.wall_time=%q", f.timeout))
	}
	return isolation.LoadWith(f.policy, set...)
}

// warn says, each time, what the policy opens that it need not.
func (f *runFlags) warn(p *printer, cfg *isolation.Config) {
	if f.quiet {
		return
	}
	for _, w := range cfg.Warnings() {
		p.colored(yellow, "warning: %s", w)
	}
}

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

// printer writes sandboxrun's own lines to standard error.
type printer struct {
	w      io.Writer
	color  bool
	prefix string // of every line
}

// newPrinter colours when w is a terminal that wants it.
func newPrinter(w io.Writer, noColor bool) *printer {
	f, ok := w.(*os.File)
	color := ok && isTerminal(f) && !noColor && os.Getenv("NO_COLOR") == ""
	return &printer{w, color, "sandboxrun: "}
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p.w, "%s%s\n", p.prefix, oneLine(fmt.Sprintf(format, args...)))
}

func (p *printer) hint(text string) { p.line("hint: %s", text) }

// Colours of the lines that stand out.
const (
	red    = "31"
	yellow = "33"
	dim    = "2"
)

func (p *printer) colored(code, format string, args ...any) {
	text := oneLine(fmt.Sprintf(format, args...))
	if p.color {
		text = "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	fmt.Fprintf(p.w, "%s%s\n", p.prefix, text)
}

// oneLine keeps what the agent or a server wrote from moving the cursor or starting lines of its own.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '⏎'
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '·'
		}
		return r
	}, s)
}
