package isolation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// policyErrors are policies with one mistake each and the line that tells of it. The policy is named p.toml.
var policyErrors = []struct{ policy, want string }{
	// The file.
	{"", `p.toml:1: version: missing`},
	{"version = 2", `p.toml:1: version = 2: this release reads version 1`},
	{"\nversion = \"1\"", `p.toml:2: version = "1": want an integer, not a string`},
	{"#\nverison = 1", `p.toml:2: verison = 1: unknown key; did you mean "version"?`},
	{"version = 1\nx = ", "p.toml:2: x: unexpected EOF; expected value"},
	{"version = 1\napi_key = hunter2", `p.toml:2: api_key: not a TOML value; strings stand in quotes`},
	{"version = 1\nlimits.pids = 1\nlimits.pids = 2", `p.toml:3: limits.pids: Key 'limits.pids' has already been defined.`},
	// Unknown keys.
	{"version = 1\n[sandbox]\nwriteable_paths = []", `p.toml:3: sandbox.writeable_paths = []: unknown key; did you mean "writable_paths"?`},
	{"version = 1\nallowed_domains = [\"a.test\"]", `p.toml:2: allowed_domains = ["a.test"]: unknown key; did you mean "network_policy.allowed_domains"?`},
	{"version = 1\n[Sandbox]\n", `p.toml:2: Sandbox: unknown key; did you mean "sandbox"?`},
	{"version = 1\n[network]\nallowed = 1", `p.toml:2: network: unknown key`},
	{"version = 1\n[[credentials]]\nname = \"a\"\n\n[[credentials]]\nnane = \"b\"", `p.toml:6: credentials[1].nane = "b": unknown key; did you mean "name"?`},
	{"version = 1\napi_key = { en = \"X\" }", `p.toml:2: api_key.en = [redacted]: unknown key; did you mean "env"?`},
	{"version = 1\nagent.permissions.shell = \"deny\"", `p.toml:2: agent.permissions.shell = "deny": unknown key`},
	{"version = 1\napi_token = \"hunter2\"", `p.toml:2: api_token = [redacted]: unknown key; did you mean "api_key"?`},
	{"version = 1\n\"odd name\" = 1", `p.toml:2: "odd name" = 1: unknown key`},
	{"version = 1\nenforced = 1\n[network_policy.hosts]\n\"a b\" = \"::1\"", `p.toml:2: enforced = 1: unknown key`},
	// Types.
	{"version = 1\ninclude_host_env = \"yes\"", `p.toml:2: include_host_env = "yes": want a boolean, not a string`},
	{"version = 1\npass_env = \"LC_*\"", `p.toml:2: pass_env = "LC_*": want an array, not a string`},
	{"version = 1\npass_env = [\n  \"A\",\n  7,\n]", `p.toml:4: pass_env[1] = 7: want a string, not an integer`},
	{"version = 1\nsandbox = true", `p.toml:2: sandbox = true: want a table, not a boolean`},
	{"version = 1\n[limits]\npids = \"many\"", `p.toml:3: limits.pids = "many": want an integer, not a string`},
	{"version = 1\nlimits.pids = 1.5", `p.toml:2: limits.pids = 1.5: want an integer, not a number`},
	{"version = 1\nagent.max_budget_usd = nan", `p.toml:2: agent.max_budget_usd = nan: want a finite number, not a number`},
	{"version = 1\nrepro.clock = 2026-01-01T00:00:00Z", `p.toml:2: repro.clock = 2026-01-01T00:00:00Z: want a string, not a date or time`},
	{"version = 1\napi_key = 7", `p.toml:2: api_key = [redacted]: want a string or a table with env, file or command, not an integer`},
	{"version = 1\ncredentials = { name = \"a\" }", `p.toml:2: credentials: want an array, not a table`},
	{"version = 1\n[[limits]]\npids = 1", `p.toml:2: limits = [{…}]: want a table, not an array`},
	{"version = 1\nlimits.wall_time = 60", `p.toml:2: limits.wall_time = 60: a duration needs a unit; write "60s"`},
	{"version = 1\nlimits.wall_time = \"-1h\"", `p.toml:2: limits.wall_time = "-1h": want a duration above zero`},
	{"version = 1\nlimits.wall_time = true", `p.toml:2: limits.wall_time = true: want a duration such as "1h30m", not a boolean`},
	{"version = 1\nlimits.disk = \"2GB\"", `p.toml:2: limits.disk = "2GB": size "2GB" is spelt "2GiB"`},
	{"version = 1\nsandbox.run_as = 1.5", `p.toml:2: sandbox.run_as = 1.5: want a string or a uid, not a number`},
	{"version = 1\nsandbox.run_as = -1", `p.toml:2: sandbox.run_as = -1: want a uid from 0 to 4294967294`},
	{"version = 1\nnetwork_policy.allow_unix_sockets = 1", `p.toml:2: network_policy.allow_unix_sockets = 1: allow_unix_sockets 1 must be true, false or a list of paths`},
	{"version = 1\nnetwork_policy.transparent = 1", `p.toml:2: network_policy.transparent = 1: want a boolean, not an integer`},
	// Values.
	{"version = 1\nnetwork_policy.allowed_ports = [443, 0]", `p.toml:2: network_policy.allowed_ports[1] = 0: port 0 is not between 1 and 65535`},
	{"version = 1\nnetwork_policy.allowed_ports = [70000]", `p.toml:2: network_policy.allowed_ports[0] = 70000: port 70000 is not between 1 and 65535`},
	{"version = 1\n[network_policy]\nallowed_domains = [\n  \"a.test\", # fine\n  \"B.test\",\n]", `p.toml:5: network_policy.allowed_domains[1] = "B.test": rule "B.test" is spelt "b.test"`},
	{"version = 1\nnetwork_policy.deny_resolved = [\"10.0.0.0\"]", `p.toml:2: network_policy.deny_resolved[0] = "10.0.0.0": netip.ParsePrefix("10.0.0.0"): no '/'`},
	{"version = 1\n[network_policy.hosts]\n\"a.test\" = \"here\"", `p.toml:3: network_policy.hosts."a.test" = "here": ParseAddr("here"): unable to parse IP`},
	{"version = 1\n[[credentials]]\nhosts = [\"ok.test\", \"https://x.test\"]", `p.toml:3: credentials[0].hosts[1] = "https://x.test": rule "https://x.test" is a URL: write the host alone, "x.test"`},
	{"version = 1\nworkspace.mode = \"overlay \"", `p.toml:2: workspace.mode = "overlay ": want "overlay", "copy", "bind" or "none"; did you mean "overlay"?`},
	{"version = 1\nworkspace.mode = \"\"", `p.toml:2: workspace.mode = "": want "overlay", "copy", "bind" or "none"`},
	{"version = 1\nworkspace.storage = \"ram\"", `p.toml:2: workspace.storage = "ram": want "memory" or "disk"`},
	{"version = 1\nsandbox.backend = \"bwrap\"", `p.toml:2: sandbox.backend = "bwrap": want "auto", "bubblewrap" or "seatbelt"`},
	{"version = 1\nsandbox.agent_sandbox = \"maybe\"", `p.toml:2: sandbox.agent_sandbox = "maybe": want "auto", "on" or "off"`},
	{"version = 1\nsandbox.optional_layers = [\"cgroups\"]", `p.toml:2: sandbox.optional_layers[0] = "cgroups": want "landlock", "seccomp", "cgroup" or "userns_lock"; did you mean "cgroup"?`},
	{"version = 1\nsandbox.syscalls = \"tight\"", `p.toml:2: sandbox.syscalls = "tight": want "default" or "strict"`},
	{"version = 1\nagent.kind = \"claude\"", `p.toml:2: agent.kind = "claude": want "claude-code"`},
	{"version = 1\nagent.permission_mode = \"acceptedits\"", `p.toml:2: agent.permission_mode = "acceptedits": want "default", "acceptEdits", "plan", "bypassPermissions", "dontAsk" or "auto"; did you mean "acceptEdits"?`},
	{"version = 1\nagent.permissions.file_write = \"yes\"", `p.toml:2: agent.permissions.file_write = "yes": want "allow", "ask" or "deny"`},
	{"version = 1\nmodel.source = \"tape\"", `p.toml:2: model.source = "tape": want "upstream", "script", "record" or "replay"`},
	{"version = 1\nlimits.pids = 0", `p.toml:2: limits.pids = 0: want a number above zero`},
	{"version = 1\nlimits.connections = -1", `p.toml:2: limits.connections = -1: want a number above zero`},
	{"version = 1\nlimits.memory = \"0\"", `p.toml:2: limits.memory = "0": want a number above zero`},
	{"version = 1\nagent.max_turns = -1", `p.toml:2: agent.max_turns = -1: want zero or more`},
	{"version = 1\nagent.max_budget_usd = -0.5", `p.toml:2: agent.max_budget_usd = -0.5: want zero or more`},
	{"version = 1\napi_key = \"\"", `p.toml:2: api_key = [redacted]: the secret is empty; remove the key`},
	// Contradictions.
	{"version = 1\nnetwork_policy.localhost_ports = [80]", `p.toml:2: network_policy.localhost_ports = [80]: needs network_policy.allow_localhost = true`},
	{"version = 1\nnetwork_policy.allow_unix_sockets = [\"a.sock\"]", `p.toml:2: network_policy.allow_unix_sockets[0] = "a.sock": want an absolute path`},
	{"version = 1\n[network_policy]\ndeny_resolved = [\n  \"10.0.0.0/8\",\n  \"10.1.0.0/8\",\n]", `p.toml:5: network_policy.deny_resolved[1] = "10.1.0.0/8": "10.1.0.0/8" is spelt "10.0.0.0/8"`},
	{"version = 1\nnetwork_policy.allow_resolved = [\"127.0.0.0/8\"]", `p.toml:2: network_policy.allow_resolved[0] = "127.0.0.0/8": "127.0.0.0/8" is not inside a private range (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7)`},
	{"version = 1\n[network_policy]\nallowed_ports = [443]\nallowed_domains = [\n\"a.test\",\n\"b.test:22\"]", `p.toml:6: network_policy.allowed_domains[1] = "b.test:22": "b.test:22" allows nothing, because port 22 is not in allowed_ports`},
	{"version = 1\n[network_policy.hosts]\n\"a.test\" = \"::1\"\n\"B.test\" = \"::1\"", `p.toml:4: network_policy.hosts."B.test" = "::1": host "B.test" is spelt "b.test"`},
	{"version = 1\nnetwork_policy.intercept = [\"*\"]", `p.toml:2: network_policy.intercept[0] = "*": name the hosts to intercept`},
	{"version = 1\nnetwork_policy.parent_proxy = \"http://u:p@proxy\"", `p.toml:2: network_policy.parent_proxy = [redacted]: a password does not belong in a policy`},
	{"version = 1\nnetwork_policy.parent_proxy = \"proxy:3128\"", `p.toml:2: network_policy.parent_proxy = "proxy:3128": want a URL such as "http://proxy.example:3128"`},
	{"version = 1\nsandbox.allow_unsandboxed_commands = true", `p.toml:2: sandbox.allow_unsandboxed_commands = true: needs sandbox.excluded_commands, the commands meant`},
	{"version = 1\nsandbox.excluded_commands = [\" \"]", `p.toml:2: sandbox.excluded_commands[0] = " ": want a command`},
	{"version = 1\nsandbox.enabled = false", `p.toml:2: sandbox.enabled = false: without a sandbox nothing enforces the network policy`},
	{"version = 1\nsandbox.writable_paths = [\"~/x\"]", `p.toml:2: sandbox.writable_paths[0] = "~/x": ~ is not expanded; write the path in full`},
	{"version = 1\nsandbox.writable_paths = [\"a/\"]", `p.toml:2: sandbox.writable_paths[0] = "a/": write the path as "a"`},
	{"version = 1\nsandbox.readable_paths = [\"/\"]", `p.toml:2: sandbox.readable_paths[0] = "/": grants the whole host; name the directories`},
	{"version = 1\nsandbox.writable_paths = [\"ok\", \"/proc/sys\"]", `p.toml:2: sandbox.writable_paths[1] = "/proc/sys": the sandbox has its own /proc`},
	{"version = 1\nsandbox.protected_paths = [\"../x\"]", `p.toml:2: sandbox.protected_paths[0] = "../x": want "default", a name, or a path inside the workspace`},
	{"version = 1\nworkspace.storage = \"disk\"\nworkspace.mode = \"none\"", `p.toml:2: workspace.storage = "disk": is about an overlay, and workspace.mode is "none"`},
	{"version = 1\nworkspace.mode = \"none\"\n[[workspace.mounts]]\nhost_path = \"a\"", `p.toml:3: workspace.mounts: workspace.mode = "none" has no place for mounts`},
	{"version = 1\n[[workspace.mounts]]\nmount_path = \"a\"", `p.toml:2: workspace.mounts[0].host_path: missing`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"a\"\nmount_path = \"../b\"", `p.toml:4: workspace.mounts[0].mount_path = "../b": want a path inside the workspace, without ..`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"a\"\nmount_path = \"/b\"", `p.toml:4: workspace.mounts[0].mount_path = "/b": want a path inside the workspace, without ..`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"a\"\nmount_path = \"b/../../c\"", `p.toml:4: workspace.mounts[0].mount_path = "b/../../c": write the path as "../c"`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"..\"", `p.toml:3: workspace.mounts[0].host_path = "..": has no name of its own; add mount_path`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"x/a\"\n[[workspace.mounts]]\nhost_path = \"b\"\nmount_path = \"a\"", `p.toml:6: workspace.mounts[1].mount_path = "a": another mount is there`},
	{"version = 1\n[[workspace.mounts]]\nhost_path = \"a\"\ninclude_glob = [\"/x\"]", `p.toml:4: workspace.mounts[0].include_glob[0] = "/x": want a pattern on the path relative to host_path`},
	{"version = 1\nagent.disallowed_tools = [\"--model\"]", `p.toml:2: agent.disallowed_tools[0] = "--model": want the name of a tool, such as "Bash" or "Bash(git *)"`},
	{"version = 1\nagent.allowed_tools = [\"Read,Bash\"]", `p.toml:2: agent.allowed_tools[0] = "Read,Bash": want the name of a tool, such as "Bash" or "Bash(git *)"`},
	{"version = 1\nagent.model = \"--resume\"", `p.toml:2: agent.model = "--resume": want the name of a model`},
	{"version = 1\nmodel.source = \"script\"", `p.toml:2: model.source = "script": needs model.path, the file to use`},
	{"version = 1\nmodel.source = \"replay\"", `p.toml:2: model.source = "replay": needs model.path, the file to use`},
	{"version = 1\nmodel.path = \"a\"", `p.toml:2: model.path = "a": has no meaning with model.source = "upstream"`},
	{"version = 1\nrepro.clock = \"noon\"", `p.toml:2: repro.clock = "noon": want a time such as "2026-01-01T00:00:00Z"`},
	{"version = 1\nrepro.clock = \"2026-01-01T01:00:00+01:00\"", `p.toml:2: repro.clock = "2026-01-01T01:00:00+01:00": want UTC; write "2026-01-01T00:00:00Z"`},
	// Environment.
	{"version = 1\n[env]\nPATH = \"/x\"\nHOME = \"/x\"", `p.toml:4: env.HOME = [redacted]: reserved: sandboxrun sets this variable or keeps it unset`},
	{"version = 1\nenv = { https_proxy = \"x\" }", `p.toml:2: env.https_proxy = [redacted]: reserved: sandboxrun sets this variable or keeps it unset`},
	{"version = 1\nenv.\"A B\" = \"x\"", `p.toml:2: env."A B" = [redacted]: want a name of letters, digits and _ that does not start with a digit`},
	{"version = 1\nenv.A = \"\\u0000\"", `p.toml:2: env.A = [redacted]: the value has a NUL byte`},
	{"version = 1\npass_env = [\"AWS_PROFILE\"]", `p.toml:2: pass_env[0] = "AWS_PROFILE": variables of this prefix never pass the filter; set what the run needs in [env]`},
	{"version = 1\npass_env = [\"LD_PRELOAD\"]", `p.toml:2: pass_env[0] = "LD_PRELOAD": reserved: sandboxrun sets this variable or keeps it unset`},
	{"version = 1\npass_env = [\"A-B\"]", `p.toml:2: pass_env[0] = "A-B": want a name of letters, digits and _, or a glob with * and ?`},
	// Secrets.
	{"version = 1\napi_key = { env = \"A\", file = \"b\" }", `p.toml:2: api_key: want exactly one of a string, env, file and command`},
	{"version = 1\napi_key = {}", `p.toml:2: api_key: want exactly one of a string, env, file and command`},
	{"version = 1\napi_key = { env = \"A B\" }", `p.toml:2: api_key.env = [redacted]: want the name of a variable`},
	{"version = 1\n[[credentials]]\nname = \"A\"\nsource = { env = \"A\" }\nhosts = [\"a.test\"]\nbasic = \"u\"", `p.toml:3: credentials[0].name = "A": want a name of lower case letters, digits, - and _`},
	{credential("") + credential(""), `p.toml:7: credentials[1].name = "a": another credential has this name`},
	{strings.Replace(credential(""), `["a.test"]`, `["*"]`, 1), `p.toml:5: credentials[0].hosts[0] = "*": a secret is bound to hosts; name them`},
	{strings.Replace(credential(""), `["a.test"]`, `[]`, 1), `p.toml:5: credentials[0].hosts = []: want the hosts that get the secret`},
	{credential("basic = \"u\""), `p.toml:2: credentials[0]: want exactly one of header and basic`},
	{strings.Replace(credential(""), "{secret}", "secret", 1), `p.toml:6: credentials[0].header = "x-key: secret": want a header with the secret in it, such as "Authorization: Bearer {secret}"`},
	{credential("env = \"LD_PRELOAD\""), `p.toml:7: credentials[0].env = "LD_PRELOAD": reserved: sandboxrun sets this variable or keeps it unset`},
}

