package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Check reports everything in the policy that its types let through but that cannot mean what it says: keys of hosts that
// are not canonical, address ranges that open or close nothing, an entry of allowed_domains whose port allowed_ports
// leaves out. A policy with such a line must not be used. Each error begins with the key.
func (p Policy) Check() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Hosts)) {
		errs = append(errs, checkPin(name, p.Hosts[name]))
	}
	for _, x := range p.DenyResolved {
		errs = append(errs, checkPrefix("deny_resolved", x))
	}
	for _, x := range p.AllowResolved {
		errs = append(errs, checkPrefix("allow_resolved", x), checkOpens(x))
	}
	for _, r := range p.AllowedDomains {
		errs = append(errs, p.checkRulePort(r))
	}
	return errors.Join(errs...)
}

func checkPin(name string, addr netip.Addr) error {
	var h Host
	if err := h.UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("hosts: %w", err)
	}
	if want := HostOf(addr); !addr.IsValid() || want.addr != addr {
		return fmt.Errorf("hosts: %q: address %q must be an IP address without zone, like %q", name, addr, want)
	}
	return nil
}

func checkPrefix(key string, x netip.Prefix) error {
	switch {
	case !x.IsValid():
		return fmt.Errorf("%s: an address range is empty", key)
	case x.Addr().Is4In6():
		return fmt.Errorf("%s: %q covers nothing, because IPv4 inside IPv6 counts as IPv4: write the IPv4 range", key, x)
	case x.Masked() != x:
		return fmt.Errorf("%s: %q is spelt %q", key, x, x.Masked())
	}
	return nil
}

// checkOpens refuses a range of allow_resolved that is not within a private one: it would open less than it says.
func checkOpens(x netip.Prefix) error {
	for _, r := range specialRanges {
		if r.kind == private && r.prefix.Contains(x.Addr()) && r.prefix.Bits() <= x.Bits() {
			return nil
		}
	}
	return fmt.Errorf("allow_resolved: %q is not inside a private range (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7)", x)
}

func (p Policy) checkRulePort(r Rule) error {
	if r.port == 0 || p.AllowedPorts == nil || slices.Contains(*p.AllowedPorts, r.port) {
		return nil
	}
	return fmt.Errorf("allowed_domains: %q allows nothing, because port %s is not in allowed_ports", r, r.port)
}
