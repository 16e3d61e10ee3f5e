package isolation

import (
	"fmt"
	"strings"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/network"
)

// Explain says in sentences what a policy grants and what it does not, and where every key comes from: a file and line,
// or the defaults. It is pure, and shows no secret.
func Explain(c *Config) string {
	var b strings.Builder
	b.WriteString(c.title() + "\n")
	full := c.WithDefaults()
	for _, s := range []struct {
		heading string
		lines   []string
	}{
		{"Network", full.explainNetwork()},
		{"Files", full.explainFiles()},
		{"Environment", full.explainEnvironment()},
		{"Secrets", full.explainSecrets()},
		{"Agent", full.explainAgent()},
		{"Limits", full.explainLimits()},
		{"Layers", full.explainLayers()},
		{"Warnings", c.Warnings()},
		{"Not enforced by this release; a run is refused", c.explainUnbuilt()},
		{"Keys", c.explainKeys()},
	} {
		if len(s.lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  %s\n", s.heading, strings.Join(s.lines, "\n  "))
		}
	}
	return b.String()
}

func (c *Config) title() string {
	name := or(c.Name(), "policy")
	if c.Description != "" {
		name += ": " + oneLine(c.Description)
	}
	if files := c.Files(); len(files) > 1 {
		name += "\nbuilt on " + strings.Join(files[1:], ", which is built on ")
	}
	return name
}

func (c *Config) explainNetwork() []string {
	p := c.NetworkPolicy
	if !c.Sandbox.IsEnabled() {
		return []string{"Any host, on any port: there is no sandbox."}
	}
	if len(p.AllowedDomains) == 0 || p.AllowedPorts != nil && len(*p.AllowedPorts) == 0 {
		return []string{"No host can be reached, and no name resolves."}
	}
	ports := "any port"
	if p.AllowedPorts != nil {
		ports = "port " + strings.Trim(rawText(portList(*p.AllowedPorts)), "[]")
	}
	lines := []string{fmt.Sprintf("May reach %s, on %s.", ruleList(p.AllowedDomains), ports)}
	if len(p.DeniedDomains) > 0 {
		lines = append(lines, fmt.Sprintf("May never reach %s.", ruleList(p.DeniedDomains)))
	}
	for _, name := range sortedKeys(p.Hosts) {
		lines = append(lines, fmt.Sprintf("%s is %s.", name, p.Hosts[name]))
	}
	if len(p.AllowResolved) == 0 {
		return append(lines, "Everything else is refused: other names do not resolve, and no name may lead to a private address.")
	}
	return append(lines, "Everything else is refused. Names may lead to these private networks: "+prefixList(p)+".")
}

func ruleList(rules []network.Rule) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

func portList(ports []network.Port) []any {
	list := make([]any, len(ports))
	for i, p := range ports {
		list[i] = int64(p)
	}
	return list
}

func prefixList(p network.Policy) string {
	texts := make([]string, len(p.AllowResolved))
	for i, n := range p.AllowResolved {
		texts[i] = n.String()
	}
	return strings.Join(texts, ", ")
}

func (c *Config) explainFiles() []string {
	s := c.Sandbox
	if !s.IsEnabled() {
		return []string{"Every file that you can read or write: there is no sandbox."}
	}
	lines := []string{map[ephemeral.Mode]string{
		ephemeral.Overlay: "The workspace is a copy-on-write view: changes stay inside until they are applied.",
		ephemeral.Copy:    "The workspace is a copy: changes stay inside until they are applied.",
		ephemeral.Bind:    "The workspace is the directory itself: changes are made on the host.",
		ephemeral.None:    "There is no workspace.",
	}[c.Workspace.Mode]}
	for _, list := range []struct {
		verb  string
		paths []string
	}{{"May also read and write", s.WritablePaths}, {"May also read", s.ReadablePaths}, {"Hidden in all of that", s.HiddenPaths}} {
		if len(list.paths) > 0 {
			lines = append(lines, list.verb+": "+strings.Join(list.paths, ", ")+".")
		}
	}
	if paths := s.Protected(); len(paths) > 0 {
		lines = append(lines, "Changes to these are not taken over unless named: "+strings.Join(paths, ", ")+protectedNote(paths)+".")
	}
	return append(lines, "Of the rest of the host only programs and libraries show, read only; home is empty and goes away with the run.")
}

