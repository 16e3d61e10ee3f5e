package network

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDecide(t *testing.T) {
	ports := func(p ...Port) *[]Port { return &p }
	pins := map[string]netip.Addr{"db.test": loopback4, "metadata.google.internal": loopback4, "10.9.9.9": loopback4}
	for _, c := range []struct {
		name   string
		policy Policy
		host   string
		port   Port
		want   Verdict
		rule   string
		reason string
	}{
		{"zero policy", Policy{}, "a.test", 443, Deny, "no rule", `allowed_domains is empty, so nothing is allowed; add "a.test"`},
		{"empty list", Policy{AllowedDomains: []Rule{}}, "a.test", 443, Deny, "no rule", "allowed_domains is empty"},
		{"star", Policy{AllowedDomains: rules(t, "*")}, "a.test", 443, Allow, `allowed_domains "*"`, "names a.test:443"},
		{"name", Policy{AllowedDomains: rules(t, "a.test")}, "a.test", 443, Allow, `allowed_domains "a.test"`, ""},
		{"other name", Policy{AllowedDomains: rules(t, "a.test")}, "b.test", 443, Deny, "no rule", `add "b.test" to allow it`},
		{"wildcard", Policy{AllowedDomains: rules(t, "*.a.test")}, "b.a.test", 443, Allow, `allowed_domains "*.a.test"`, ""},
		{"deny wins", Policy{AllowedDomains: rules(t, "a.test"), DeniedDomains: rules(t, "a.test")}, "a.test", 443, Deny, `denied_domains "a.test"`, `take "a.test" out`},
		{"deny below", Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "*.a.test")}, "b.a.test", 443, Deny, `denied_domains "*.a.test"`, ""},
		{"deny below leaves the apex", Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "*.a.test")}, "a.test", 443, Allow, `allowed_domains "*"`, ""},
		{"deny one port", Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "a.test:22")}, "a.test", 22, Deny, `denied_domains "a.test:22"`, ""},
		{"deny one port leaves others", Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "a.test:22")}, "a.test", 443, Allow, `allowed_domains "*"`, ""},

		{"ports absent", Policy{AllowedDomains: rules(t, "a.test")}, "a.test", 22, Allow, `allowed_domains "a.test"`, ""},
		{"ports empty", Policy{AllowedDomains: rules(t, "a.test"), AllowedPorts: ports()}, "a.test", 443, Deny, "allowed_ports = []", "add 443 to it"},
		{"port in list", Policy{AllowedDomains: rules(t, "a.test"), AllowedPorts: ports(80, 443)}, "a.test", 443, Allow, `allowed_domains "a.test"`, ""},
		{"port not in list", Policy{AllowedDomains: rules(t, "a.test"), AllowedPorts: ports(80, 443)}, "a.test", 22, Deny, "allowed_ports = [80, 443]", "add 22 to it"},
		{"rule's port", Policy{AllowedDomains: rules(t, "a.test:22")}, "a.test", 22, Allow, `allowed_domains "a.test:22"`, ""},
		{"not the rule's port", Policy{AllowedDomains: rules(t, "a.test:22")}, "a.test", 443, Deny, "no rule", `has "a.test:22", which is another port; add "a.test:443"`},
		{"rule's port and list disagree", Policy{AllowedDomains: rules(t, "a.test:22"), AllowedPorts: ports(443)}, "a.test", 22, Deny, "allowed_ports = [443]", "add 22"},

		{"pinned is not allowed", Policy{Hosts: pins}, "db.test", 5432, Deny, "no rule", "allowed_domains is empty"},
		{"pinned and allowed", Policy{Hosts: pins, AllowedDomains: rules(t, "db.test")}, "db.test", 5432, Allow, `allowed_domains "db.test"`, ""},
		{"metadata", Policy{AllowedDomains: rules(t, "metadata.google.internal")}, "metadata.google.internal", 80, Deny, "built-in: cloud metadata", "unless hosts pins"},
		{"metadata pinned", Policy{Hosts: pins, AllowedDomains: rules(t, "metadata.google.internal")}, "metadata.google.internal", 80, Allow, "", ""},
		{"localhost closed", Policy{AllowedDomains: rules(t, "*")}, LocalhostName, 80, Deny, "allow_localhost = false", "set allow_localhost = true"},
		{"localhost open", Policy{AllowLocalhost: true, AllowedPorts: ports()}, LocalhostName, 80, Allow, "allow_localhost = true", ""},
		{"localhost denied", Policy{AllowLocalhost: true, DeniedDomains: rules(t, LocalhostName+":22")}, LocalhostName, 22, Deny, `denied_domains "host.sandboxrun.internal:22"`, ""},

		{"star and public address", Policy{AllowedDomains: rules(t, "*")}, "93.184.216.34", 80, Allow, `allowed_domains "*"`, ""},
		{"star and private address", Policy{AllowedDomains: rules(t, "*")}, "10.0.0.5", 80, Deny, "no rule", `add "10.0.0.5"`},
		{"star and private address under allow_resolved", Policy{AllowedDomains: rules(t, "*"), AllowResolved: prefixes("10.0.0.0/8")}, "10.0.0.5", 80, Allow, "", ""},
		{"star and loopback", Policy{AllowedDomains: rules(t, "*")}, "127.0.0.1", 80, Deny, "no rule", ""},
		{"star and pinned address", Policy{AllowedDomains: rules(t, "*"), Hosts: pins}, "10.9.9.9", 80, Allow, "", ""},
		{"address", Policy{AllowedDomains: rules(t, "10.0.0.5:22", "*")}, "10.0.0.5", 22, Allow, `allowed_domains "10.0.0.5:22"`, ""},
		{"address, other port", Policy{AllowedDomains: rules(t, "10.0.0.5:22", "*")}, "10.0.0.5", 80, Deny, "no rule", "another port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.policy.Decide(host(t, c.host), c.port)
			assert.Equal(t, c.want, d.Verdict)
			assert.Contains(t, d.Rule, c.rule)
			assert.Contains(t, d.Reason, c.reason)
		})
	}
	star := Policy{AllowedDomains: rules(t, "*")}
	assert.Equal(t, Deny, star.Decide(Host{}, 443).Verdict)
	assert.Equal(t, Deny, star.Decide(host(t, "a.test"), 0).Verdict)
	assert.Equal(t, Deny, Decision{}.Verdict)
}

