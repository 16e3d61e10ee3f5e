package isolation

import (
	"fmt"
	"strconv"
)

// Backend names what builds the sandbox.
type Backend string

// The backends.
const (
	BackendAuto Backend = "auto"
	Bubblewrap  Backend = "bubblewrap"
	Seatbelt    Backend = "seatbelt"
)

// Switch is a setting that sandboxrun may decide by itself.
type Switch string

// The positions of a Switch.
const (
	Auto Switch = "auto"
	On   Switch = "on"
	Off  Switch = "off"
)

// Layer names a part of the wall that some kernels lack.
type Layer string

// The layers that a policy may declare optional.
const (
	Landlock   Layer = "landlock"
	Seccomp    Layer = "seccomp"
	Cgroup     Layer = "cgroup"
	UsernsLock Layer = "userns_lock"
)

// Syscalls names a system call filter.
type Syscalls string

// The system call filters.
const (
	DefaultSyscalls Syscalls = "default"
	StrictSyscalls  Syscalls = "strict"
)

// AgentKind names the program that runs inside.
type AgentKind string

// The kinds of agent. A policy file may name ClaudeCode only; AnyCommand is any other program.
const (
	ClaudeCode AgentKind = "claude-code"
	AnyCommand AgentKind = "command"
)

// PermissionMode is Claude Code's --permission-mode.
type PermissionMode string

// The permission modes.
const (
	ModeDefault           PermissionMode = "default"
	ModeAcceptEdits       PermissionMode = "acceptEdits"
	ModePlan              PermissionMode = "plan"
	ModeBypassPermissions PermissionMode = "bypassPermissions"
	ModeDontAsk           PermissionMode = "dontAsk"
	ModeAuto              PermissionMode = "auto"
)

// Permission is the answer of the unified permission model to one kind of act.
type Permission string

// The permissions.
const (
	Allow Permission = "allow"
	Ask   Permission = "ask"
	Deny  Permission = "deny"
)

// ModelSource says who answers the agent's model requests.
type ModelSource string

// The model sources.
const (
	Upstream ModelSource = "upstream"
	Script   ModelSource = "script"
	Record   ModelSource = "record"
	Replay   ModelSource = "replay"
)

// RunAs says under which kernel user a sandbox runs that root started: "auto", "root", a user name or a uid.
type RunAs string

// The two values of RunAs that are not users.
const (
	RunAsAuto RunAs = "auto"
	RunAsRoot RunAs = "root"
)

// UnmarshalTOML accepts a string, or an integer as a uid.
func (r *RunAs) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case string:
		if v == "" {
			return fmt.Errorf(`want "auto", "root", a user name or a uid`)
		}
		*r = RunAs(v)
	case int64:
		if v < 0 || v >= 1<<32-1 {
			return fmt.Errorf("want a uid from 0 to %d", uint32(1<<32-2))
		}
		*r = RunAs(strconv.FormatInt(v, 10))
	default:
		return fmt.Errorf("want a string or a uid, not %s", kindName(value))
	}
	return nil
}
