package isolation

import (
	"strings"
	"sync"
)

// keyInfo is what the types do not say about a key. Defaults are not here: [Config.WithDefaults] is their one place.
type keyInfo struct {
	key      string // without indexes: "credentials[].name"
	doc      string
	words    string // the words it may be, if it is one of a few
	positive bool   // a number above zero
	signed   bool   // a number that may be negative
}

// keyInfos has one row for every key of the types; a test keeps both in step.
var keyInfos = []keyInfo{
	{key: "version", doc: "The version of the format. Required; this release reads version 1.", positive: true},
	{key: "description", doc: "What the policy is for, in a sentence."},
	{key: "extends", doc: "One preset, or a file relative to this one, that this policy changes: tables merge, other values replace."},
	{key: "include_host_env", doc: "Inherit the host's variables that pass the secret filter."},
	{key: "pass_env", doc: "Host variables to let through, by name or glob. Secret-like names need naming exactly."},
	{key: "api_key", doc: "Where the model API's key comes from. It stays outside the sandbox. Default: the host's ANTHROPIC_API_KEY."},
	{key: "api_key.env", doc: "A variable of the host."},
	{key: "api_key.file", doc: "A file, relative to the policy file."},
	{key: "api_key.command", doc: "A program and its arguments; its standard output is the secret."},
	{key: "env", doc: "Extra variables inside, of the highest priority. Names that steer the sandbox itself are refused."},

	{key: "network_policy", doc: "Which hosts the run may reach. Without it there is no network."},
	{key: "network_policy.allowed_domains", doc: `Hosts that may be reached: "host", "*.host" for its subdomains, "host:port", an IP address, or "*".`},
	{key: "network_policy.denied_domains", doc: "Hosts that may not be reached, whatever else allows them."},
	{key: "network_policy.allowed_ports", doc: "Ports on allowed domains. Absent: any; empty: none."},
	{key: "network_policy.allow_localhost", doc: "Let the host's loopback be reached through the gateway, as host.sandboxrun.internal."},
	{key: "network_policy.localhost_ports", doc: "Ports of 127.0.0.1 inside that are the host's."},
	{key: "network_policy.allow_unix_sockets", doc: "Host sockets: true for those under granted paths, or a list of paths to bind in."},
	{key: "network_policy.deny_resolved", doc: "Networks that allowed names must not resolve to."},
	{key: "network_policy.allow_resolved", doc: "Private networks that allowed names may resolve to."},
	{key: "network_policy.transparent", doc: "Programs that ignore the proxy variables work too."},
	{key: "network_policy.intercept", doc: "Hosts whose TLS the gateway ends with a certificate authority of the run."},
	{key: "network_policy.parent_proxy", doc: "An http or https proxy on the way out."},
	{key: "network_policy.hosts", doc: "Pinned names, each with its address, exempt from the check of resolved addresses."},

	{key: "sandbox", doc: "The wall and the holes in it."},
	{key: "sandbox.enabled", doc: "Whether there is a sandbox at all."},
	{key: "sandbox.backend", doc: "What builds the sandbox.", words: "auto bubblewrap seatbelt"},
	{key: "sandbox.writable_paths", doc: "Host paths beyond the workspace, read and write. Relative ones start at the workspace root."},
	{key: "sandbox.readable_paths", doc: "Host paths, read only."},
	{key: "sandbox.hidden_paths", doc: "Paths inside granted ones that show as empty."},
	{key: "sandbox.protected_paths", doc: `Workspace paths whose changes are not applied unless named. "default" is a list of files that run code later.`},
	{key: "sandbox.excluded_commands", doc: "Commands that run outside the agent's own sandbox, still inside this one."},
	{key: "sandbox.allow_unsandboxed_commands", doc: "Let the agent ask for commands outside its own sandbox."},
	{key: "sandbox.bash_auto_allow", doc: "The agent's own sandbox runs commands without asking."},
	{key: "sandbox.agent_sandbox", doc: "The agent's own sandbox, a second wall inside this one.", words: "auto on off"},
	{key: "sandbox.optional_layers", doc: "Layers that may be missing on this kernel. Others are required."},
	{key: "sandbox.optional_layers[]", words: "landlock seccomp cgroup userns_lock"},
	{key: "sandbox.syscalls", doc: "The system call filter.", words: "default strict"},
	{key: "sandbox.run_as", doc: `When root starts the run: "auto" for a kernel user that is not root, a user name, a uid, or "root".`},

	{key: "limits", doc: "Resource limits of the run."},
	{key: "limits.wall_time", doc: "Time until the run is killed.", positive: true},
	{key: "limits.cpu_time", doc: "Processor time of all processes together.", positive: true},
	{key: "limits.memory", doc: "Memory of all processes together.", positive: true},
	{key: "limits.pids", doc: "Processes and threads at once.", positive: true},
	{key: "limits.open_files", doc: "Open files of one process.", positive: true},
	{key: "limits.disk", doc: "Everything written in the memory-backed home, temporary directory and overlay.", positive: true},
	{key: "limits.egress_bytes", doc: "Bytes through the gateway, both directions.", positive: true},
	{key: "limits.connections", doc: "Connections through the gateway at once.", positive: true},

	{key: "workspace", doc: "How the run gets the workspace."},
	{key: "workspace.mode", doc: "A copy-on-write view, a copy, the directory itself, or nothing.", words: "overlay copy bind none"},
	{key: "workspace.allowed_host_roots", doc: "Directories that mounts must resolve inside."},
	{key: "workspace.storage", doc: "Where an overlay keeps what the run writes.", words: "memory disk"},
	{key: "workspace.mounts", doc: "Parts of the host to show in the workspace. Without any: the workspace directory, whole."},
	{key: "workspace.mounts[].host_path", doc: "What to mount."},
	{key: "workspace.mounts[].mount_path", doc: "Where in the workspace. Default: the base name of host_path."},
	{key: "workspace.mounts[].include_glob", doc: "Patterns of files to take, relative to host_path."},
	{key: "workspace.mounts[].exclude_glob", doc: "Patterns of files to leave out."},
	{key: "workspace.mounts[].max_bytes", doc: "Size budget. 0: nothing fits; absent: unlimited."},
	{key: "workspace.mounts[].follow_symlinks", doc: "Copy what symbolic links point at, inside the allowed roots."},

	{key: "agent", doc: "The agent and how it is started."},
	{key: "agent.kind", doc: "Which agent.", words: "claude-code"},
	{key: "agent.model", doc: "The model's name."},
	{key: "agent.permission_mode", doc: "The agent's own permission mode.", words: "default acceptEdits plan bypassPermissions dontAsk auto"},
	{key: "agent.max_turns", doc: "Turns until the run ends. 0: unlimited."},
	{key: "agent.max_budget_usd", doc: "Dollars until the run ends. 0: unlimited."},
	{key: "agent.max_total_tokens", doc: "Tokens until tools are refused. 0: unlimited."},
	{key: "agent.deadline", doc: "Time until tools are refused.", positive: true},
	{key: "agent.allowed_tools", doc: "The only tools there are. Absent: all; empty: none."},
	{key: "agent.disallowed_tools", doc: "Tools that there are not, whatever else allows them."},
	{key: "agent.system_prompt", doc: "Replaces the agent's system prompt."},
	{key: "agent.append_system_prompt", doc: "Follows the agent's system prompt."},
	{key: "agent.add_dirs", doc: "Further directories that the agent may work in."},
	{key: "agent.include_partial_messages", doc: "Report answers while they are being written."},
	{key: "agent.stop_on_structured_output", doc: "End the turn with the structured answer."},
	{key: "agent.suppress_stderr", doc: "Keep the agent's standard error from the user."},
	{key: "agent.permissions", doc: "What the agent may do by itself. A key that is absent from the table means ask."},
	{key: "agent.permissions.file_write", doc: "Writing and editing files.", words: "allow ask deny"},
	{key: "agent.permissions.shell_execute", doc: "Running commands.", words: "allow ask deny"},
	{key: "agent.permissions.network_access", doc: "Fetching from the network by tools.", words: "allow ask deny"},

	{key: "credentials", doc: "Secrets that the gateway adds to requests; the sandbox sees placeholders."},
	{key: "credentials[].name", doc: "The name in audit and receipt."},
	{key: "credentials[].source", doc: "Where the secret comes from."},
	{key: "credentials[].source.env", doc: "A variable of the host."},
	{key: "credentials[].source.file", doc: "A file, relative to the policy file."},
	{key: "credentials[].source.command", doc: "A program and its arguments; its standard output is the secret."},
	{key: "credentials[].hosts", doc: "The only hosts that get the secret."},
	{key: "credentials[].header", doc: `The header to set, with {secret} in it: "Authorization: Bearer {secret}".`},
	{key: "credentials[].basic", doc: "The user name, for HTTP basic authentication with the secret as password."},
	{key: "credentials[].env", doc: "The variable that holds the placeholder inside."},

	{key: "model", doc: "Where the model API's answers come from."},
	{key: "model.source", doc: "The real API, a script, or a cassette that is recorded or replayed.", words: "upstream script record replay"},
	{key: "model.base_url", doc: "The model API: any https URL, or http to a loopback address."},
	{key: "model.path", doc: "The script or cassette, relative to the policy file."},

	{key: "repro", doc: "For runs that must repeat."},
	{key: "repro.clock", doc: `The time as programs see it: "2026-01-01T00:00:00Z". Empty: the real one.`},
	{key: "repro.seed", doc: "The seed of what is random.", signed: true},
}

var keyInfoByKey = sync.OnceValue(func() map[string]keyInfo {
	m := make(map[string]keyInfo, len(keyInfos))
	for _, k := range keyInfos {
		m[k.key] = k
	}
	return m
})

// infoOf returns what is known about a key with indexes, or nothing.
func infoOf(key string) keyInfo { return keyInfoByKey()[withoutIndexes(key)] }

// withoutIndexes turns "credentials[1].hosts[0]" into "credentials[].hosts[]".
func withoutIndexes(key string) string {
	if !strings.Contains(key, "[") {
		return key
	}
	var b strings.Builder
	for i, part := range strings.Split(key, "[") {
		if _, rest, ok := strings.Cut(part, "]"); ok && i > 0 {
			part = "[]" + rest
		}
		b.WriteString(part)
	}
	return b.String()
}

// otherTable returns the full key that ends in name, for keys that stand in the wrong table, or "".
func otherTable(name string) string {
	for _, k := range keyInfos {
		if strings.HasSuffix(k.key, "."+name) && !strings.Contains(k.key, "[]") {
			return k.key
		}
	}
	return ""
}
