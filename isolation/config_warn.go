package isolation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sandboxrun/sandboxrun/network"
)

// Warnings returns what a policy grants that its author may not have meant, a sentence for each. It is pure.
func (c *Config) Warnings() []string {
	var all []string
	warn := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	n, s := c.NetworkPolicy, c.Sandbox
	warn(!s.IsEnabled(), "sandbox.enabled = false: the command runs on the host with all your rights; no policy, limit or workspace view holds it")
	warn(anyDomain(n), `network_policy.allowed_domains has "*": every host on the internet can be reached, and anything inside can leave by it`)
	warn(n.AllowedPorts != nil && len(*n.AllowedPorts) == 0 && len(n.AllowedDomains) > 0, "network_policy.allowed_ports = []: no allowed domain can be reached")
	outside := c.outsideHosts()
	warn(s.AutoAllowsBash() && len(outside) > 0, "sandbox.bash_auto_allow is on and the network is not closed: commands run without a question and can reach %s", some(outside))
	warn(s.AllowUnsandboxedCommands, "sandbox.allow_unsandboxed_commands = true: the agent may run %s outside its own sandbox", some(s.ExcludedCommands))
	warn(s.RunAs == RunAsRoot || s.RunAs == "0", "sandbox.run_as = %q: a kernel bug is the only thing between the run and root", string(s.RunAs))
	warn(c.APIKey != nil && c.APIKey.kind() == "literal", "api_key is written in the policy: whoever reads the file has the key; use { env = … } or { file = … }")
	for _, name := range c.secretVariables() {
		warn(true, "%s looks like a secret: everything inside can read and send it", name)
	}
	return all
}

func anyDomain(p network.Policy) bool {
	return slices.ContainsFunc(p.AllowedDomains, network.Rule.IsAny)
}

// outsideHosts returns the reachable hosts other than the model API's, without which no agent works.
func (c *Config) outsideHosts() []string {
	if p := c.NetworkPolicy.AllowedPorts; p != nil && len(*p) == 0 {
		return nil
	}
	api := ""
	if u, err := url.Parse(or(c.Model.BaseURL, DefaultBaseURL)); err == nil {
		api = u.Hostname()
	}
	var hosts []string
	for _, rule := range c.NetworkPolicy.AllowedDomains {
		if text := rule.String(); text != api && text != api+":443" {
			hosts = append(hosts, text)
		}
	}
	return hosts
}

// secretVariables names what [env] and pass_env put inside by the look of it.
func (c *Config) secretVariables() []string {
	var names []string
	for _, name := range sortedKeys(c.Env) {
		if isSecretName(name) || isSecretValue(c.Env[name]) {
			names = append(names, "env."+name)
		}
	}
	for _, pattern := range c.PassEnv {
		if !strings.ContainsAny(pattern, "*?") && isSecretName(pattern) {
			names = append(names, "pass_env "+pattern)
		}
	}
	return names
}

// some lists the first few of many.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}
