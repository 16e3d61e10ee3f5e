package main

import (
	"flag"

	"github.com/sandboxrun/sandboxrun/ephemeral"
)

func runGC(args []string, std stdio) int {
	flags := flag.NewFlagSet("gc", flag.ContinueOnError)
	flags.SetOutput(std.err)
	if status, ok := parse(flags, args, std); !ok {
		return status
	}
	p := newPrinter(std.err, false)
	removed, err := ephemeral.Reap("")
	for _, dir := range removed {
		p.line("removed %s", dir)
	}
	if err != nil {
		return p.failed(err)
	}
	if len(removed) == 0 {
		p.line("nothing was left behind")
	}
	return 0
}
