package isolation

import (
	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/network"
)

// Config is a policy: what one run may see, reach and use. It is inert data, safe to copy and to read from several
// goroutines; [Load] reads it from a file, a literal works as well. The zero value is the strictest policy, and an
// absent field means the default that [Config.WithDefaults] fills in.
type Config struct {
	Version     int    `toml:"version"` // 1; 0 in a literal means the same
	Description string `toml:"description"`
	Extends     string `toml:"extends"` // what the file said; Load has merged it already

	IncludeHostEnv bool              `toml:"include_host_env"`
	PassEnv        []string          `toml:"pass_env"`
	APIKey         *Source           `toml:"api_key"` // nil: the host's ANTHROPIC_API_KEY, if it has one
	Env            map[string]string `toml:"env"`

	NetworkPolicy network.Policy   `toml:"network_policy"`
	Sandbox       Sandbox          `toml:"sandbox"`
	Limits        Limits           `toml:"limits"`
	Workspace     ephemeral.Config `toml:"workspace"`
	Agent         Agent            `toml:"agent"`
	Credentials   []Credential     `toml:"credentials"`
	Model         Model            `toml:"model"`
	Repro         Repro            `toml:"repro"`

	origin *origin // nil for a literal
}

// Sandbox is the [sandbox] table: the wall itself and the holes in it.
type Sandbox struct {
	Enabled                  *bool     `toml:"enabled"` // nil: true
	Backend                  Backend   `toml:"backend"` // "": auto
	WritablePaths            []string  `toml:"writable_paths"`
	ReadablePaths            []string  `toml:"readable_paths"`
	HiddenPaths              []string  `toml:"hidden_paths"`
	ProtectedPaths           *[]string `toml:"protected_paths"` // nil: ["default"]; empty: none
	ExcludedCommands         []string  `toml:"excluded_commands"`
	AllowUnsandboxedCommands bool      `toml:"allow_unsandboxed_commands"`
	BashAutoAllow            *bool     `toml:"bash_auto_allow"` // nil: true
	AgentSandbox             Switch    `toml:"agent_sandbox"`   // "": auto
	OptionalLayers           []Layer   `toml:"optional_layers"`
	Syscalls                 Syscalls  `toml:"syscalls"` // "": the default
	RunAs                    RunAs     `toml:"run_as"`   // "": auto
}

// Limits is the [limits] table. Zero means the default where [Config.WithDefaults] has one, and no limit elsewhere;
// negative numbers are errors.
type Limits struct {
	WallTime    Duration       `toml:"wall_time"`
	CPUTime     Duration       `toml:"cpu_time"`
	Memory      ephemeral.Size `toml:"memory"`
	PIDs        int            `toml:"pids"`
	OpenFiles   int            `toml:"open_files"`
	Disk        ephemeral.Size `toml:"disk"`
	EgressBytes ephemeral.Size `toml:"egress_bytes"`
	Connections int            `toml:"connections"`
}

// Agent is the [agent] table: how the agent is started.
type Agent struct {
	Kind                   AgentKind      `toml:"kind"`            // "": claude-code
	Model                  string         `toml:"model"`           // "": DefaultModel
	PermissionMode         PermissionMode `toml:"permission_mode"` // "": bypassPermissions, the sandbox being the wall
	MaxTurns               int            `toml:"max_turns"`       // 0: unlimited, like the two budgets
	MaxBudgetUSD           float64        `toml:"max_budget_usd"`
	MaxTotalTokens         int64          `toml:"max_total_tokens"`
	Deadline               Duration       `toml:"deadline"`
	AllowedTools           *[]string      `toml:"allowed_tools"` // nil: all; empty: none
	DisallowedTools        []string       `toml:"disallowed_tools"`
	SystemPrompt           string         `toml:"system_prompt"`
	AppendSystemPrompt     string         `toml:"append_system_prompt"`
	AddDirs                []string       `toml:"add_dirs"`
	IncludePartialMessages bool           `toml:"include_partial_messages"`
	StopOnStructuredOutput *bool          `toml:"stop_on_structured_output"` // nil: true
	SuppressStderr         *bool          `toml:"suppress_stderr"`           // nil: true
	Permissions            *Permissions   `toml:"permissions"`               // nil: PermissionMode alone
}

// Permissions is the [agent.permissions] table. An absent field means ask.
type Permissions struct {
	FileWrite     Permission `toml:"file_write"`
	ShellExecute  Permission `toml:"shell_execute"`
	NetworkAccess Permission `toml:"network_access"`
}

// Credential is one [[credentials]] entry: a secret which the gateway adds to requests for its hosts, and which the
// sandbox never holds. Exactly one of Header and Basic is set.
type Credential struct {
	Name   string         `toml:"name"`
	Source Source         `toml:"source"`
	Hosts  []network.Rule `toml:"hosts"`
	Header string         `toml:"header"` // "Authorization: Bearer {secret}"
	Basic  string         `toml:"basic"`  // the user name of HTTP basic authentication
	Env    string         `toml:"env"`    // the variable that holds the placeholder inside; "": none
}

// Model is the [model] table: where the model API's answers come from.
type Model struct {
	Source  ModelSource `toml:"source"`   // "": upstream
	BaseURL string      `toml:"base_url"` // "": DefaultBaseURL
	Path    string      `toml:"path"`     // as written; Config.ModelPath resolves it
}

// Repro is the [repro] table, for runs that must repeat.
type Repro struct {
	Clock string `toml:"clock"` // RFC 3339 in UTC; "": the real one
	Seed  int64  `toml:"seed"`
}