func TestDecideAddr(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("198.200.1.1"), netip.MustParseAddr("10.5.5.5"), netip.MustParseAddr("2606:4700::9")}
	open := Policy{AllowResolved: prefixes("10.0.0.0/8", "100.64.0.0/10", "fc00::/7")}
	shut := Policy{DenyResolved: prefixes("93.184.0.0/16"), DeniedDomains: rules(t, "1.1.1.1", "8.8.8.8:53")}
	listed := Policy{AllowedDomains: rules(t, "10.0.0.5:22", "127.0.0.1:8080", "169.254.169.254", "10.5.5.5")}
	pinned := Policy{Hosts: map[string]netip.Addr{"a.test": loopback4, "127.0.0.1": loopback4}}
	local := Policy{AllowLocalhost: true}
	for _, c := range []struct {
		policy     Policy
		host, addr string
		want       Verdict
		rule       string
	}{
		{Policy{}, "a.test", "93.184.216.34", Allow, "public address"},
		{Policy{}, "a.test", "2606:2800:220:1::1", Allow, "public address"},
		{Policy{}, "93.184.216.34", "93.184.216.34", Allow, "public address"},
		{Policy{}, "93.184.216.34", "93.184.216.35", Deny, "no rule"},
		{Policy{}, "a.test", "::ffff:93.184.216.34", Allow, "public address"},

		{Policy{}, "a.test", "127.0.0.1", Deny, "built-in: loopback (127.0.0.0/8)"},
		{Policy{}, "a.test", "127.255.255.254", Deny, "loopback"},
		{Policy{}, "a.test", "::1", Deny, "loopback"},
		{Policy{}, "a.test", "::", Deny, "unspecified"},
		{Policy{}, "a.test", "0.0.0.0", Deny, "this network"},
		{Policy{}, "a.test", "169.254.1.1", Deny, "link-local"},
		{Policy{}, "a.test", "fe80::1", Deny, "link-local"},
		{Policy{}, "a.test", "fec0::1", Deny, "site-local"},
		{Policy{}, "a.test", "224.0.0.1", Deny, "multicast"},
		{Policy{}, "a.test", "ff02::1", Deny, "multicast"},
		{Policy{}, "a.test", "255.255.255.255", Deny, "reserved"},
		{Policy{}, "a.test", "198.18.0.1", Deny, "benchmarking"},
		{Policy{}, "a.test", "4000::1", Deny, "outside 2000::/3"},
		{Policy{}, "a.test", "100::1", Deny, "outside 2000::/3"},
		{Policy{}, "a.test", "2001:db8::1", Deny, "documentation"},
		{Policy{}, "a.test", "169.254.169.254", Deny, "cloud metadata"},
		{Policy{}, "a.test", "169.254.170.2", Deny, "cloud metadata"},
		{Policy{}, "a.test", "168.63.129.16", Deny, "cloud metadata"},
		{Policy{}, "a.test", "192.0.0.192", Deny, "cloud metadata"},
		{Policy{}, "a.test", "100.100.100.200", Deny, "cloud metadata"},
		{Policy{}, "a.test", "fd00:ec2::254", Deny, "cloud metadata"},
		{Policy{}, "a.test", "fd20:ce::254", Deny, "cloud metadata"},

		{Policy{}, "a.test", "10.0.0.1", Deny, "private (10.0.0.0/8)"},
		{Policy{}, "a.test", "172.31.255.255", Deny, "private"},
		{Policy{}, "a.test", "172.32.0.1", Allow, "public"},
		{Policy{}, "a.test", "192.168.1.1", Deny, "private"},
		{Policy{}, "a.test", "100.64.0.1", Deny, "carrier-grade NAT"},
		{Policy{}, "a.test", "fd12::1", Deny, "unique local"},
		{open, "a.test", "10.0.0.1", Allow, `allow_resolved "10.0.0.0/8"`},
		{open, "a.test", "192.168.1.1", Deny, "private"},
		{open, "a.test", "fd12::1", Allow, `allow_resolved "fc00::/7"`},
		{open, "a.test", "100.100.100.200", Deny, "cloud metadata"},
		{open, "a.test", "fd00:ec2::254", Deny, "cloud metadata"},
		{open, "a.test", "10.5.5.5", Deny, "this machine's own address"},
		{open, "a.test", "fd12::5efe:10.0.0.1", Deny, "it carries 10.0.0.1"},
		{Policy{AllowResolved: prefixes("127.0.0.0/8", "0.0.0.0/0")}, "a.test", "127.0.0.1", Deny, "loopback"},

		{shut, "a.test", "93.184.216.34", Deny, `deny_resolved "93.184.0.0/16"`},
		{shut, "a.test", "93.185.216.34", Allow, "public"},
		{shut, "a.test", "2606:4700::5efe:93.184.1.1", Deny, "deny_resolved"},
		{shut, "a.test", "1.1.1.1", Deny, `denied_domains "1.1.1.1"`},
		{shut, "a.test", "8.8.8.8", Allow, "public"},
		{Policy{DenyResolved: prefixes("10.0.0.0/8"), AllowResolved: prefixes("10.0.0.0/8")}, "a.test", "10.0.0.1", Deny, "deny_resolved"},

		{listed, "10.0.0.5", "10.0.0.5", Allow, `allowed_domains "10.0.0.5"`},
		{listed, "a.test", "10.0.0.5", Deny, "private"},
		{listed, "10.0.0.6", "10.0.0.6", Deny, "private"},
		{listed, "127.0.0.1", "127.0.0.1", Deny, "loopback"},
		{listed, "169.254.169.254", "169.254.169.254", Deny, "cloud metadata"},
		{listed, "10.5.5.5", "10.5.5.5", Deny, "own address"},

		{pinned, "a.test", "127.0.0.1", Allow, `hosts "a.test"`},
		{pinned, "a.test", "127.0.0.2", Deny, "loopback"},
		{pinned, "b.test", "127.0.0.1", Deny, "loopback"},
		{pinned, "127.0.0.1", "127.0.0.1", Allow, `hosts "127.0.0.1"`},
		{local, LocalhostName, "127.0.0.1", Allow, "allow_localhost = true"},
		{Policy{}, LocalhostName, "127.0.0.1", Deny, "loopback"},

		{Policy{}, "a.test", "198.200.1.1", Deny, "own address"},
		{Policy{}, "a.test", "::ffff:198.200.1.1", Deny, "own address"},
		{Policy{}, "a.test", "2606:4700::9", Deny, "own address"},
		{Policy{}, "a.test", "2606:4700::5efe:198.200.1.1", Deny, "own address"},
	} {
		d := c.policy.DecideAddr(host(t, c.host), netip.MustParseAddr(c.addr), own)
		what := fmt.Sprintf("%s %s: %+v", c.host, c.addr, d)
		assert.Equal(t, c.want, d.Verdict, what)
		assert.Contains(t, d.Rule, c.rule, what)
		assert.NotEmpty(t, d.Reason, what)
	}
	a := host(t, "a.test")
	assert.Equal(t, Deny, Policy{}.DecideAddr(a, netip.Addr{}, nil).Verdict)
	assert.Equal(t, Deny, Policy{}.DecideAddr(a, netip.MustParseAddr("fe80::1%lo"), nil).Verdict)
	assert.Equal(t, Deny, Policy{}.DecideAddr(a, netip.MustParseAddr("::ffff:93.184.216.34%lo"), nil).Verdict)
	assert.Equal(t, Deny, Policy{}.DecideAddr(Host{}, publicAddr, nil).Verdict)
}

