package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sandboxrun/sandboxrun/isolation"
)

const policyHelp = `usage: sandboxrun policy COMMAND

  list                names and descriptions of the built-in policies
  show NAME           the annotated file of a built-in policy
  check FILE...       whether policies are valid and this release enforces them
  explain NAME|FILE   what a policy grants and denies, and where each key comes from
  init [FILE]         a commented policy to start from, to standard output or a new file
  schema              a JSON Schema of policy files, for editors

A bare word is a built-in policy; anything with a slash or .toml is a file.
explain takes --set key=value (TOML) as exec and agent do.
`

// policyCommand is one subcommand of policy: how many arguments it takes and what it does.
type policyCommand struct {
	least, most int // most -1: any number
	run         func(args, sets []string, stdout io.Writer) error
	sets        bool // takes --set
}

var policyCommands = map[string]policyCommand{
	"list":    {0, 0, policyList, false},
	"show":    {1, 1, policyShow, false},
	"check":   {1, -1, nil, false}, // reports file by file
	"explain": {1, 1, policyExplain, true},
	"init":    {0, 1, policyInit, false},
	"schema":  {0, 0, policySchema, false},
}

// runPolicy runs `sandboxrun policy ARGS` and returns the exit status: 0, 2 for wrong usage and bad policies, or 125 when
// the output cannot be written.
func runPolicy(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help") {
		return policyExit(writeText(stdout, policyHelp), stderr)
	}
	if len(args) == 0 {
		return policyUsage(stderr, "policy needs a command")
	}
	command, ok := policyCommands[args[0]]
	if !ok {
		return policyUsage(stderr, fmt.Sprintf("policy has no command %q", args[0]))
	}
	rest, sets, err := policyFlags(args[0], args[1:], command.sets)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return policyExit(writeText(stdout, policyHelp), stderr)
	case err != nil:
		return policyUsage(stderr, err.Error())
	case len(rest) < command.least || command.most >= 0 && len(rest) > command.most:
		return policyUsage(stderr, "wrong number of arguments for policy "+args[0])
	case args[0] == "check":
		return policyCheck(rest, stdout, stderr)
	}
	return policyExit(command.run(rest, sets, stdout), stderr)
}

// policyFlags takes --set from in front of and between the arguments.
func policyFlags(name string, args []string, takesSets bool) (rest, sets []string, err error) {
	flags := flag.NewFlagSet("policy "+name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if takesSets {
		flags.Func("set", "key=value", func(s string) error {
			sets = append(sets, s)
			return nil
		})
	}
	for {
		if err := flags.Parse(args); err != nil {
			return nil, nil, err
		}
		if args = flags.Args(); len(args) == 0 {
			return rest, sets, nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

func policyList(_, _ []string, stdout io.Writer) error {
	var b strings.Builder
	for _, name := range isolation.Presets() {
		cfg, err := isolation.Inspect(name)
		if err != nil {
			return err
		}
		note := ""
		if cfg.Enforceable() != nil {
			note = " (not enforced yet)"
		}
		fmt.Fprintf(&b, "%-11s %s%s\n", name, cfg.Description, note)
	}
	return writeText(stdout, b.String())
}

func policyShow(args, _ []string, stdout io.Writer) error {
	text, err := isolation.PresetText(args[0])
	if err != nil {
		return err
	}
	return writeText(stdout, string(text))
}

// policyCheck loads every file as a run would; warnings do not fail it.
func policyCheck(names []string, stdout, stderr io.Writer) int {
	status := 0
	for _, name := range names {
		cfg, err := isolation.Load(name)
		if err == nil {
			for _, w := range cfg.Warnings() {
				fmt.Fprintf(stderr, "sandboxrun: %s: warning: %s\n", cfg.Name(), w)
			}
			err = writeText(stdout, name+": ok\n")
		}
		status = max(status, policyExit(err, stderr))
	}
	return status
}

func policyExplain(args, sets []string, stdout io.Writer) error {
	cfg, err := isolation.Inspect(args[0], sets...)
	if err != nil {
		return err
	}
	return writeText(stdout, isolation.Explain(cfg))
}

func policyInit(args, _ []string, stdout io.Writer) error {
	if len(args) == 0 {
		return writeText(stdout, isolation.Starter)
	}
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &isolation.PolicyError{File: args[0], Msg: "exists already", Hint: "choose another name, or print to standard output: sandboxrun policy init"}
	}
	if err != nil {
		return &isolation.PolicyError{Msg: "write policy: " + err.Error(), Err: err}
	}
	_, err = f.WriteString(isolation.Starter)
	return errors.Join(err, f.Close())
}

func policySchema(_, _ []string, stdout io.Writer) error {
	text, err := isolation.Schema()
	if err != nil {
		return err
	}
	return writeText(stdout, string(text))
}

func writeText(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// policyExit prints an error, a policy's line by line with what to do about it, and returns the exit status.
func policyExit(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	found := isolation.PolicyErrors(err)
	if len(found) == 0 {
		fmt.Fprintf(stderr, "sandboxrun: %v\n", err)
		return 125
	}
	for _, e := range found {
		fmt.Fprintf(stderr, "sandboxrun: %v\n", e)
		if e.Hint != "" {
			fmt.Fprintf(stderr, "sandboxrun: hint: %s\n", e.Hint)
		}
	}
	return 2
}

func policyUsage(stderr io.Writer, msg string) int {
	fmt.Fprintf(stderr, "sandboxrun: %s\n%s", msg, policyHelp)
	return 2
}
