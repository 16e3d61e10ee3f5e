package isolation

import (
	"slices"
	"strings"
)

// Var is a variable of an environment.
type Var struct{ Name, Value string }

// Environ returns variables in the form of os/exec: "NAME=value".
func Environ(vars []Var) []string {
	env := make([]string, len(vars))
	for i, v := range vars {
		env[i] = v.Name + "=" + v.Value
	}
	return env
}

// Reason is the class of why a variable stayed outside.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonFloor     Reason = "prefix that never passes"
	ReasonOwn       Reason = "set by sandboxrun"
	ReasonFunction  Reason = "shell function"
	ReasonProxy     Reason = "proxy"
	ReasonHook      Reason = "changes how programs load or run"
	ReasonService   Reason = "account or service of the host"
	ReasonName      Reason = "name of a secret"
	ReasonValue     Reason = "value looks like a secret"
	ReasonMalformed Reason = "not the name of a variable"
)

// Dropped is a variable that stayed outside; its value is nowhere.
type Dropped struct {
	Name   string
	Reason Reason
}

// EnvReport says what became of the host's variables and of refused entries of [env], by name only, sorted. Variables
// that the policy did not ask for at all are in neither list.
type EnvReport struct {
	Passed    []string
	Dropped   []Dropped
	Malformed int // entries without a name, without =, or with a NUL byte
}

// Fixed places inside the sandbox.
const (
	homeInside = "/home/agent"
	pathInside = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Environment builds the environment of a run, sorted by name, from nothing. Later sources win over earlier ones:
//
//   - the variables of every run and, for Claude Code, its switches;
//   - those of host, in the form of os.Environ, that the policy asks for and the filter lets through. They replace none
//     of the former but LANG, TZ, and what pass_env names exactly;
//   - base, where a backend puts proxy variables and placeholders;
//   - the policy's [env], save names that [Config.Validate] refuses.
//
// It is pure.
func Environment(c *Config, kind AgentKind, host []string, base []Var) ([]Var, EnvReport) {
	hostVars, malformed := splitEnviron(host)
	env := map[string]string{}
	report := EnvReport{Malformed: malformed}
	set := func(vars []Var) {
		for _, v := range vars {
			env[v.Name] = v.Value
		}
	}
	set(runVariables(hostVars))
	if kind == ClaudeCode {
		set(claudeSwitches)
	}
	set(c.hostVariables(hostVars, &report))
	set(base)
	set(c.ownVariables(&report))
	vars := make([]Var, 0, len(env))
	for _, name := range sortedKeys(env) {
		vars = append(vars, Var{name, env[name]})
	}
	return vars, report
}

// runVariables are in every environment. Of the host only TERM shows, so that output has the right form.
func runVariables(host map[string]string) []Var {
	term := host["TERM"]
	if !isTerm(term) || isSecretValue(term) {
		term = "dumb"
	}
	return []Var{
		{"PATH", pathInside}, {"HOME", homeInside}, {"USER", "agent"}, {"LOGNAME", "agent"}, {"SHELL", "/bin/bash"},
		{"TMPDIR", "/tmp"}, {"LANG", "C.UTF-8"}, {"TERM", term}, {"TZ", "UTC"},
		{"XDG_CONFIG_HOME", homeInside + "/.config"}, {"XDG_CACHE_HOME", homeInside + "/.cache"},
		{"XDG_DATA_HOME", homeInside + "/.local/share"}, {"XDG_STATE_HOME", homeInside + "/.local/state"},
	}
}

// isTerm accepts what terminal names are made of: TERM reaches programs that make a file name of it.
func isTerm(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '.' && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return !isWordRune(r) && r != '-' && r != '+' && r != '.'
	})
}

// claudeSwitches keep Claude Code from talking to anything but the model API, from updating itself and from leaving
// anything outside its home. CLAUDE_CODE_SDK_READS_SESSION_STATE makes it say when it is idle, and
// CLAUDE_CODE_DISABLE_BACKGROUND_TASKS gives one result a prompt (both tried with CLI 2.1.329).
var claudeSwitches = []Var{
	{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"},
	{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
	{"CLAUDE_CODE_SDK_READS_SESSION_STATE", "1"},
	{"CLAUDE_CODE_TMPDIR", "/tmp"},
	{"CLAUDE_CONFIG_DIR", homeInside + "/.claude"},
	{"DISABLE_AUTOUPDATER", "1"},
	{"DISABLE_ERROR_REPORTING", "1"},
	{"DISABLE_TELEMETRY", "1"},
}

// splitEnviron reads NAME=value entries. Of several with one name the last counts, as in os/exec.
func splitEnviron(environ []string) (map[string]string, int) {
	vars, malformed := map[string]string{}, 0
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(entry, 0) {
			malformed++
			continue
		}
		vars[name] = value
	}
	return vars, malformed
}

// hostVariables returns the host's variables that join.
func (c *Config) hostVariables(host map[string]string, report *EnvReport) []Var {
	var vars []Var
	for _, name := range sortedKeys(host) {
		if name == "TERM" { // runVariables has it
			continue
		}
		exact := slices.Contains(c.PassEnv, name)
		if !exact && !c.IncludeHostEnv && !slices.ContainsFunc(c.PassEnv, func(p string) bool { return matchGlob(p, name) }) {
			continue
		}
		if reason := screen(name, host[name], exact); reason != "" {
			report.Dropped = append(report.Dropped, Dropped{name, reason})
			continue
		}
		vars = append(vars, Var{name, host[name]})
		report.Passed = append(report.Passed, name)
	}
	return vars
}

// ownVariables returns the policy's [env]. What Validate would have refused stays outside here too.
func (c *Config) ownVariables(report *EnvReport) []Var {
	var vars []Var
	for _, name := range sortedKeys(c.Env) {
		switch value := c.Env[name]; {
		case !isVariable(name) || strings.ContainsRune(value, 0):
			report.Dropped = append(report.Dropped, Dropped{name, ReasonMalformed})
		case isReserved(name):
			report.Dropped = append(report.Dropped, Dropped{name, ReasonOwn})
		default:
			vars = append(vars, Var{name, value})
		}
	}
	slices.SortStableFunc(report.Dropped, func(a, b Dropped) int { return strings.Compare(a.Name, b.Name) })
	return vars
}

// matchGlob reports whether name is what a pattern of * and ? describes.
func matchGlob(pattern, name string) bool {
	star, retry := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0:
			retry++
			p, n = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// isVariable reports whether a shell could set a variable of this name.
func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) })
}

func isWordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
