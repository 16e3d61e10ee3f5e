package main

import (
	"flag"

	"github.com/sandboxrun/sandboxrun/adapter"
)

func runDoctor(args []string, std stdio) int {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(std.err)
	if status, ok := parse(flags, args, std); !ok {
		return status
	}
	p := newPrinter(std.out, false)
	p.prefix = ""
	ctx, stop := interruptible()
	defer stop()
	status := 0
	for _, f := range adapter.Examine(ctx) {
		color := dim
		word := "ok"
		switch {
		case f.Err != nil && f.Required:
			color, word, status = red, "MISSING", statusFailure
		case f.Err != nil:
			color, word = yellow, "absent"
		case f.Off:
			word = "off"
		}
		p.colored(color, "%-8s %-14s %s", word, f.Layer, f.Detail())
		if f.Err != nil {
			for _, hint := range hints(f.Err) {
				p.line("%23s hint: %s", "", hint)
			}
		}
	}
	return status
}
