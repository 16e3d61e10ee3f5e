package isolation

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// environment returns what a run sees of the host variables, as a map.
func environment(t *testing.T, policy string, host ...string) (map[string]string, EnvReport) {
	t.Helper()
	vars, report := Environment(inspect(t, policy), AnyCommand, host, nil)
	assert.True(t, slices.IsSortedFunc(vars, func(a, b Var) int { return strings.Compare(a.Name, b.Name) }))
	env := map[string]string{}
	for _, v := range vars {
		env[v.Name] = v.Value
	}
	assert.Len(t, env, len(vars))
	return env, report
}

func TestEnvironmentFromNothing(t *testing.T) { // S3-31, S3-33, C19
	env, report := environment(t, "", "PATH=/evil", "HOME=/root", "FOO=bar", "ANTHROPIC_API_KEY=k", "TERM=xterm-256color", "LANG=de_DE")
	assert.Equal(t, map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/agent", "USER": "agent", "LOGNAME": "agent",
		"SHELL": "/bin/bash", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "xterm-256color", "TZ": "UTC",
		"XDG_CONFIG_HOME": "/home/agent/.config", "XDG_CACHE_HOME": "/home/agent/.cache",
		"XDG_DATA_HOME": "/home/agent/.local/share", "XDG_STATE_HOME": "/home/agent/.local/state",
	}, env)
	assert.Equal(t, EnvReport{}, report)
}

func TestEnvironmentOfClaudeCode(t *testing.T) {
	plain, _ := Environment(&Config{}, AnyCommand, nil, nil)
	vars, _ := Environment(&Config{}, ClaudeCode, nil, nil)
	var added []string
	for _, v := range vars {
		if !slices.Contains(plain, v) {
			added = append(added, v.Name+"="+v.Value)
		}
	}
	assert.Equal(t, []string{
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_SDK_READS_SESSION_STATE=1",
		"CLAUDE_CODE_TMPDIR=/tmp", "CLAUDE_CONFIG_DIR=/home/agent/.claude", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_TELEMETRY=1",
	}, added)
}

func TestEnvironmentOrder(t *testing.T) { // S3-35
	cfg := inspect(t, "include_host_env = true\n[env]\nFROM_BASE = \"env\"\nFROM_HOST = \"env\"\nPATH = \"/opt/bin\"")
	vars, _ := Environment(cfg, ClaudeCode, []string{"FROM_HOST=host", "LANG=fr_FR", "TZ=Asia/Tokyo", "ONLY_HOST=1"},
		[]Var{{"FROM_BASE", "base"}, {"HTTP_PROXY", "http://127.0.0.1:1"}, {"HOME", "/elsewhere"}, {"ONLY_HOST", "base"}})
	env := Environ(vars)
	for _, want := range []string{"FROM_BASE=env", "FROM_HOST=env", "PATH=/opt/bin", "LANG=fr_FR", "TZ=Asia/Tokyo", "HTTP_PROXY=http://127.0.0.1:1", "HOME=/elsewhere", "ONLY_HOST=base"} {
		assert.Contains(t, env, want)
	}
}

func TestEnvironmentRefusesWhatValidateWould(t *testing.T) {
	cfg := &Config{
		PassEnv: []string{"HOME", "AWS_PROFILE", "LD_PRELOAD", "https_proxy", "NODE_OPTIONS", "BASH_FUNC_x%%", "FINE"},
		Env:     map[string]string{"HOME": "/root", "ld_preload": "x", "A B": "x", "N": "a\x00b", "OK": "1"},
	}
	vars, report := Environment(cfg, AnyCommand, []string{"HOME=/root", "AWS_PROFILE=p", "LD_PRELOAD=x", "https_proxy=x", "NODE_OPTIONS=x", "BASH_FUNC_x%%=() { :; }", "FINE=1"}, nil)
	env := Environ(vars)
	assert.Contains(t, env, "HOME=/home/agent")
	assert.Contains(t, env, "OK=1")
	assert.Contains(t, env, "FINE=1")
	assert.Len(t, env, 13+2)
	assert.Equal(t, []string{"FINE"}, report.Passed)
	assert.Equal(t, []Dropped{
		{"A B", ReasonMalformed}, {"AWS_PROFILE", ReasonFloor}, {"BASH_FUNC_x%%", ReasonFunction}, {"HOME", ReasonFloor}, {"HOME", ReasonOwn},
		{"LD_PRELOAD", ReasonHook}, {"N", ReasonMalformed}, {"NODE_OPTIONS", ReasonHook}, {"https_proxy", ReasonProxy}, {"ld_preload", ReasonOwn},
	}, report.Dropped)
}

