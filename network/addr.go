package network

import (
	"fmt"
	"net/netip"
	"slices"
)

// DecideAddr says whether the gateway may connect to addr, which is what host resolved to, or host itself when that is
// an IP address. own holds the addresses of this machine's interfaces. It is pure. [Policy.Decide] must have allowed
// the host before. In this order:
//
//   - An address under [network_policy.hosts] is allowed for its name: the user wrote it down.
//   - This machine's own addresses are denied.
//   - Addresses under deny_resolved, and those that denied_domains names without a port, are denied.
//   - Loopback, link-local, cloud metadata, multicast, documentation, benchmark and reserved ranges are denied, and
//     of IPv6 everything outside 2000::/3. Nothing opens them but hosts; not an entry like "127.0.0.1:8080" in allowed_domains either.
//   - Private ranges (10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7) are denied unless allow_resolved covers the
//     address, or allowed_domains has the address itself as an entry ("10.0.0.5").
//   - An IPv6 address that carries an IPv4 address is denied where that one would be; neither allow_resolved nor an
//     entry opens it. IPv4-mapped IPv6 is the IPv4 address.
func (p Policy) DecideAddr(host Host, addr netip.Addr, own []netip.Addr) Decision {
	if host.IsZero() || !addr.IsValid() || addr.Zone() != "" {
		return Decision{Deny, NoRule, "there is no address without zone to decide about"}
	}
	addr = addr.Unmap()
	if host.IsAddr() && host.addr != addr {
		return Decision{Deny, NoRule, fmt.Sprintf("%s is not %s", addr, host)}
	}
	if pinned, ok := p.pin(host); ok && pinned == addr {
		return p.allowPinned(host, addr)
	}
	if d, ok := denyOwn(addr, own); ok {
		return d
	}
	return p.checkRanges(addr, p.listsAddr(host))
}

func (p Policy) allowPinned(host Host, addr netip.Addr) Decision {
	if host.name == LocalhostName {
		if _, ok := p.Hosts[LocalhostName]; !ok {
			return p.decideLocalhost(LocalhostName)
		}
	}
	return Decision{Allow, fmt.Sprintf("hosts %q", host), fmt.Sprintf("hosts pins %s to %s", host, addr)}
}

func denyOwn(addr netip.Addr, own []netip.Addr) (Decision, bool) {
	for _, a := range append(embedded(addr), addr) {
		if slices.ContainsFunc(own, func(o netip.Addr) bool { return o.Unmap().WithZone("") == a }) {
			return denyRange(addr, "this machine's own address", "pin the name under [network_policy.hosts] to open it"), true
		}
	}
	return Decision{}, false
}

// listsAddr reports whether allowed_domains names the IP address itself.
func (p Policy) listsAddr(host Host) bool {
	return host.IsAddr() && slices.ContainsFunc(p.AllowedDomains, func(r Rule) bool { return r.kind == exact && r.host == host })
}

// checkRanges decides about an address alone. named: allowed_domains has it as an entry.
func (p Policy) checkRanges(addr netip.Addr, named bool) Decision {
	if d, ok := p.denyListed(addr); ok {
		return d
	}
	for _, v4 := range embedded(addr) {
		if r := specialRange(v4); r != nil {
			return denyRange(addr, fmt.Sprintf("it carries %s, %s", v4, r), "no setting opens it")
		}
	}
	r := specialRange(addr)
	switch {
	case r == nil:
		return Decision{Allow, "public address", fmt.Sprintf("%s is a public address", addr)}
	case r.kind == never:
		return denyRange(addr, r.String(), "only a name pinned under [network_policy.hosts] opens it")
	case named:
		return Decision{Allow, fmt.Sprintf("allowed_domains %q", addr), fmt.Sprintf("allowed_domains names %s itself", addr)}
	}
	if i := slices.IndexFunc(p.AllowResolved, func(x netip.Prefix) bool { return x.Contains(addr) }); i >= 0 {
		return Decision{Allow, fmt.Sprintf("allow_resolved %q", p.AllowResolved[i]), fmt.Sprintf("allow_resolved covers %s", addr)}
	}
	return denyRange(addr, r.String(), fmt.Sprintf("add %q to allow_resolved to open it", netip.PrefixFrom(addr, addr.BitLen())))
}

// denyListed applies deny_resolved and the addresses of denied_domains, to embedded IPv4 as well.
func (p Policy) denyListed(addr netip.Addr) (Decision, bool) {
	for _, a := range append(embedded(addr), addr) {
		for _, x := range p.DenyResolved {
			if x.Contains(a) {
				return Decision{Deny, fmt.Sprintf("deny_resolved %q", x), fmt.Sprintf("deny_resolved covers %s; take %q out to allow it", addr, x)}, true
			}
		}
		for _, r := range p.DeniedDomains {
			if r.kind == exact && r.port == 0 && r.host.addr == a {
				return Decision{Deny, quoteRule("denied_domains", r), fmt.Sprintf("denied_domains names %s; take %q out to allow it", addr, r)}, true
			}
		}
	}
	return Decision{}, false
}

func denyRange(addr netip.Addr, what, remedy string) Decision {
	return Decision{Deny, "built-in: " + what, fmt.Sprintf("%s is refused as %s; %s", addr, what, remedy)}
}

// embedded returns the IPv4 addresses that an IPv6 address carries, by every scheme that some router, kernel or library
// unpacks. IPv4 carries none.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	var found []netip.Addr
	for _, c := range carriers {
		if c.prefix.IsValid() && !c.prefix.Contains(addr) {
			continue
		}
		if v4, ok := c.unpack(b); ok {
			found = append(found, v4)
		}
	}
	return found
}