// credential is a policy with one credential and another line in it; two of them make one policy.
func credential(line string) string {
	return "version = 1\n[[credentials]]\nname = \"a\"\nsource = { env = \"A\" }\nhosts = [\"a.test\"]\nheader = \"x-key: {secret}\"\n" + line
}

func TestPolicyErrors(t *testing.T) {
	for _, tt := range policyErrors {
		text := tt.policy
		if n := strings.Count(text, "version = 1\n"); n == 2 {
			text = text[:strings.LastIndex(text, "version = 1\n")] + text[strings.LastIndex(text, "version = 1\n")+len("version = 1\n"):]
			tt.want = strings.Replace(tt.want, ":7:", ":8:", 1)
		}
		_, err := inspectText("p.toml", []byte(text))
		if assert.Error(t, err, tt.policy) {
			assert.Equal(t, tt.want, err.Error(), tt.policy)
			var e *PolicyError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, "p.toml", e.File)
			assert.Positive(t, e.Line)
		}
	}
}

// The twins of the errors: what is right next to what is wrong.
func TestPoliciesThatAreFine(t *testing.T) {
	for _, text := range []string{
		"network_policy.localhost_ports = [80]\nnetwork_policy.allow_localhost = true",
		"network_policy.allow_unix_sockets = [\"/run/a.sock\"]",
		"network_policy.allow_unix_sockets = false",
		"network_policy.allow_resolved = [\"10.0.0.0/8\", \"fd00::/8\"]",
		"network_policy.parent_proxy = \"http://proxy.test:3128\"",
		"[network_policy.hosts]\n\"db.test\" = \"127.0.0.1\"",
		"network_policy.allowed_ports = [1, 65535]",
		"sandbox.allow_unsandboxed_commands = true\nsandbox.excluded_commands = [\"docker\"]",
		"sandbox.enabled = false\nnetwork_policy.allowed_domains = [\"*\"]",
		"sandbox.writable_paths = [\"/proc2\", \"../x\", \"out\"]",
		"sandbox.run_as = 1000",
		"sandbox.run_as = \"nobody\"",
		"workspace.storage = \"disk\"",
		"[[workspace.mounts]]\nhost_path = \"src/a\"\n[[workspace.mounts]]\nhost_path = \"src/b\"\nmount_path = \"x/b\"\nmax_bytes = 0",
		"agent.allowed_tools = [\"Read\", \"Bash(git diff, git log)\", \"mcp__wink__x\"]",
		"agent.permission_mode = \"plan\"", "agent.permission_mode = \"dontAsk\"", "agent.permission_mode = \"auto\"",
		"agent.permission_mode = \"default\"", "agent.permission_mode = \"acceptEdits\"", "agent.permission_mode = \"bypassPermissions\"",
		"agent.max_budget_usd = 1", "agent.max_turns = 0",
		"model.source = \"script\"\nmodel.path = \"a.toml\"",
		"repro.clock = \"2026-01-01T00:00:00Z\"\nrepro.seed = -7", "repro.clock = \"\"",
		"env = { A = \"1\", ANTHROPIC_MODEL = \"x\" }\npass_env = [\"LC_*\", \"GITHUB_TOKEN\", \"*\"]",
		"api_key = { command = [\"pass\", \"show\", \"key\"] }", "api_key = { file = \"k\" }", "api_key = { env = \"K\" }", "api_key = \"k\"",
		"limits.memory = 1024\nlimits.cpu_time = \"250ms\"",
		strings.TrimPrefix(credential("env = \"GITHUB_TOKEN\""), "version = 1\n"),
	} {
		_, err := inspectText("p.toml", []byte("version = 1\n"+text))
		assert.NoError(t, err, text)
	}
}

func TestBaseURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.anthropic.com":          "",
		"https://gateway.test:8443/v1/x":     "",
		"http://127.0.0.1:8080":              "",
		"http://[::1]:8080":                  "",
		"http://localhost:8080/prefix":       "",
		"http://gateway.test":                "http goes to a loopback address only; use https",
		"http://127.0.0.1.example.com":       "http goes to a loopback address only; use https",
		"http://10.0.0.1":                    "http goes to a loopback address only; use https",
		"https://user:pass@gateway.test":     "a secret does not belong in a URL; use api_key",
		"https://gateway.test?x=1":           "want a URL without query and fragment",
		"https://gateway.test#":              "want a URL without query and fragment",
		"ftp://gateway.test":                 "want an https URL, or http to a loopback address",
		"gateway.test":                       `want a URL such as "https://api.anthropic.com"`,
		"https:gateway.test":                 `want a URL such as "https://api.anthropic.com"`,
		"https://gateway.test:0":             "want a plain host name or IP address, with or without a port",
		"https://gateway.test:99999":         "want a plain host name or IP address, with or without a port",
		"https://exa mple.test":              `want a URL such as "https://api.anthropic.com"`,
		"https://127.1":                      "want a plain host name or IP address, with or without a port",
		"https://gateway.test:443:443":       `want a URL such as "https://api.anthropic.com"`,
		"https://0x7f.1":                     "want a plain host name or IP address, with or without a port",
		"javascript://gateway.test/%0aalert": "want an https URL, or http to a loopback address",
	} {
		assert.Equal(t, want, wrongBaseURL(url), url)
	}
}