// protectedNote says what "default" means without the whole list.
func protectedNote(paths []string) string {
	for _, p := range paths {
		if p == "default" {
			return " (start-up files of shells, git hooks and configuration, settings of agents and editors)"
		}
	}
	return ""
}

func (c *Config) explainEnvironment() []string {
	first := "Built from nothing; no variable of the host."
	switch {
	case c.IncludeHostEnv:
		first = "The host's variables, save those that look like secrets or change how programs run."
	case len(c.PassEnv) > 0:
		first = "Built from nothing, with these variables of the host: " + strings.Join(c.PassEnv, ", ") + "."
	}
	lines := []string{first}
	if c.IncludeHostEnv && len(c.PassEnv) > 0 {
		lines = append(lines, "Named by the policy: "+strings.Join(c.PassEnv, ", ")+".")
	}
	if len(c.Env) > 0 {
		lines = append(lines, "Set by the policy: "+strings.Join(sortedKeys(c.Env), ", ")+".")
	}
	return lines
}

func (c *Config) explainSecrets() []string {
	key := Source{Env: "ANTHROPIC_API_KEY"}
	if c.APIKey != nil {
		key = *c.APIKey
	}
	where := "it stays outside, the sandbox holds a placeholder."
	if !c.Sandbox.IsEnabled() {
		where = "there is no sandbox to keep it from."
	}
	lines := []string{fmt.Sprintf("The model API's key comes from %s; %s", key, where)}
	for _, cred := range c.Credentials {
		lines = append(lines, fmt.Sprintf("%s comes from %s and goes to %s only.", cred.Name, cred.Source, ruleList(cred.Hosts)))
	}
	return lines
}

func (c *Config) explainAgent() []string {
	a := c.Agent
	lines := []string{fmt.Sprintf("%s with %s, permission mode %s.", a.Kind, a.Model, a.PermissionMode)}
	if a.AllowedTools != nil {
		lines = append(lines, "Tools: "+or(strings.Join(*a.AllowedTools, ", "), "none")+".")
	}
	if len(a.DisallowedTools) > 0 {
		lines = append(lines, "Without the tools "+strings.Join(a.DisallowedTools, ", ")+".")
	}
	if c.Model.Source != Upstream {
		return append(lines, fmt.Sprintf("The model's answers: %s from %s.", c.Model.Source, c.ModelPath()))
	}
	return append(lines, "The model's answers come from "+c.Model.BaseURL+".")
}

func (c *Config) explainLimits() []string {
	if !c.Sandbox.IsEnabled() {
		return []string{"None are sure to hold without a sandbox."}
	}
	var lines []string
	for _, l := range leaves(c) {
		if name, ok := strings.CutPrefix(l.key, "limits."); ok {
			lines = append(lines, name+" = "+strings.Trim(l.text(), `"`))
		}
	}
	return lines
}

func (c *Config) explainLayers() []string {
	if !c.Sandbox.IsEnabled() {
		return []string{"None: sandbox.enabled = false."}
	}
	inner := "The agent's own sandbox is off; this one is around all of it."
	if c.Sandbox.AgentSandbox == On {
		inner = "The agent's own sandbox is on, inside this one."
	}
	return []string{
		"Namespaces for users, mounts, processes and network; no capabilities.",
		"One gateway, outside, is the only way out and applies the network policy.",
		"Resource limits. An environment and a home made for the run.",
		inner,
	}
}

func (c *Config) explainUnbuilt() []string {
	var lines []string
	for _, e := range PolicyErrors(c.Enforceable()) {
		lines = append(lines, e.Key+": "+strings.TrimPrefix(e.Msg, "not enforced yet; "))
	}
	return lines
}

// explainKeys lists every key with its value and origin, in the order of the types.
func (c *Config) explainKeys() []string {
	all := leaves(c.WithDefaults())
	width := 0
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = strings.TrimSuffix(l.key+" = "+l.text(), " = ")
		if len(texts[i]) <= 60 {
			width = max(width, len(texts[i]))
		}
	}
	for i, l := range all {
		texts[i] = oneLine(fmt.Sprintf("%-*s  %s", width, texts[i], c.originOf(l.key)))
	}
	return texts
}

// originOf names the file and line that set key, or says that it is a default.
func (c *Config) originOf(key string) string {
	if c.origin == nil {
		return "literal or default"
	}
	at, ok := c.origin.at[key]
	switch {
	case !ok:
		return "default"
	case at.line == 0:
		return strings.Fields(at.file)[0] // --set
	}
	return fmt.Sprintf("%s:%d", at.file, at.line)
}
