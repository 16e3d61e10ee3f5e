package isolation

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Validate checks what the types cannot: words, ranges, and keys that contradict each other. Load has called it; a
// Config made or changed in Go needs it. Each error is a [PolicyError].
func (c *Config) Validate() error {
	k := checker{cfg: c, faults: faults{origin: c.origin}}
	k.words()
	k.root()
	k.network()
	k.sandbox()
	k.workspace()
	k.agent()
	k.credentials()
	k.model()
	k.repro()
	return k.err()
}

type checker struct {
	faults
	cfg *Config
}

// fail records that the value at key is wrong.
func (k *checker) fail(key, format string, args ...any) *PolicyError {
	return k.add(key, textAt(k.cfg, key), format, args...)
}

// words checks what the decoder checked already if the Config comes from a file. Zero stands for absent here.
func (k *checker) words() {
	walk("", reflect.ValueOf(k.cfg).Elem(), func(key string, rv reflect.Value) bool {
		info := infoOf(key)
		words := strings.Fields(info.words)
		if rv.Kind() == reflect.String && len(words) > 0 && !slices.Contains(words, rv.String()) {
			wrongWord(&k.faults, key, quoteTOML(rv.String()), rv.String(), words)
		}
		if n, ok := number(rv); ok && !info.signed && (n < 0 || n != n) {
			k.fail(key, "want zero or more")
		}
		return true
	})
}

func (k *checker) root() {
	if v := k.cfg.Version; v != 0 && v != 1 {
		k.fail("version", "this release reads version 1")
	}
	for i, pattern := range k.cfg.PassEnv {
		if msg := wrongPattern(pattern); msg != "" {
			k.fail(indexKey("pass_env", i), "%s", msg)
		}
	}
	for _, name := range sortedKeys(k.cfg.Env) {
		if msg := wrongVariable(name, k.cfg.Env[name]); msg != "" {
			k.fail(joinKey("env", name), "%s", msg)
		}
	}
	if k.cfg.APIKey != nil {
		k.source("api_key", *k.cfg.APIKey)
	}
}

// wrongPattern says what is wrong with an element of pass_env, or "".
func wrongPattern(pattern string) string {
	exact := strings.NewReplacer("*", "x", "?", "x").Replace(pattern)
	switch {
	case pattern == "":
		return "want the name of a variable or a glob"
	case !isVariable(exact) && !isVariable("x"+exact):
		return "want a name of letters, digits and _, or a glob with * and ?"
	case isFloorName(firstLetters(pattern)):
		return "variables of this prefix never pass the filter; set what the run needs in [env]"
	case exact == pattern && isReserved(pattern):
		return "reserved: sandboxrun sets this variable or keeps it unset"
	}
	return ""
}

