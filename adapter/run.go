package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/sandboxrun/sandboxrun/adapter/claude"
	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network"
)

// Task is what a Claude Code session has to do.
type Task struct {
	Prompt    string
	Workspace string // directory on the host; "": the current one
	CLI       string // program file of the Claude Code CLI; "": claude in PATH

	Events      func(Event)          // called for every event, in order; nil: not
	Audit       io.Writer            // gets the audit, see [network.Audit]; nil: none
	Connections func(network.Record) // called for every decision of the gateway, from several goroutines; nil: not
	Stderr      io.Writer            // where the CLI's standard error also goes unless the policy suppresses it; nil: nowhere
}

// Run runs a Claude Code session under the policy and returns when it is over and everything of it is gone. The Result
// is there whenever the session started, with an error too.
//
// Errors: [*claude.NotFoundError] without a CLI; [*isolation.SetupError] without a sandbox; [*claude.StartupError] when
// the CLI does not take the settings; [*claude.ProcessError] when it died; the errors of [claude.Result.Err] when the
// agent reports one; those of package model when a script does not fit.
func Run(ctx context.Context, cfg *isolation.Config, t Task) (*Result, error) {
	cli, err := findCLI(t.CLI)
	if err != nil {
		return nil, err
	}
	model, err := newModel(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b, err := newBox(cfg, t.Workspace, cli, model, watch{t.Audit, t.Connections})
	if err != nil {
		return nil, err
	}
	options, err := claudeOptions(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := b.abortable(ctx)
	defer cancel()
	s, err := b.start(ctx, options, t)
	if err != nil {
		return nil, err
	}
	answer, err := s.converse(ctx, options, t)
	res, errSandbox := b.finish(s.process)
	res.Answer = answer
	return res, errors.Join(model.err(), s.explain(res.Exit, err, errSandbox))
}

// session is a CLI that runs in a sandbox.
type session struct {
	process *isolation.Process
	conn    claude.Pipes
	stderr  *claude.Tail
}

// start starts the CLI.
func (b *box) start(ctx context.Context, options claude.Options, t Task) (*session, error) {
	inside, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, outside, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inside.Close(), stdin.Close())
	}
	s := &session{conn: claude.Pipes{Stdin: stdin, Stdout: stdout}, stderr: &claude.Tail{}}
	stderr := io.Writer(s.stderr)
	if t.Stderr != nil {
		stderr = io.MultiWriter(s.stderr, t.Stderr)
	}
	command := isolation.Command{
		Args:  append([]string{isolation.AgentDir + "/claude"}, options.Args()...),
		Stdin: inside, Stdout: outside, Stderr: stderr, Gateway: b.gateway,
	}
	s.process, err = b.plan.Start(ctx, command)
	inside.Close()
	outside.Close()
	if err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

// converse has the one conversation of the run; the CLI ends with its input.
func (s *session) converse(ctx context.Context, options claude.Options, t Task) (*claude.Result, error) {
	var answer claude.Result
	var failure error
	for event, err := range claude.Run(ctx, s.conn, options, t.Prompt) {
		if err != nil {
			failure = err
			break
		}
		answer.Add(event)
		if t.Events != nil {
			t.Events(event)
		}
	}
	s.conn.Close()
	s.process.End()
	return &answer, failure
}

// explain joins what is known of a failed session: the conversation's error comes first, with the end of the process
// when that was the reason.
func (s *session) explain(exit isolation.Exit, err, errSandbox error) error {
	if err == nil || errSandbox != nil {
		return errors.Join(err, errSandbox)
	}
	if errors.Is(err, claude.ErrEnded) {
		signal := ""
		if exit.Signal != 0 {
			signal = exit.Signal.String()
		}
		return &claude.ProcessError{ExitCode: exit.Code, Signal: signal, Stderr: s.stderr.String(), Err: err}
	}
	return err
}

// findCLI returns the program file of the Claude Code CLI.
func findCLI(path string) (string, error) {
	if path == "" {
		path = "claude"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", &claude.NotFoundError{Path: path, Err: err}
	}
	return found, nil
}

// claudeOptions turns the [agent] table into a session's options.
func claudeOptions(cfg *isolation.Config) (claude.Options, error) {
	settings, err := isolation.ClaudeSettings(cfg)
	if err != nil {
		return claude.Options{}, err
	}
	a := cfg.WithDefaults().Agent
	o := claude.Options{
		Model: a.Model, PermissionMode: claude.PermissionMode(a.PermissionMode), MaxTurns: a.MaxTurns, MaxBudgetUSD: a.MaxBudgetUSD,
		DisallowedTools: a.DisallowedTools, SystemPrompt: a.SystemPrompt, AppendSystemPrompt: a.AppendSystemPrompt,
		SettingsPath: isolation.SettingsPath, Settings: json.RawMessage(settings), IncludePartialMessages: a.IncludePartialMessages,
	}
	if a.AllowedTools != nil {
		o.AllowedTools = append([]string{}, *a.AllowedTools...)
	}
	return o, nil
}
