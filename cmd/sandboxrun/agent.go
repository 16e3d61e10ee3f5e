package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/isolation"
)

// agentFlags are the flags of agent beyond those of every run.
type agentFlags struct {
	runFlags
	promptFile string
	model      string
	maxTurns   int
	output     string
	script     string
}

func newAgentFlags(f *agentFlags, std stdio) *flag.FlagSet {
	flags := newFlags("agent", "[PROMPT | -]", "api-only", &f.runFlags, std.err)
	flags.StringVar(&f.promptFile, "prompt-file", "", "read the prompt from `FILE`")
	flags.StringVar(&f.model, "model", "", "`NAME` of the model instead of the policy's")
	flags.IntVar(&f.maxTurns, "max-turns", 0, "end after `N` rounds of the model; 0 is the policy's")
	flags.StringVar(&f.output, "output", "text", "what goes to standard output: text, json or events")
	flags.StringVar(&f.script, "script", "", "let the scripted model in `FILE` answer instead of the API")
	return flags
}

func runAgent(args []string, std stdio) int {
	var f agentFlags
	flags := newAgentFlags(&f, std)
	if status, ok := parse(flags, args, std); !ok {
		return status
	}
	p := newPrinter(std.err, f.noColor)
	prompt, err := f.prompt(flags.Args(), std.in)
	if err != nil {
		return p.failed(err)
	}
	out, err := newOutput(f.output, std.out)
	if err != nil {
		return p.failed(err)
	}
	cfg, err := f.loadAgent()
	if err != nil {
		return p.failed(err)
	}
	f.warn(p, cfg)
	ctx, stop := interruptible()
	defer stop()
	task := adapter.Task{Prompt: prompt, Workspace: f.workspace}
	if f.dryRun {
		plan, err := adapter.PlanRun(ctx, cfg, task)
		return p.printPlan(std, plan, err)
	}
	if !cfg.Agent.SuppressesStderr() {
		task.Stderr = std.err
	}
	progress := newProgress(p, f.runFlags)
	task.Connections = progress.connection
	task.Events = func(e adapter.Event) {
		out.event(e)
		progress.event(e)
	}
	audit, closeAudit, err := f.openAudit()
	if err != nil {
		return p.failed(err)
	}
	task.Audit = audit
	res, err := adapter.Run(ctx, cfg, task)
	err = errors.Join(err, closeAudit())
	if res != nil {
		defer res.Close()
	}
	progress.end(res)
	return p.worse(f.finish(ctx, p, res, err), out.result(res, err))
}

// worse lets a lost answer fail a run that succeeded.
func (p *printer) worse(status int, err error) int {
	if err != nil && status == 0 {
		return p.failed(fmt.Errorf("write output: %w", err))
	}
	return status
}

// loadAgent reads the policy; flags are overrides of its keys.
func (f *agentFlags) loadAgent() (*isolation.Config, error) {
	if f.model != "" {
		f.set = append(f.set, "agent.model="+strconv.Quote(f.model))
	}
	if f.maxTurns < 0 {
		return nil, &usageError{errors.New("-max-turns must be positive")}
	}
	if f.maxTurns > 0 {
		f.set = append(f.set, fmt.Sprintf("agent.max_turns=%d", f.maxTurns))
	}
	if f.script != "" {
		path, err := filepath.Abs(f.script)
		if err != nil {
			return nil, err
		}
		f.set = append(f.set, `model.source="script"`, "model.path="+strconv.Quote(path))
	}
	return f.load()
}

// prompt takes the prompt from the one place that was named: the argument, standard input or a file.
func (f *agentFlags) prompt(args []string, in io.Reader) (string, error) {
	switch {
	case len(args) > 1:
		return "", &usageError{fmt.Errorf("agent takes one prompt, not %d arguments; quote it", len(args))}
	case f.promptFile != "" && len(args) > 0:
		return "", &usageError{errors.New("a prompt and -prompt-file exclude each other")}
	case f.promptFile != "":
		data, err := os.ReadFile(f.promptFile)
		return nonEmpty(string(data), err)
	case len(args) == 1 && args[0] != "-":
		return nonEmpty(args[0], nil)
	}
	if file, ok := in.(*os.File); ok && isTerminal(file) && len(args) == 0 {
		return "", &usageError{errors.New("agent needs a prompt")}
	}
	data, err := io.ReadAll(in)
	return nonEmpty(string(data), err)
}

func nonEmpty(prompt string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("read prompt: %w", err)
	}
	if strings.TrimSpace(prompt) == "" {
		return "", &usageError{errors.New("the prompt is empty")}
	}
	return prompt, nil
}
