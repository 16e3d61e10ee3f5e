package isolation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused sets every key of the table of unbuilt keys to something, on line 2.
var refused = map[string]string{
	"network_policy.allow_localhost":    "network_policy.allow_localhost = true",
	"network_policy.localhost_ports":    "network_policy.localhost_ports = [1]\nnetwork_policy.allow_localhost = true",
	"network_policy.allow_unix_sockets": `network_policy.allow_unix_sockets = ["/run/a"]`,
	"network_policy.transparent":        "network_policy.transparent = true",
	"network_policy.intercept":          `network_policy.intercept = ["a.test"]`,
	"network_policy.parent_proxy":       `network_policy.parent_proxy = "http://p.test:1"`,
	"sandbox.enabled":                   "sandbox.enabled = false\nnetwork_policy.allowed_domains = [\"*\"]",
	"sandbox.backend":                   `sandbox.backend = "seatbelt"`,
	"sandbox.agent_sandbox":             `sandbox.agent_sandbox = "on"`,
	"sandbox.optional_layers":           `sandbox.optional_layers = ["landlock"]`,
	"sandbox.syscalls":                  `sandbox.syscalls = "default"`,
	"limits.cpu_time":                   `limits.cpu_time = "1h"`,
	"limits.memory":                     `limits.memory = "4GiB"`,
	"limits.egress_bytes":               `limits.egress_bytes = "1GiB"`,
	"workspace.mode":                    `workspace.mode = "bind"`,
	"workspace.mounts":                  "[[workspace.mounts]]\nhost_path = \"a\"",
	"agent.deadline":                    `agent.deadline = "1h"`,
	"agent.max_total_tokens":            "agent.max_total_tokens = 1",
	"agent.add_dirs":                    `agent.add_dirs = ["a"]`,
	"agent.permissions":                 "[agent.permissions]",
	"credentials":                       strings.TrimPrefix(credential(""), "version = 1\n"),
	"model.source":                      "model.source = \"record\"\nmodel.path = \"a\"",
	"repro.clock":                       `repro.clock = "2026-01-01T00:00:00Z"`,
	"repro.seed":                        "repro.seed = 1",
}

func TestUnbuiltKeysAreRefused(t *testing.T) {
	for _, u := range unbuilt {
		text, ok := refused[u.key]
		require.True(t, ok, "no test of %s", u.key)
		_, err := Parse("p.toml", []byte("version = 1\n"+text))
		if assert.Error(t, err, u.key) {
			first := PolicyErrors(err)[0]
			assert.Regexp(t, `^p\.toml:2: .*: not enforced yet; remove the key \(.+\)$`, first.Error())
			found := false
			for _, e := range PolicyErrors(err) {
				found = found || e.Key == u.key
			}
			assert.True(t, found, u.key)
		}
		_, err = inspectText("p.toml", []byte("version = 1\n"+text))
		assert.NoError(t, err, "%s is valid all the same", u.key)
	}
	assert.Len(t, refused, len(unbuilt))
}

func TestUnbuiltMessages(t *testing.T) {
	_, err := Parse("p.toml", []byte("version = 1\n[workspace]\nmode = \"copy\"\n[[workspace.mounts]]\nhost_path = \"a\"\n[[workspace.mounts]]\nhost_path = \"b\"\n[agent.permissions]\nfile_write = \"deny\"\n"))
	assert.EqualError(t, err, strings.Join([]string{
		`p.toml:3: workspace.mode = "copy": not enforced yet; remove the key (write "overlay", whose changes stay inside as well)`,
		`p.toml:4: workspace.mounts: not enforced yet; remove the key (choose the directory with --workspace)`,
		`p.toml:8: agent.permissions: not enforced yet; remove the key (agent.permission_mode and agent.disallowed_tools are there)`,
	}, "\n"))
	err = (&Config{Repro: Repro{Seed: 3}}).Enforceable()
	assert.EqualError(t, err, "repro.seed = 3: not enforced yet; remove the key (nothing reads a seed)")
}

func TestMistakesComeBeforeWhatIsNotEnforced(t *testing.T) {
	_, err := Parse("p.toml", []byte("version = 1\nrepro.seed = 1\nlimits.pid = 1\n"))
	assert.EqualError(t, err, `p.toml:3: limits.pid = 1: unknown key; did you mean "pids"?`)
}