func TestErrorsComeTogetherInOrder(t *testing.T) {
	text := "version = 1\n[limits]\npids = 0\nopen_file = 3\n[agent]\nmax_turns = \"x\"\n"
	for range 20 {
		_, err := inspectText("p.toml", []byte(text))
		assert.EqualError(t, err, strings.Join([]string{
			`p.toml:3: limits.pids = 0: want a number above zero`,
			`p.toml:4: limits.open_file = 3: unknown key; did you mean "open_files"?`,
			`p.toml:6: agent.max_turns = "x": want an integer, not a string`,
		}, "\n"))
		assert.Len(t, PolicyErrors(err), 3)
	}
}

func TestErrorsAreOneLineEach(t *testing.T) {
	_, err := inspectText("p.toml", []byte("version = 1\n\"a\\nb\\u001b[31m\" = \"x\\ny\"\n"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "\n")
	assert.NotContains(t, err.Error(), "\x1b")
}

func TestErrorsShowNoSecret(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, text := range []string{
		"api_key = [\"" + secret + "\"]", "api_key = { env = [\"" + secret + "\"] }", "api_key = " + secret, "apikey = \"" + secret + "\"",
		"env.LD_PRELOAD = \"" + secret + "\"", "[env]\nA = [\"" + secret + "\"]", "github_token = \"" + secret + "\"",
		"model.base_url = \"https://u:" + secret + "@x.test\"", "network_policy.parent_proxy = \"http://u:" + secret + "@x.test\"",
		"network_policy.allowed_domains = [\"https://u:" + secret + "@x.test\"]", "agent.kind = \"sk-ant-" + secret + secret + "\"",
		"[[credentials]]\nsource = \"" + secret + "\"\nhosts = 3", "[[credentials]]\nsource = { vale = \"" + secret + "\" }",
		"passwords = [\"" + secret + "\"]",
	} {
		_, err := inspectText("p.toml", []byte("version = 1\n"+text))
		if assert.Error(t, err, text) {
			assert.NotContains(t, err.Error(), secret)
		}
	}
	for _, set := range []string{"api_key=" + secret, "api_key=\"" + secret, "env.HOME=\"" + secret + "\"", "db_password=\"" + secret + "\"", "model.base_url=\"https://u:" + secret + "@h\""} {
		_, err := Inspect("no-network", set)
		if assert.Error(t, err, set) {
			assert.NotContains(t, err.Error(), secret)
		}
	}
}

func TestLoadFindsPresetsAndFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "mine.toml", "version = 1\nlimits.pids = 7\n")
	write(t, "sub/mine", "version = 1\nlimits.pids = 8\n")
	for name, pids := range map[string]int{"no-network": 0, "mine.toml": 7, "./mine.toml": 7, "sub/mine": 8} {
		cfg, err := Load(name)
		require.NoError(t, err)
		assert.Equal(t, pids, cfg.Limits.PIDs)
	}
	cfg, err := Load("./mine.toml")
	require.NoError(t, err)
	assert.Equal(t, "mine.toml", cfg.Name())
	assert.Equal(t, []string{"mine.toml"}, cfg.Files())

	_, err = Load("api-onyl")
	assert.EqualError(t, err, `no preset is called "api-onyl"; the presets are api-only, ci, dev, no-network, project, strict; did you mean "api-only"?`)
	_, err = Load("mine")
	assert.EqualError(t, err, `no preset is called "mine"; the presets are api-only, ci, dev, no-network, project, strict`)
	assert.Contains(t, PolicyErrors(err)[0].Hint, "./mine")
	_, err = Load("./none.toml")
	assert.EqualError(t, err, "read policy: open none.toml: no such file or directory")
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.Len(t, PolicyErrors(err), 1)
	for _, name := range []string{"", "..", "../policies/dev"} {
		_, err = Load(name)
		assert.Error(t, err, name)
	}
}

func TestLoadRefusesHugeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.toml")
	write(t, path, "version = 1\n"+strings.Repeat("# x\n", maxPolicy/4))
	_, err := Load(path)
	assert.ErrorContains(t, err, "larger than 1 MiB")
}

func TestLoadIsStrictAndInspectIsNot(t *testing.T) {
	_, err := Load("strict")
	assert.ErrorContains(t, err, `strict:11: sandbox.syscalls = "strict": not enforced yet; remove the key`)
	cfg, err := Inspect("strict")
	require.NoError(t, err)
	assert.Equal(t, StrictSyscalls, cfg.Sandbox.Syscalls)
	_, err = Parse("p.toml", []byte("version = 1\nlimits.memory = \"1GiB\""))
	assert.ErrorContains(t, err, `p.toml:2: limits.memory = "1GiB": not enforced yet`)
}

func TestParseTouchesNoFiles(t *testing.T) {
	cfg, err := Parse("p.toml", []byte("version = 1\nextends = \"api-only\""))
	require.NoError(t, err)
	assert.Equal(t, []string{"p.toml", "api-only", "no-network"}, cfg.Files())
	_, err = Parse("p.toml", []byte("version = 1\nextends = \"./load.go\""))
	assert.EqualError(t, err, `p.toml:2: extends = "./load.go": read policy: open load.go: the policy is not read from a file, so it can extend presets only`)
}