// firstLetters returns what a pattern says before its first wildcard.
func firstLetters(pattern string) string {
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// wrongVariable says what is wrong with an entry of [env], or "".
func wrongVariable(name, value string) string {
	switch {
	case !isVariable(name):
		return "want a name of letters, digits and _ that does not start with a digit"
	case isReserved(name):
		return "reserved: sandboxrun sets this variable or keeps it unset"
	case strings.ContainsRune(value, 0):
		return "the value has a NUL byte"
	}
	return ""
}

func (k *checker) source(key string, s Source) {
	switch {
	case s.kind() == "":
		k.fail(key, "want exactly one of a string, env, file and command")
	case s.Env != "" && !isVariable(s.Env):
		k.fail(key+".env", "want the name of a variable")
	case len(s.Command) > 0 && s.Command[0] == "":
		k.fail(key+".command", "want a program and its arguments")
	}
}

func (k *checker) agent() {
	a := k.cfg.Agent
	if a.AllowedTools != nil {
		k.tools("agent.allowed_tools", *a.AllowedTools)
	}
	k.tools("agent.disallowed_tools", a.DisallowedTools)
	if strings.HasPrefix(a.Model, "-") || strings.ContainsFunc(a.Model, isControl) {
		k.fail("agent.model", "want the name of a model")
	}
	for i, dir := range a.AddDirs {
		k.path(indexKey("agent.add_dirs", i), dir)
	}
}

// tools refuses what the agent would take for an option, or for two tools.
func (k *checker) tools(key string, names []string) {
	for i, name := range names {
		if name == "" || name[0] == '-' || strings.ContainsFunc(name, isControl) || strings.Contains(beforeRule(name), ",") {
			k.fail(indexKey(key, i), `want the name of a tool, such as "Bash" or "Bash(git *)"`)
		}
	}
}

// beforeRule cuts the rule off a tool: "Bash(git *)" is "Bash".
func beforeRule(tool string) string {
	name, _, _ := strings.Cut(tool, "(")
	return name
}

func (k *checker) credentials() {
	seen, vars := map[string]bool{}, map[string]bool{}
	for i, c := range k.cfg.Credentials {
		key := indexKey("credentials", i)
		if !isCredentialName(c.Name) {
			k.fail(key+".name", "want a name of lower case letters, digits, - and _")
		} else if seen[c.Name] {
			k.fail(key+".name", "another credential has this name")
		}
		seen[c.Name] = true
		k.source(key+".source", c.Source)
		k.credentialUse(key, c)
		if c.Env != "" && vars[c.Env] {
			k.fail(key+".env", "another credential uses this variable")
		}
		vars[c.Env] = true
	}
}

func isCredentialName(name string) bool {
	return isBareKey(name) && name == strings.ToLower(name)
}

func (k *checker) credentialUse(key string, c Credential) {
	if len(c.Hosts) == 0 {
		k.fail(key+".hosts", "want the hosts that get the secret")
	}
	for i, host := range c.Hosts {
		if host.IsAny() {
			k.fail(indexKey(key+".hosts", i), "a secret is bound to hosts; name them")
		}
	}
	switch name, value, ok := strings.Cut(c.Header, ":"); {
	case (c.Header == "") == (c.Basic == ""):
		k.fail(key, "want exactly one of header and basic")
	case c.Header != "" && !(ok && isHeaderName(name) && strings.Count(value, "{secret}") == 1 && !strings.ContainsFunc(value, isControl)):
		k.fail(key+".header", `want a header with the secret in it, such as "Authorization: Bearer {secret}"`)
	case strings.ContainsFunc(c.Basic, isControl) || strings.Contains(c.Basic, ":"):
		k.fail(key+".basic", "want a user name without a colon")
	}
	if c.Env != "" {
		if msg := wrongVariable(c.Env, ""); msg != "" {
			k.fail(key+".env", "%s", msg)
		}
	}
}

// isHeaderName knows the tokens of RFC 9110 that people use.
func isHeaderName(s string) bool { return isBareKey(s) }

func (k *checker) model() {
	m := k.cfg.Model
	switch {
	case m.Path == "" && m.Source != "" && m.Source != Upstream:
		k.fail("model.source", "needs model.path, the file to use")
	case m.Path != "" && (m.Source == "" || m.Source == Upstream):
		k.fail("model.path", `has no meaning with model.source = "upstream"`)
	}
	if m.BaseURL != "" {
		if msg := wrongBaseURL(m.BaseURL); msg != "" {
			k.fail("model.base_url", "%s", msg)
		}
	}
}

// wrongBaseURL says what is wrong with the address of a model API, or "".
func wrongBaseURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return `want a URL such as "https://api.anthropic.com"`
	case u.User != nil:
		return "a secret does not belong in a URL; use api_key"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "want a URL without query and fragment"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "http goes to a loopback address only; use https"
	case u.Scheme != "https" && u.Scheme != "http":
		return "want an https URL, or http to a loopback address"
	case !isHostPort(u.Host):
		return "want a plain host name or IP address, with or without a port"
	}
	return ""
}

func (k *checker) repro() {
	clock := k.cfg.Repro.Clock
	if clock == "" {
		return
	}
	t, err := time.Parse(time.RFC3339, clock)
	if err != nil {
		k.fail("repro.clock", `want a time such as "2026-01-01T00:00:00Z"`)
	} else if want := t.UTC().Format(time.RFC3339Nano); want != clock {
		k.fail("repro.clock", "want UTC; write %s", fmt.Sprintf("%q", want))
	}
}
