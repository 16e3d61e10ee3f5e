package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/ephemeral"
)

// patch writes the changes to a file, whole or not at all.
func (p *printer) patch(res *adapter.Result, path string) error {
	omitted, err := writePatch(res, path)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if n := omitted.Total(); n > 0 {
		p.line("%s no place in a patch: %s", plural(n, "change has", "changes have"), describeOmitted(omitted))
	}
	return nil
}

func writePatch(res *adapter.Result, path string) (ephemeral.Omitted, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // /dev/stdout, a FIFO
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return ephemeral.Omitted{}, err
		}
		omitted, err := res.WritePatch(file)
		return omitted, errors.Join(err, file.Close())
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".sandboxrun-patch-*")
	if err != nil {
		return ephemeral.Omitted{}, err
	}
	defer os.Remove(file.Name()) // after the rename there is none
	omitted, err := res.WritePatch(file)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	return omitted, err
}

func describeOmitted(o ephemeral.Omitted) string {
	text := ""
	for _, c := range []struct {
		n    int
		what string
	}{
		{o.GitFiles, "inside .git"}, {o.EmptyDirs, "empty directories"}, {o.Modes, "permissions"}, {o.Special, "special files"},
		{o.TooLarge, "files over 1 GiB"}, {o.Unreadable, "unreadable files"}, {o.Blocked, "in the way of one of these"},
	} {
		if c.n > 0 && text != "" {
			text += ", "
		}
		if c.n > 0 {
			text += fmt.Sprintf("%d %s", c.n, c.what)
		}
	}
	return text
}

// apply writes the changes into the workspace and says what was left out.
func (p *printer) apply(res *adapter.Result) error {
	applied, err := res.Apply()
	if applied != nil {
		for _, s := range applied.Skipped {
			p.colored(yellow, "not applied: %s: %s", s.Path, s.Reason)
		}
		for _, path := range applied.Stripped {
			p.colored(yellow, "applied without its set-user-ID, set-group-ID or sticky bit: %s", path)
		}
		p.line("applied %s", plural(len(applied.Done), "change", "changes"))
	}
	return err
}

// maxListed is how many changes or denials a summary names.
const maxListed = 20

// summary says at the end what was denied and what was changed.
func (p *printer) summary(res *adapter.Result, f *runFlags) {
	if f.verbose {
		for _, d := range res.Plan.Dropped {
			p.line("dropped variable %s: %s", d.Name, d.Reason)
		}
	}
	p.deniedHosts(res)
	if res.Changes == nil || len(res.Changes.List) == 0 {
		return
	}
	list := res.Changes.List
	p.line("%s in the workspace", plural(len(list), "change", "changes"))
	for _, c := range list[:min(len(list), maxListed)] {
		p.line("  %-8s %s", c.Kind, c.Path)
		if c.Risk != "" {
			p.colored(yellow, "           can run code on the host later: %s", c.Risk)
		}
	}
	if more := len(list) - maxListed; more > 0 {
		p.line("  … and %d more", more)
	}
	if f.patch == "" && !f.apply {
		p.hint("the changes are gone with the run; keep them with --patch FILE or --apply")
	}
}

// deniedHosts lists what was refused, each destination once.
func (p *printer) deniedHosts(res *adapter.Result) {
	count := map[string]int{}
	var order []string
	for _, d := range res.Denials {
		key := fmt.Sprintf("%s (%s)", destination(d), d.Rule)
		if count[key]++; count[key] == 1 {
			order = append(order, key)
		}
	}
	if len(order) == 0 {
		return
	}
	p.line("%s denied", plural(len(res.Denials), "connection", "connections"))
	for _, key := range order[:min(len(order), maxListed)] {
		p.line("  %d × %s", count[key], key)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