// What asks for nothing, and what this release does, is let through.
func TestBuiltKeysAreLetThrough(t *testing.T) {
	for _, text := range []string{
		"network_policy.allow_localhost = false\nnetwork_policy.localhost_ports = []\nnetwork_policy.allow_unix_sockets = false",
		"network_policy.transparent = false\nnetwork_policy.intercept = []\nnetwork_policy.parent_proxy = \"\"",
		"network_policy.allowed_domains = [\"a.test\"]\nnetwork_policy.denied_domains = [\"b.test\"]\nnetwork_policy.allowed_ports = [1]",
		"network_policy.deny_resolved = [\"10.0.0.0/8\"]\nnetwork_policy.allow_resolved = [\"10.0.0.0/8\"]\n[network_policy.hosts]\n\"a.test\" = \"::1\"",
		"sandbox.backend = \"auto\"\nsandbox.agent_sandbox = \"off\"\nsandbox.optional_layers = []", "sandbox.backend = \"bubblewrap\"\nsandbox.agent_sandbox = \"auto\"",
		"sandbox.writable_paths = [\"/a\"]\nsandbox.readable_paths = [\"/b\"]\nsandbox.hidden_paths = [\"/c\"]\nsandbox.protected_paths = [\".envrc\"]",
		"sandbox.excluded_commands = [\"docker\"]\nsandbox.allow_unsandboxed_commands = true\nsandbox.bash_auto_allow = false\nsandbox.run_as = \"root\"",
		"limits = { wall_time = \"1m\", pids = 1, open_files = 1, disk = \"1MiB\", connections = 1 }",
		"workspace.mode = \"none\"", "workspace.mode = \"overlay\"\nworkspace.storage = \"disk\"\nworkspace.allowed_host_roots = [\"/a\"]\nworkspace.mounts = []",
		"agent = { kind = \"claude-code\", model = \"m\", permission_mode = \"plan\", max_turns = 1, max_budget_usd = 1.0, allowed_tools = [], disallowed_tools = [\"Bash\"] }",
		"agent = { system_prompt = \"a\", append_system_prompt = \"b\", suppress_stderr = false, include_partial_messages = true, stop_on_structured_output = true }",
		"agent = { add_dirs = [], max_total_tokens = 0 }",
		"model = { source = \"script\", path = \"a.toml\", base_url = \"http://127.0.0.1:1\" }", "model.source = \"upstream\"",
		"credentials = []", "repro = { clock = \"\", seed = 0 }", "include_host_env = true\npass_env = [\"A\"]\napi_key = \"k\"\nenv.A = \"1\"",
	} {
		_, err := Parse("p.toml", []byte("version = 1\n"+text))
		assert.NoError(t, err, text)
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		policy string
		want   []string
	}{
		{"", nil},
		{"extends = \"api-only\"", nil},
		{"network_policy.allowed_domains = [\"a.test\"]", []string{"sandbox.bash_auto_allow is on and the network is not closed: commands run without a question and can reach a.test"}}, // S3-24
		{"network_policy.allowed_domains = [\"a.test\"]\nsandbox.bash_auto_allow = false", nil},
		{"network_policy.allowed_domains = [\"api.anthropic.com:443\"]", nil},
		{"network_policy.allowed_domains = [\"llm.test\"]\nmodel.base_url = \"https://llm.test/v1\"", nil},
		{"network_policy.allowed_domains = [\"a.test\"]\nnetwork_policy.allowed_ports = []", []string{"network_policy.allowed_ports = []: no allowed domain can be reached"}},
		{"network_policy.allowed_domains = [\"*\"]\nsandbox.bash_auto_allow = false", []string{`network_policy.allowed_domains has "*": every host on the internet can be reached, and anything inside can leave by it`}},
		{"api_key = \"k\"", []string{"api_key is written in the policy: whoever reads the file has the key; use { env = … } or { file = … }"}},
		{"api_key = { env = \"K\" }", nil},
		{"sandbox.run_as = 0", []string{`sandbox.run_as = "0": a kernel bug is the only thing between the run and root`}},
		{"sandbox.run_as = \"root\"", []string{`sandbox.run_as = "root": a kernel bug is the only thing between the run and root`}},
		{"sandbox.run_as = \"nobody\"", nil},
		{"sandbox.allow_unsandboxed_commands = true\nsandbox.excluded_commands = [\"a\", \"b\", \"c\", \"d\", \"e\"]", []string{"sandbox.allow_unsandboxed_commands = true: the agent may run a, b, c and 2 more outside its own sandbox"}},
		{"pass_env = [\"GITHUB_TOKEN\", \"LANG\", \"*_TOKEN\"]\nenv = { PLAIN = \"1\", DB_PASSWORD = \"1\" }", []string{
			"env.DB_PASSWORD looks like a secret: everything inside can read and send it",
			"pass_env GITHUB_TOKEN looks like a secret: everything inside can read and send it",
		}},
	} {
		assert.Equal(t, tt.want, inspect(t, tt.policy).Warnings(), tt.policy)
	}
	dev, err := Inspect("dev")
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(dev.Warnings()), "sandbox.enabled = false")
}
