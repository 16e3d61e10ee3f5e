package isolation

import (
	"slices"
	"strings"
)

// unbuilt lists the keys whose enforcement is not part of this release, each with the values that ask for nothing and
// what to write instead. A key leaves the table when its enforcement arrives.
var unbuilt = []struct {
	key    string
	fine   string // values as TOML, one a word
	wayOut string
}{
	{"network_policy.allow_localhost", "false", "programs inside reach no port of the host"},
	{"network_policy.localhost_ports", "[]", "programs inside reach no port of the host"},
	{"network_policy.allow_unix_sockets", "false", "sockets made inside work without it"},
	{"network_policy.transparent", "false", "programs that honour the proxy variables reach the allowed domains"},
	{"network_policy.intercept", "[]", "the model API's traffic can be seen without it"},
	{"network_policy.parent_proxy", "", "the gateway connects to hosts itself"},
	{"sandbox.enabled", "true", "runs without a sandbox are not built; grant paths and hosts instead"},
	{"sandbox.backend", `"auto" "bubblewrap"`, `write "auto"`},
	{"sandbox.agent_sandbox", `"auto" "off"`, "the sandbox around the agent is there without it"},
	{"sandbox.optional_layers", "[]", "no layer is skipped"},
	{"sandbox.syscalls", "", "namespaces and dropped capabilities hold without a filter"},
	{"limits.cpu_time", "", "limits.wall_time bounds the run"},
	{"limits.memory", "", "limits.pids and limits.disk bound the run"},
	{"limits.egress_bytes", "", "limits.connections and limits.wall_time bound the run"},
	{"workspace.mode", `"overlay" "none"`, `write "overlay", whose changes stay inside as well`},
	{"workspace.mounts", "", "choose the directory with --workspace"},
	{"agent.deadline", "", "limits.wall_time bounds the run"},
	{"agent.max_total_tokens", "0", "agent.max_turns and agent.max_budget_usd bound the run"},
	{"agent.add_dirs", "[]", "grant the path in sandbox.readable_paths or sandbox.writable_paths"},
	{"agent.permissions", "", "agent.permission_mode and agent.disallowed_tools are there"},
	{"credentials", "", "the model API's key is held outside with api_key"},
	{"model.source", `"upstream" "script"`, `"script" runs offline`},
	{"repro.clock", "", "programs see the real time"},
	{"repro.seed", "0", "nothing reads a seed"},
}

// Enforceable returns an error for every key that asks for what this release does not enforce, or nil. Load has called
// it; Inspect has not.
func (c *Config) Enforceable() error {
	f := faults{origin: c.origin}
	for _, l := range leaves(c) {
		for _, u := range unbuilt {
			if !within(l.key, u.key) || slices.Contains(strings.Fields(u.fine), rawText(l.data)) {
				continue
			}
			text := ""
			if l.key == u.key {
				text = l.text()
			}
			if !slices.ContainsFunc(f.list, func(e *PolicyError) bool { return e.Key == u.key }) {
				f.add(u.key, text, "not enforced yet; remove the key (%s)", u.wayOut)
			}
		}
	}
	return f.err()
}
