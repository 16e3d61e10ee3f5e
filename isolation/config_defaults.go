package isolation

import (
	"time"

	"github.com/sandboxrun/sandboxrun/ephemeral"
)

// What absent keys mean.
const (
	DefaultModel   = "claude-sonnet-4-5-20250929"
	DefaultBaseURL = "https://api.anthropic.com"
)

// WithDefaults returns a copy in which every key that has a default says it: pointers to bool are not nil, words are
// not empty, and the limits with defaults are set. What has no default (memory, the budgets, allowed_tools) stays as
// it is, and so does network_policy.transparent.
func (c *Config) WithDefaults() *Config {
	d := *c
	d.Version = 1
	d.Sandbox = d.Sandbox.withDefaults()
	d.Limits = d.Limits.withDefaults()
	d.Agent = d.Agent.withDefaults()
	d.Workspace.Mode = or(d.Workspace.Mode, ephemeral.Overlay)
	d.Workspace.Storage = or(d.Workspace.Storage, ephemeral.Memory)
	if d.Workspace.AllowedHostRoots == nil {
		d.Workspace.AllowedHostRoots = []string{"."}
	}
	d.Model.Source = or(d.Model.Source, Upstream)
	d.Model.BaseURL = or(d.Model.BaseURL, DefaultBaseURL)
	return &d
}

func (s Sandbox) withDefaults() Sandbox {
	s.Enabled = new(s.IsEnabled())
	s.Backend = or(s.Backend, BackendAuto)
	s.ProtectedPaths = new(s.Protected())
	s.BashAutoAllow = new(s.AutoAllowsBash())
	s.AgentSandbox = or(s.AgentSandbox, Auto)
	s.RunAs = or(s.RunAs, RunAsAuto)
	return s
}

func (l Limits) withDefaults() Limits {
	l.WallTime = or(l.WallTime, Duration(time.Hour))
	l.PIDs = or(l.PIDs, 1024)
	l.OpenFiles = or(l.OpenFiles, 4096)
	l.Disk = or(l.Disk, 2<<30)
	l.Connections = or(l.Connections, 512)
	return l
}

func (a Agent) withDefaults() Agent {
	a.Kind = or(a.Kind, ClaudeCode)
	a.Model = or(a.Model, DefaultModel)
	a.PermissionMode = or(a.PermissionMode, ModeBypassPermissions)
	a.StopOnStructuredOutput = new(a.StopsOnStructuredOutput())
	a.SuppressStderr = new(a.SuppressesStderr())
	if a.Permissions != nil {
		a.Permissions = &Permissions{
			FileWrite:     or(a.Permissions.FileWrite, Ask),
			ShellExecute:  or(a.Permissions.ShellExecute, Ask),
			NetworkAccess: or(a.Permissions.NetworkAccess, Ask),
		}
	}
	return a
}

// IsEnabled reports whether there is a sandbox; only an explicit false says no.
func (s Sandbox) IsEnabled() bool { return s.Enabled == nil || *s.Enabled }

// AutoAllowsBash reports whether the agent's own sandbox runs commands without asking.
func (s Sandbox) AutoAllowsBash() bool { return s.BashAutoAllow == nil || *s.BashAutoAllow }

// Protected returns the protected paths for [ephemeral.ParsePatterns], which knows what "default" stands for.
func (s Sandbox) Protected() []string {
	if s.ProtectedPaths == nil {
		return []string{"default"}
	}
	return *s.ProtectedPaths
}

// StopsOnStructuredOutput reports whether the turn ends with the structured answer.
func (a Agent) StopsOnStructuredOutput() bool {
	return a.StopOnStructuredOutput == nil || *a.StopOnStructuredOutput
}

// SuppressesStderr reports whether the agent's standard error is kept from the user; errors carry its end either way.
func (a Agent) SuppressesStderr() bool { return a.SuppressStderr == nil || *a.SuppressStderr }

// ModelPath returns model.path with the policy file's directory in front of a relative one, or "".
func (c *Config) ModelPath() string {
	if c.Model.Path == "" {
		return ""
	}
	return resolveIn(c.Dir("model.path"), c.Model.Path)
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
