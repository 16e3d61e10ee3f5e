package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Verdict is the outcome of a decision. The zero value denies.
type Verdict uint8

// The verdicts.
const (
	Deny Verdict = iota
	Allow
)

// String returns "deny" or "allow".
func (v Verdict) String() string {
	if v == Allow {
		return "allow"
	}
	return "deny"
}

// MarshalText returns "deny" or "allow".
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText accepts "deny" and "allow".
func (v *Verdict) UnmarshalText(text []byte) error {
	switch string(text) {
	case "deny":
		*v = Deny
	case "allow":
		*v = Allow
	default:
		return fmt.Errorf("verdict %q is neither allow nor deny", text)
	}
	return nil
}

// Decision says whether something may happen, and why. The zero value denies.
type Decision struct {
	Verdict Verdict
	Rule    string // the policy line that decided, in its spelling: `denied_domains "x.com"`, or "no rule"
	Reason  string // one sentence; of a denial it names what to change
}

// NoRule is the Rule of a decision that no line of the policy made.
const NoRule = "no rule"

// LocalhostName is the name by which the sandbox reaches the host's loopback, where allow_localhost grants that.
const LocalhostName = "host.sandboxrun.internal"

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Decide says whether the sandbox may connect to port of host, from the policy alone: it resolves nothing. It is pure.
//
//   - denied_domains wins over everything.
//   - Names of cloud metadata services are denied unless hosts pins them.
//   - [LocalhostName] is allowed on every port by allow_localhost, and by nothing else.
//   - Anything else needs an entry of allowed_domains: absent or empty allows nothing, "*" everything. A name under
//     [network_policy.hosts] needs one like any other. "*" covers IP addresses that are public or under allow_resolved; others
//     need an entry of their own.
//   - When allowed_ports is present, the port must be in it as well, also where a rule names its port: both lists have to
//     agree. An empty list allows no port.
//
// An allowed host is not yet an allowed address: see [Policy.DecideAddr].
func (p Policy) Decide(host Host, port Port) Decision {
	if host.IsZero() || port == 0 {
		return Decision{Deny, NoRule, "there is no host or no port to decide about"}
	}
	at := host.Authority(port)
	if r, ok := findRule(p.DeniedDomains, host, port); ok {
		return Decision{Deny, quoteRule("denied_domains", r), fmt.Sprintf("denied_domains names %s; take %q out to allow it", at, r)}
	}
	if _, pinned := p.pin(host); isMetadataName(host) && !pinned {
		return Decision{Deny, "built-in: cloud metadata", fmt.Sprintf("%s is a cloud metadata service, which stays closed unless hosts pins the name to an address", host)}
	}
	if host.name == LocalhostName {
		return p.decideLocalhost(at)
	}
	r, ok := p.findAllowed(host, port)
	if !ok {
		return Decision{Deny, NoRule, p.whyNoRule(host, port)}
	}
	if p.AllowedPorts != nil && !slices.Contains(*p.AllowedPorts, port) {
		return Decision{Deny, portsRule(*p.AllowedPorts), fmt.Sprintf("port %s is not in allowed_ports; add %s to it to allow %s", port, port, at)}
	}
	return Decision{Allow, quoteRule("allowed_domains", r), fmt.Sprintf("allowed_domains names %s", at)}
}

func (p Policy) decideLocalhost(at string) Decision {
	if p.AllowLocalhost {
		return Decision{Allow, "allow_localhost = true", "allow_localhost opens the host's loopback"}
	}
	return Decision{Deny, "allow_localhost = false", fmt.Sprintf("%s is the host's loopback; set allow_localhost = true to allow it", at)}
}

// findAllowed returns the entry of allowed_domains that covers host and port.
func (p Policy) findAllowed(host Host, port Port) (Rule, bool) {
	for _, r := range p.AllowedDomains {
		if r.Match(host, port) && (r.kind != anything || p.starCovers(host)) {
			return r, true
		}
	}
	return Rule{}, false
}

// starCovers reports whether "*" is enough for host: a private or special address needs to be named.
func (p Policy) starCovers(host Host) bool {
	_, pinned := p.pin(host)
	return !host.IsAddr() || pinned || p.checkRanges(host.addr, false).Verdict == Allow
}

// whyNoRule says what is missing, and where an entry exists for another port says that.
func (p Policy) whyNoRule(host Host, port Port) string {
	at := host.Authority(port)
	if len(p.AllowedDomains) == 0 {
		return fmt.Sprintf("allowed_domains is empty, so nothing is allowed; add %q to allow %s", host, at)
	}
	for _, r := range p.AllowedDomains {
		if r.matchHost(host) && r.port != 0 && r.port != port {
			return fmt.Sprintf("allowed_domains has %q, which is another port; add %q to allow %s", r, Rule{host, port, exact}, at)
		}
	}
	return fmt.Sprintf("no entry of allowed_domains covers %s; add %q to allow it", at, host)
}

// pin returns the address that the policy fixes for host.
func (p Policy) pin(host Host) (netip.Addr, bool) {
	if addr, ok := p.Hosts[host.String()]; ok {
		return addr.Unmap(), addr.IsValid()
	}
	if host.name == LocalhostName && p.AllowLocalhost {
		return loopback4, true
	}
	return netip.Addr{}, false
}

func findRule(rules []Rule, host Host, port Port) (Rule, bool) {
	for _, r := range rules {
		if r.Match(host, port) {
			return r, true
		}
	}
	return Rule{}, false
}

func quoteRule(list string, r Rule) string { return fmt.Sprintf("%s %q", list, r) }

func portsRule(ports []Port) string {
	words := make([]string, len(ports))
	for i, p := range ports {
		words[i] = p.String()
	}
	return "allowed_ports = [" + strings.Join(words, ", ") + "]"
}
