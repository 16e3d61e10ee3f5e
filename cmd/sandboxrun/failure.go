package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/isolation/inside"
)

// failed prints err with a hint of what to type, and returns the exit status for it.
func (p *printer) failed(err error) int {
	for line := range strings.Lines(err.Error()) {
		p.colored(red, "%s", strings.TrimRight(line, "\n"))
	}
	for _, hint := range hints(err) {
		p.hint(hint)
	}
	return failureStatus(err)
}

// failureStatus is the exit status for an error; see usage.
func failureStatus(err error) int {
	var usage *usageError
	var policy *isolation.PolicyError
	var execute *isolation.ExecError
	var turns *claude.MaxTurnsError
	var budget *claude.BudgetError
	var result *claude.ResultError
	switch {
	case errors.As(err, &usage), errors.As(err, &policy), errors.Is(err, isolation.ErrNotFound):
		return statusUsage
	case errors.As(err, &execute):
		return execute.Status()
	case errors.As(err, &turns), errors.As(err, &budget):
		return statusBudget
	case errors.As(err, &result), errors.Is(err, claude.ErrNoStructured):
		return 1
	}
	return statusFailure
}

// hints are the lines to type for errors that have a remedy.
func hints(err error) []string {
	var usage *usageError
	var notFound *claude.NotFoundError
	var setup *isolation.SetupError
	var texts []string
	for _, e := range isolation.PolicyErrors(err) {
		if e.Hint != "" {
			texts = append(texts, e.Hint)
		}
	}
	switch {
	case len(texts) > 0:
		return texts
	case errors.As(err, &usage):
		return []string{"sandboxrun help"}
	case errors.Is(err, isolation.ErrNoBubblewrap):
		return []string{"apt-get install bubblewrap   (or: dnf install bubblewrap, pacman -S bubblewrap)"}
	case errors.As(err, &notFound):
		return []string{"npm install -g @anthropic-ai/claude-code"}
	case errors.Is(err, adapter.ErrNoKey):
		return []string{"export ANTHROPIC_API_KEY=…   (it stays outside the sandbox)"}
	case errors.As(err, &setup):
		return setupHints(setup)
	}
	return nil
}

// setupHints knows what usually keeps a host from making sandboxes.
func setupHints(err *isolation.SetupError) []string {
	text := err.Error()
	switch {
	case strings.Contains(text, inside.ErrNoUserXattr):
		return []string{"--set workspace.storage='\"disk\"'   (keeps the overlay on disk until the end of the run)"}
	case strings.Contains(text, "idmapped"):
		return []string{"chown the workspace to a plain user, or start sandboxrun as that user"}
	case err.Step == isolation.StepNamespaces && errors.Is(err, syscall.ENOSPC):
		return []string{"sysctl user.max_user_namespaces=15000   (no more user namespaces are allowed)"}
	case err.Step == isolation.StepNamespaces, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return []string{
			"sysctl kernel.unprivileged_userns_clone=1   (Debian: user namespaces may be off)",
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu 24.04 and later)",
			"sandboxrun doctor",
		}
	}
	return []string{"sandboxrun doctor"}
}

// printPlan is --dry-run.
func (p *printer) printPlan(std stdio, plan *isolation.Plan, err error) int {
	if err != nil {
		return p.failed(err)
	}
	if _, err := fmt.Fprint(std.out, plan); err != nil {
		return p.failed(err)
	}
	return 0
}
