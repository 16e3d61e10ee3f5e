package claude

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// PermissionMode is how the CLI treats tools that no rule decides. The zero value is "default": ask, and with nobody
// to ask, refuse.
type PermissionMode string

// The modes of --permission-mode.
const (
	ModeDefault           PermissionMode = "default"
	ModeAcceptEdits       PermissionMode = "acceptEdits"
	ModePlan              PermissionMode = "plan"
	ModeBypassPermissions PermissionMode = "bypassPermissions" // as root the CLI wants IS_SANDBOX=1
	ModeDontAsk           PermissionMode = "dontAsk"
	ModeAuto              PermissionMode = "auto"
)

// Options is what one session of the CLI is asked for. It is inert; the zero value is a session without settings,
// limits or anyone to answer permission questions.
type Options struct {
	Model          string
	FallbackModel  string // must differ from Model
	Effort         string
	PermissionMode PermissionMode
	MaxTurns       int     // model rounds a prompt; 0 means no limit
	MaxBudgetUSD   float64 // 0 means no limit; the CLI checks after each answer, so the last one may overshoot

	// AllowedTools is the whole list of tools the model gets, as names or rules such as "Bash(git log:*)"; they need
	// no further permission. nil means every tool, an empty list none.
	AllowedTools    []string
	DisallowedTools []string

	SystemPrompt       string // instead of the CLI's own; empty keeps it
	AppendSystemPrompt string
	AddDirs            []string

	// SettingsPath is the settings file as the CLI sees it; no other settings file is read. Settings is what that
	// file holds, and Open fails unless the CLI says that all of it is in force. With nil, Open only fails on the
	// errors that the CLI reports.
	SettingsPath  string
	Settings      json.RawMessage
	MCPConfigPath string

	Resume    string // session to go on with; empty starts a new one
	SessionID string // UUID for a new session; empty lets the CLI choose
	Persist   bool   // keep the transcript, so that the session can be resumed; Resume implies it

	IncludePartialMessages bool            // text and thinking as they are written
	Schema                 json.RawMessage // JSON Schema of the answer; nil means free text

	// Ask answers the CLI's permission questions; nil refuses them all. It runs on a goroutine of its own, several
	// at a time, and its context ends when the CLI withdraws the question.
	Ask func(context.Context, ToolRequest) Answer

	InitTimeout time.Duration    // for the CLI's first answers; 0 means 60 s
	StopTimeout time.Duration    // for an interrupt or an end to take effect; 0 means 5 s
	MaxLine     int              // bytes; 0 means 64 MiB
	Now         func() time.Time // stamps events; nil means time.Now
	Log         *slog.Logger     // nil logs nothing
}

// Args returns the command line of the CLI, without its name. Nothing in it is secret or long: prompts and the
// schema travel over the connection. Every value is joined to its flag by "=", so that none is taken for another flag.
func (o Options) Args() []string {
	args := []string{
		"--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--setting-sources=", "--strict-mcp-config",
	}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	add("--settings", o.SettingsPath)
	add("--mcp-config", o.MCPConfigPath)
	add("--permission-mode", string(o.mode()))
	add("--model", o.Model)
	add("--fallback-model", o.FallbackModel)
	add("--effort", o.Effort)
	if o.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(o.MaxTurns))
	}
	if o.MaxBudgetUSD > 0 {
		add("--max-budget-usd", strconv.FormatFloat(o.MaxBudgetUSD, 'f', -1, 64))
	}
	args = append(args, o.toolArgs()...)
	for _, dir := range o.AddDirs {
		add("--add-dir", dir)
	}
	return append(args, o.sessionArgs()...)
}

// toolArgs uses two flags for one list: --tools takes the tools away that are not in it, --allowedTools alone would
// only answer the permission question for those that are.
func (o Options) toolArgs() []string {
	var args []string
	if o.AllowedTools != nil {
		args = append(args, "--tools="+strings.Join(builtinNames(o.AllowedTools), ","))
	}
	if len(o.AllowedTools) > 0 {
		args = append(args, "--allowedTools="+strings.Join(o.AllowedTools, ","))
	}
	if len(o.DisallowedTools) > 0 {
		args = append(args, "--disallowedTools="+strings.Join(o.DisallowedTools, ","))
	}
	if o.Ask != nil {
		args = append(args, "--permission-prompt-tool=stdio")
	}
	return args
}

func (o Options) sessionArgs() []string {
	var args []string
	if o.IncludePartialMessages {
		args = append(args, "--include-partial-messages")
	}
	if o.SessionID != "" {
		args = append(args, "--session-id="+o.SessionID)
	}
	if o.Resume != "" {
		args = append(args, "--resume="+o.Resume)
	}
	if o.Resume == "" && !o.Persist {
		args = append(args, "--no-session-persistence")
	}
	return args
}

// builtinNames turns rules into the names that --tools knows: "Bash(git:*)" is Bash, and tools of MCP servers are
// not its business.
func builtinNames(rules []string) []string {
	var names []string
	seen := map[string]bool{}
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "(")
		if name != "" && !strings.HasPrefix(name, "mcp__") && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// mode is never empty: without the flag the account's own default would decide.
func (o Options) mode() PermissionMode {
	if o.PermissionMode == "" {
		return ModeDefault
	}
	return o.PermissionMode
}

func (o Options) withDefaults() Options {
	if o.InitTimeout <= 0 {
		o.InitTimeout = 60 * time.Second
	}
	if o.StopTimeout <= 0 {
		o.StopTimeout = 5 * time.Second
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 64 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
