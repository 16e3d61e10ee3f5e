package isolation

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxrun/sandboxrun/network"
)

// settingsNetwork repeats the network policy as far as the CLI has words for it; the gateway enforces all of it.
func (c *Config) settingsNetwork() settingsNetwork {
	p := c.NetworkPolicy
	n := settingsNetwork{
		AllowedDomains:      domainNames(p.AllowedDomains),
		DeniedDomains:       wholeDomains(p.DeniedDomains),
		StrictAllowlist:     true,
		AllowLocalBinding:   p.AllowLocalhost,
		AllowUnixSockets:    p.AllowUnixSockets.Paths,
		AllowAllUnixSockets: p.AllowUnixSockets.All,
	}
	if p.AllowedPorts != nil && len(*p.AllowedPorts) == 0 {
		n.AllowedDomains = []string{}
	}
	return n
}

// domainNames returns the names of rules without their ports, each once, never nil.
func domainNames(rules []network.Rule) []string {
	list := []string{}
	for _, rule := range rules {
		if name, _ := splitRule(rule); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// wholeDomains returns the rules without a port: the CLI would take "host:22" without its port for all of the host.
func wholeDomains(rules []network.Rule) []string {
	var list []string
	for _, rule := range rules {
		if name, port := splitRule(rule); port == "" {
			list = append(list, name)
		}
	}
	return list
}

func splitRule(rule network.Rule) (name, port string) {
	text := rule.String()
	if _, err := netip.ParseAddr(text); err == nil {
		return text, ""
	}
	if host, port, err := net.SplitHostPort(text); err == nil {
		return host, port
	}
	return strings.Trim(text, "[]"), ""
}