// The filter, one row a variable of the host: "" passes.
func TestHostVariables(t *testing.T) { // S3-32, C26
	for entry, want := range map[string]Reason{
		"EDITOR_WIDTH=80": "", "LC_ALL=C": "", "LC_TIME=de_DE.UTF-8": "", "COLORTERM=truecolor": "", "MY_APP_MODE=test": "", "CI=true": "", "GOPATH=/home/u/go": "",
		"GOOS=linux": "", "TAG=v1.2.3": "", "URL=https://example.com/a?b=c": "", "MONKEY=1": "", "KEYBOARD=us": "", "AUTHOR=Ann": "", "CO_AUTHORS=Ann, Bob": "",
		"COMPASS=north": "", "NUMBER=123456789012345678901234567890123": "",
		"LONG=the quick brown fox jumps over the lazy dog 1234567890 and goes on": "", "A_PATH=/usr/lib/x86_64-linux-gnu/perl5/5.36/auto/share/dist/Module": "",
		"MAILTO=ann@example.com": "", "EMPTY=": "", "EQUALS=a=b": "",
		// S3-32, and more of the floor.
		"HOMEBREW_PREFIX=/x": ReasonFloor, "HOME_X=1": ReasonFloor, "CLAUDE_X=1": ReasonFloor, "CLAUDECODE=1": ReasonFloor, "ANTHROPIC_MODEL=1": ReasonFloor,
		"AWS_REGION=1": ReasonFloor, "GOOGLE_X=1": ReasonFloor, "aws_region=1": ReasonFloor,
		// Ours.
		"PATH=/x": ReasonOwn, "USER=u": ReasonOwn, "TMPDIR=/x": ReasonOwn, "PWD=/x": ReasonOwn, "XDG_RUNTIME_DIR=/x": ReasonOwn, "_=/x": ReasonOwn, "USERPROFILE=x": ReasonOwn,
		// Functions and proxies.
		"BASH_FUNC_f%%=() { :; }": ReasonFunction, "F=() { :; }": ReasonFunction,
		"HTTP_PROXY=x": ReasonProxy, "no_proxy=x": ReasonProxy, "All_Proxy=x": ReasonProxy, "NODE_USE_ENV_PROXY=1": ReasonProxy,
		// Hooks.
		"LD_PRELOAD=x": ReasonHook, "LD_LIBRARY_PATH=x": ReasonHook, "DYLD_INSERT_LIBRARIES=x": ReasonHook, "GLIBC_TUNABLES=x": ReasonHook,
		"NODE_OPTIONS=x": ReasonHook, "NODE_PATH=x": ReasonHook, "BASH_ENV=x": ReasonHook, "ENV=x": ReasonHook, "PROMPT_COMMAND=x": ReasonHook, "IFS=x": ReasonHook,
		"PYTHONSTARTUP=x": ReasonHook, "PYTHONPATH=x": ReasonHook, "PERL5OPT=x": ReasonHook, "PERL5LIB=x": ReasonHook, "RUBYOPT=x": ReasonHook,
		"GIT_SSH_COMMAND=x": ReasonHook, "GIT_EXEC_PATH=x": ReasonHook, "GIT_CONFIG_COUNT=1": ReasonHook, "GIT_CONFIG_KEY_0=x": ReasonHook, "JAVA_TOOL_OPTIONS=x": ReasonHook,
		"SSH_AUTH_SOCK=/x": ReasonHook, "RUSTC_WRAPPER=x": ReasonHook, "npm_config_script_shell=x": ReasonHook, "EDITOR=vi": ReasonHook, "SSL_CERT_FILE=x": ReasonHook,
		// Services.
		"AZURE_X=1": ReasonService, "OPENAI_ORG=1": ReasonService, "KUBECONFIG=/x": ReasonService, "DATABASE_URL=x": ReasonService, "DOCKER_HOST=x": ReasonService,
		"VAULT_ADDR=x": ReasonService, "GITHUB_TOKEN=x": ReasonService, "GH_TOKEN=x": ReasonService, "PGHOST=x": ReasonService, "DBUS_SESSION_BUS_ADDRESS=x": ReasonService,
		"DISPLAY=:0": ReasonService, "CI_JOB_JWT=x": ReasonService, "TF_VAR_x=1": ReasonService,
		// Names.
		"MY_SECRET=x": ReasonName, "MYSECRETS=x": ReasonName, "X_TOKEN=x": ReasonName, "XTOKEN=x": ReasonName, "App_Password=x": ReasonName, "DBPASSWD=x": ReasonName,
		"X_CREDENTIALS=x": ReasonName, "PRIVATE_THING=x": ReasonName, "X_API_KEY=x": ReasonName, "XAPIKEY=x": ReasonName, "X_ACCESS_KEY=x": ReasonName, "X_KEY_ID=x": ReasonName,
		"X_AUTH=x": ReasonName, "OAUTH_X=x": ReasonName, "AUTHORIZATION=x": ReasonName, "AUTHOR_AUTH=x": ReasonName, "AUTHORTOKEN=x": ReasonName, "AUTHORISED=x": ReasonName,
		"STRIPE2_KEY=x": ReasonName, "KEY=x": ReasonName, "X_PASS=x": ReasonName, "DB1_PWD=x": ReasonName, "EXT_PAT=x": ReasonName, "X_DSN=x": ReasonName, "MY_COOKIE=x": ReasonName,
		// Values.
		"A=sk-ant-api03-x": ReasonValue, "B=sk-abcdefghijklmnopqrstuvwx": ReasonValue, "C=prefix ghp_abcdefgh": ReasonValue, "D=github_pat_x": ReasonValue,
		"E=npm_abcdefghijklmnopqrst": ReasonValue, "F=glpat-x": ReasonValue, "G=xoxb-1-2": ReasonValue, "H=AKIAIOSFODNN7EXAMPLE": ReasonValue, "I=ASIAIOSFODNN7EXAMPLE": ReasonValue,
		"J=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig": ReasonValue, "K=-----BEGIN RSA PRIVATE KEY-----\nx": ReasonValue, "L=https://user:pass@host/x": ReasonValue,
		"M=https://abcdef@host/x": ReasonValue, "N=postgres://u:p@h/db": ReasonValue, "O=user:pass@tcp(h)/db": ReasonValue, "P=0123456789abcdef0123456789abcdef": ReasonValue,
		"Q=wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY1": ReasonValue, "R=Authorization: Bearer abcdefgh": ReasonValue, "S=x?t=ghs_x&y": ReasonValue,
		"T={\"k\":\"AIzaSyA1234567890abcdefghijklmnopq\"}": ReasonValue, "U=token=hf_abcdefghijklmnopqrstuv": ReasonValue,
		// Names that are none.
		"A-B=x": ReasonMalformed, "1A=x": ReasonMalformed, "ä=x": ReasonMalformed, "A.B=x": ReasonMalformed,
	} {
		name, value, _ := strings.Cut(entry, "=")
		env, report := environment(t, "include_host_env = true", entry)
		if want == "" {
			assert.Equal(t, value, env[name], entry)
			assert.Equal(t, EnvReport{Passed: []string{name}}, report, entry)
			continue
		}
		assert.NotEqual(t, value, env[name], entry)
		assert.Equal(t, EnvReport{Dropped: []Dropped{{name, want}}}, report, entry)
	}
}

