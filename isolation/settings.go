package isolation

import (
	"bytes"
	"encoding/json"
)

// settings is the part of Claude Code's settings.json that a policy decides (CLI 2.1.329). The CLI drops a file with one
// wrong value and ignores keys it does not know, so the types here are its types.
type settings struct {
	Sandbox settingsSandbox `json:"sandbox"`
}

type settingsSandbox struct {
	Enabled bool `json:"enabled"`
	// Without this the CLI runs unconfined when its sandbox cannot start.
	FailIfUnavailable bool `json:"failIfUnavailable"`
	AutoAllowBash     bool `json:"autoAllowBashIfSandboxed"`
	// The CLI's default is true: then the model may leave the sandbox by asking for it.
	AllowUnsandboxedCommands bool                `json:"allowUnsandboxedCommands"`
	ExcludedCommands         []string            `json:"excludedCommands,omitempty"`
	Network                  settingsNetwork     `json:"network"`
	Filesystem               *settingsFilesystem `json:"filesystem,omitempty"`
	Credentials              *settingsCredential `json:"credentials,omitempty"`
}

type settingsNetwork struct {
	AllowedDomains []string `json:"allowedDomains"`
	DeniedDomains  []string `json:"deniedDomains,omitempty"`
	// Without this bypassPermissions reaches hosts that are not on the list.
	StrictAllowlist     bool     `json:"strictAllowlist"`
	AllowLocalBinding   bool     `json:"allowLocalBinding,omitempty"`
	AllowUnixSockets    []string `json:"allowUnixSockets,omitempty"`
	AllowAllUnixSockets bool     `json:"allowAllUnixSockets,omitempty"`
}

type settingsFilesystem struct {
	AllowWrite []string `json:"allowWrite,omitempty"`
	AllowRead  []string `json:"allowRead,omitempty"`
	DenyRead   []string `json:"denyRead,omitempty"`
}

type settingsCredential struct {
	EnvVars []settingsVariable `json:"envVars"`
}

type settingsVariable struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
}

// ClaudeSettings returns the settings.json for a run of Claude Code: its own sandbox, a second wall inside this one.
// That one is on only with agent_sandbox = "on", but the keys that keep it closed are always there. The file goes to
// --settings, for with --setting-sources= the CLI does not read the one in its home. It is pure.
func ClaudeSettings(c *Config) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(settings{Sandbox: c.settingsSandbox()})
	return b.Bytes(), err
}

func (c *Config) settingsSandbox() settingsSandbox {
	inner := settingsSandbox{
		Enabled:                  c.Sandbox.AgentSandbox == On,
		FailIfUnavailable:        true,
		AutoAllowBash:            c.Sandbox.AutoAllowsBash() && c.allowsShell(),
		AllowUnsandboxedCommands: c.Sandbox.AllowUnsandboxedCommands,
		ExcludedCommands:         c.Sandbox.ExcludedCommands,
		Network:                  c.settingsNetwork(),
	}
	fs := settingsFilesystem{c.Sandbox.WritablePaths, c.Sandbox.ReadablePaths, c.Sandbox.HiddenPaths}
	if len(fs.AllowWrite)+len(fs.AllowRead)+len(fs.DenyRead) > 0 {
		inner.Filesystem = &fs
	}
	if inner.Enabled {
		// Whoever holds these two can put words into the user's mouth in this session.
		inner.Credentials = &settingsCredential{EnvVars: []settingsVariable{
			{"CLAUDE_CODE_MESSAGING_SOCKET", "deny"}, {"CLAUDE_CODE_MESSAGING_TOKEN", "deny"},
		}}
	}
	return inner
}

// allowsShell reports whether nothing stands against running commands unasked. The CLI asks no callback about commands
// that its sandbox allows by itself, so a policy that wants to be asked must switch that off.
func (c *Config) allowsShell() bool {
	return c.Agent.Permissions == nil || c.Agent.Permissions.ShellExecute == Allow
}