func TestSet(t *testing.T) {
	cfg, err := LoadWith("api-only", `agent.model="claude-opus-4-6"`, "limits.pids = 64", "limits.pids=65",
		`network_policy.allowed_domains=["a.test"]`, `env.A="1"`, `env={B="2"}`, `agent={max_turns=3}`)
	require.NoError(t, err)
	assert.Equal(t, "claude-opus-4-6", cfg.Agent.Model)
	assert.Equal(t, 65, cfg.Limits.PIDs)
	assert.Equal(t, "a.test", cfg.NetworkPolicy.AllowedDomains[0].String())
	assert.Equal(t, map[string]string{"A": "1", "B": "2"}, cfg.Env)
	assert.Equal(t, 3, cfg.Agent.MaxTurns)
	assert.Equal(t, ModeBypassPermissions, cfg.Agent.PermissionMode, "tables merge")
	for set, want := range map[string]string{
		"limits.pids=0":                       `--set limits.pids=0: limits.pids = 0: want a number above zero`,
		"limits.pid=3":                        `--set limits.pid=3: limits.pid = 3: unknown key; did you mean "pids"?`,
		"limits.pids":                         `--set limits.pids: want key=value`,
		"=3":                                  `--set =3: want key=value`,
		"agent.model=opus":                    `--set agent.model=opus: agent.model: expected value but found "opus" instead`,
		"limits.pids=1\nsandbox.enabled=true": `--set limits.pids=1\u000asandbox.enabled=true: want key=value on one line`,
		"version=2":                           `--set version=2: version: can be set in a file only`,
		`extends="dev"`:                       `--set extends="dev": extends: can be set in a file only`,
		`model.source="replay"`:               `--set model.source="replay": model.source = "replay": needs model.path, the file to use`,
		`limits.memory="1GiB"`:                `--set limits.memory="1GiB": limits.memory = "1GiB": not enforced yet; remove the key (limits.pids and limits.disk bound the run)`,
		"limits.pids=1 x":                     `--set limits.pids=1 x: limits.pids: expected newline but got 'x'; did you mean`,
	} {
		_, err := LoadWith("api-only", set)
		if set == "limits.pids=1 x" {
			assert.ErrorContains(t, err, "--set limits.pids=1 x: limits.pids: ")
			continue
		}
		assert.EqualError(t, err, want)
	}
	_, err = LoadWith("api-only", "agent.model=opus")
	assert.Equal(t, `quote a string for TOML and the shell: --set 'agent.model="opus"'`, PolicyErrors(err)[0].Hint)
}