// TestRangesOfTheSpec takes each range that spec/gateway.md names: first, last and middle address are denied, and the
// addresses around it are not all denied.
func TestRangesOfTheSpec(t *testing.T) {
	for _, p := range prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", "100.100.100.200/32", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48",
		"64:ff9b::/96", "64:ff9b:1::/48", "fe80::/10", "fc00::/7", "::/96", "::ffff:0:0:0/96") {
		for _, a := range []netip.Addr{p.Addr(), lastOf(p)} {
			assert.Equal(t, Deny, Policy{}.DecideAddr(host(t, "a.test"), a, nil).Verdict, "%s in %s", a, p)
		}
	}
	for _, a := range []string{"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255",
		"192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "168.63.129.15",
		"168.63.129.17", "2000::1", "2001:200::1", "2003::1", "2001:db9::1", "2620:4f:8001::1", "3ffe::1"} {
		assert.Equal(t, Allow, Policy{}.DecideAddr(host(t, "a.test"), netip.MustParseAddr(a), nil).Verdict, a)
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func BenchmarkDecide(b *testing.B) {
	p := Policy{DeniedDomains: rules(b, "bad.test", "*.worse.test")}
	for i := range 50 {
		p.AllowedDomains = append(p.AllowedDomains, rules(b, fmt.Sprintf("host%d.test", i), fmt.Sprintf("*.zone%d.test", i))...)
	}
	h := host(b, "a.zone49.test")
	b.Run("host", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Decide(h, 443)
		}
	})
	b.Run("addr", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.DecideAddr(h, publicAddr, nil)
		}
	})
	b.Run("addr6", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.DecideAddr(h, publicAddr2, nil)
		}
	})
}