func TestPassEnv(t *testing.T) {
	host := []string{"LC_ALL=C", "LC_TIME=x", "GITHUB_TOKEN=ghp_x", "MY_TOKEN=t", "FOO=1", "PATH=/opt/bin", "PYTHONPATH=/x", "LANG=fr_FR", "ANTHROPIC_API_KEY=k", "SSH_AUTH_SOCK=/s"}
	for _, tt := range []struct {
		policy string
		passed []string
	}{
		{`pass_env = ["LC_*"]`, []string{"LC_ALL", "LC_TIME"}},
		{`pass_env = ["FOO", "NONE"]`, []string{"FOO"}},
		{`pass_env = ["F?O"]`, []string{"FOO"}},
		{`pass_env = ["*"]`, []string{"FOO", "LANG", "LC_ALL", "LC_TIME"}},
		{`pass_env = ["*_TOKEN", "*SOCK", "?ATH"]`, nil},
		{`pass_env = ["GITHUB_TOKEN", "MY_TOKEN", "PATH", "PYTHONPATH", "SSH_AUTH_SOCK"]`, []string{"GITHUB_TOKEN", "MY_TOKEN", "PATH", "PYTHONPATH", "SSH_AUTH_SOCK"}},
		{"pass_env = [\"MY_TOKEN\"]\ninclude_host_env = true", []string{"FOO", "LANG", "LC_ALL", "LC_TIME", "MY_TOKEN"}},
		{`pass_env = ["foo"]`, nil},
	} {
		env, report := environment(t, tt.policy, host...)
		assert.Equal(t, tt.passed, report.Passed, tt.policy)
		for _, name := range tt.passed {
			assert.Contains(t, host, name+"="+env[name])
		}
		assert.NotContains(t, env, "ANTHROPIC_API_KEY")
	}
}