func TestPolicyErrorsTakesErrorsApart(t *testing.T) {
	assert.Empty(t, PolicyErrors(nil))
	assert.Empty(t, PolicyErrors(errors.New("x")))
	assert.Len(t, PolicyErrors(errors.Join(&PolicyError{Msg: "a"}, errors.Join(&PolicyError{Msg: "b"}, errors.New("c")))), 2)
}

// FuzzParse: no text makes the loader panic, and every error knows its line.
func FuzzParse(f *testing.F) {
	for _, tt := range policyErrors {
		f.Add(tt.policy)
	}
	for _, name := range Presets() {
		text, err := PresetText(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(Starter)
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := Parse("p.toml", []byte(text))
		if err == nil {
			require.NoError(t, cfg.Validate())
			require.NotEmpty(t, Explain(cfg))
			require.Len(t, cfg.SHA256(), 64)
			return
		}
		require.Nil(t, cfg)
		all := PolicyErrors(err)
		require.NotEmpty(t, all)
		require.Len(t, strings.Split(err.Error(), "\n"), len(all))
		for _, e := range all {
			if e.File == "p.toml" {
				require.Positive(t, e.Line, e.Error())
				require.LessOrEqual(t, e.Line, strings.Count(text, "\n")+1, e.Error())
			}
		}
	})
}
