// Command sandboxrun runs an AI coding agent, or any command, so that the run is hermetic: it sees only what a policy
// grants, talks only to the hosts that the policy names, never holds a real key, and leaves nothing behind.
//
// It parses, calls the library and prints: everything it does is reachable from package adapter and its neighbours.
package main

import (
	"fmt"
	"io"
	"os"
)

// Exit statuses of our own; see usage. 124, 126, 127 and 128+n come from the run.
const (
	statusUsage   = 2
	statusBudget  = 3
	statusFailure = 125
)

// stdio is where a command reads and writes: the process's own streams, or a test's.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// commands in the order of the help.
var commands = []struct {
	name, summary string
	run           func(args []string, std stdio) int
}{
	{"exec", "run a command in a sandbox", runExec},
	{"agent", "run a Claude Code session in a sandbox", runAgent},
	{"policy", "list, show, check, explain and write policies", func(args []string, std stdio) int { return runPolicy(args, std.out, std.err) }},
	{"audit", "verify FILE: whether the audit of a run is whole", runAudit},
	{"doctor", "say what this host can enforce, and what to install", runDoctor},
	{"gc", "remove what killed runs left", runGC},
	{"version", "print the version", runVersion},
}

func main() {
	os.Exit(run(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}

func run(args []string, std stdio) int {
	if len(args) == 0 {
		usage(std.err)
		return statusUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(std.out)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:], std)
		}
	}
	fmt.Fprintf(std.err, "sandboxrun: unknown command %q\nsandboxrun: hint: sandboxrun help\n", args[0])
	return statusUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: sandboxrun COMMAND [flags] [arguments]")
	fmt.Fprintln(w)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
'sandboxrun COMMAND -h' lists the flags of a command.

Exit status: the command's own; 128+n when signal n ended it; 124 wall time; 125 sandboxrun failed (nothing ran, or the
sandbox broke); 126 not executable; 127 not found; 2 usage or policy error. agent: 0 success, 1 the agent reported an
error, 3 a budget ended it, and the others as above.
`)
}
