package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/sandboxrun/sandboxrun/network"
)

// openAudit makes the file of --audit. It must be a new one: an audit is not to be overwritten by the next run.
func (f *runFlags) openAudit() (io.Writer, func() error, error) {
	if f.audit == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(f.audit, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, &usageError{fmt.Errorf("-audit: %w", err)}
	}
	return file, func() error { return errors.Join(file.Sync(), file.Close()) }, nil
}

func runAudit(args []string, std stdio) int {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	flags.SetOutput(std.err)
	flags.Usage = func() { fmt.Fprintln(std.err, "usage: sandboxrun audit verify FILE") }
	if status, ok := parse(flags, args, std); !ok {
		return status
	}
	p := newPrinter(std.err, false)
	if flags.NArg() != 2 || flags.Arg(0) != "verify" {
		return p.failed(&usageError{errors.New("audit takes: verify FILE")})
	}
	file, err := os.Open(flags.Arg(1))
	if err != nil {
		return p.failed(err)
	}
	defer file.Close()
	records, err := network.VerifyAudit(file)
	if err != nil {
		p.failed(fmt.Errorf("%s: %w", flags.Arg(1), err))
		return 1
	}
	denied := 0
	for _, r := range records {
		if r.Event == network.EventDeny {
			denied++
		}
	}
	fmt.Fprintf(std.out, "%s: the chain is whole: %s, %d denied\n", flags.Arg(1), plural(len(records), "record", "records"), denied)
	return 0
}