func TestMalformedEntries(t *testing.T) {
	env, report := environment(t, "include_host_env = true", "NOEQUALS", "=x", "", "=C:=C:\\", "NUL=a\x00b", "N\x00=1", "GOOD=1", "TWICE=1", "TWICE=2")
	assert.Equal(t, 6, report.Malformed)
	assert.Equal(t, []string{"GOOD", "TWICE"}, report.Passed)
	assert.Equal(t, "2", env["TWICE"])
}

func TestTerm(t *testing.T) {
	for term, want := range map[string]string{"xterm": "xterm", "screen.xterm-256color": "screen.xterm-256color", "": "dumb", "../../etc/x": "dumb", "a b": "dumb", "a\x1b": "dumb", "-x": "dumb", strings.Repeat("x", 65): "dumb"} {
		for _, policy := range []string{"", "include_host_env = true", `pass_env = ["TERM"]`} {
			env, _ := environment(t, policy, "TERM="+term)
			assert.Equal(t, want, env["TERM"], term)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "A", true}, {"A*", "A", true}, {"A*", "BA", false}, {"*A", "BA", true}, {"A*B*C", "AxxBxxC", true}, {"A*B*C", "AxxCxxB", false},
		{"?", "A", true}, {"?", "", false}, {"A?", "A", false}, {"**", "AB", true}, {"", "", true}, {"", "A", false}, {"A", "AB", false},
	} {
		assert.Equal(t, tt.want, matchGlob(tt.pattern, tt.name), "%s %s", tt.pattern, tt.name)
	}
}

// FuzzEnvironment: no secret passes, whatever its name, whatever stands around it, and whatever glob asks for it.
func FuzzEnvironment(f *testing.F) {
	for _, seed := range [][3]string{{"FOO", "", ""}, {"X", "Bearer ", "\n"}, {"A B", "https://", "/x"}, {"", "x=", "=="}, {"ä", "\"", "\""}, {"TERM", "xterm", ""}, {"LANG", "", ""}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	secrets := []string{"sk-ant-api03-canary", "ghp_canarycanarycanary", "-----BEGIN PRIVATE KEY-----canary", " postgres://user:canary@host/db", "AGE-SECRET-KEY-1CANARY"}
	f.Fuzz(func(t *testing.T, name, before, after string) {
		var host []string
		for _, s := range secrets {
			host = append(host, name+"="+before+s+after)
		}
		name, _, _ = strings.Cut(name, "=")
		for _, n := range []string{"_TOKEN", "_SECRET", "PASSWORD", "_API_KEY", "AWS_", "CLAUDE_", "LD_"} {
			if strings.HasSuffix(n, "_") {
				host = append(host, n+name+"="+before+"canary"+after)
			} else {
				host = append(host, name+n+"="+before+"canary"+after)
			}
		}
		for _, cfg := range []*Config{{IncludeHostEnv: true}, {PassEnv: []string{"*"}}, {PassEnv: []string{"?*"}}, {}} {
			for _, entry := range host {
				vars, report := Environment(cfg, ClaudeCode, []string{entry}, nil)
				for _, v := range vars {
					require.NotContains(t, strings.ToLower(v.Value), "canary", entry)
					require.True(t, isVariable(v.Name))
					require.NotContains(t, v.Value, "\x00")
				}
				require.LessOrEqual(t, len(report.Passed)+len(report.Dropped)+report.Malformed, 1)
			}
		}
	})
}
