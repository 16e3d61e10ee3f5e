package network

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseHost(t *testing.T) {
	long := strings.Repeat("abcdefg.", 31) + "abcde" // 253 bytes
	for _, c := range []struct{ in, want, problem string }{
		{"example.com", "example.com", ""},
		{"ExAmPlE.com.", "example.com", ""},
		{"a_b.example.com", "a_b.example.com", ""},
		{"localhost", "localhost", ""},
		{"xn--e1afmkfd.test", "xn--e1afmkfd.test", ""},
		{long, long, ""},
		{"1.example.com", "1.example.com", ""},
		{"3com.com", "3com.com", ""},
		{"0xg.com", "0xg.com", ""},
		{"a.0xg", "a.0xg", ""},
		{"192.0.2.1", "192.0.2.1", ""},
		{"::1", "::1", ""},
		{"0:0:0:0:0:0:0:1", "::1", ""},
		{"::ffff:127.0.0.1", "127.0.0.1", ""},
		{"2001:DB8::1", "2001:db8::1", ""},

		{"", "", "is empty"},
		{".", "", "is empty"},
		{"a..b", "", "empty label"},
		{".a", "", "empty label"},
		{"a..", "", "empty label"},
		{"a" + long, "", "longer than 253"},
		{strings.Repeat("a", 64), "", "longer than 63"},
		{"-a.com", "", "hyphen"},
		{"a-.com", "", "hyphen"},
		{"a b", "", `the character " "`},
		{"a\x00b", "", `the character "\x00"`},
		{"a\nb", "", `the character "\n"`},
		{"a/b", "", "the character"},
		{"a:80", "", "the character"},
		{"u@a", "", "user part"},
		{"[a]", "", "brackets"},
		{"[::1]", "", "brackets"},
		{"a%25b", "", "zone id"},
		{"fe80::1%eth0", "", "the character"},
		{"::ffff:1.2.3.4%x.allowed.com", "", "the character"},
		{"é.com", "", "not ASCII"},
		{"\u212a.com", "", "not ASCII"}, // Kelvin sign, whose lower case is k
		{"1", "", "ends in a number"},
		{"127.1", "", "ends in a number"},
		{"127.0.0.01", "", "ends in a number"},
		{"0177.0.0.1", "", "ends in a number"},
		{"1.2.3.4.5", "", "ends in a number"},
		{"256.1.1.1", "", "ends in a number"},
		{"0x7f000001", "", "ends in a number"},
		{"0X7F.1", "", "ends in a number"},
		{"a.0x", "", "ends in a number"},
		{"example.123", "", "ends in a number"},
		{"127.0.0.1.", "", "ends in a number"},
	} {
		h, err := ParseHost(c.in)
		if c.problem != "" {
			assert.ErrorContains(t, err, c.problem, "%q", c.in)
			assert.True(t, h.IsZero(), "%q", c.in)
			continue
		}
		require.NoError(t, err, "%q", c.in)
		assert.Equal(t, c.want, h.String())
		again, err := ParseHost(c.want)
		require.NoError(t, err)
		assert.True(t, again == h, "one host, one value: %q", c.in)
	}
}

func TestParseAuthority(t *testing.T) {
	for _, c := range []struct {
		in      string
		deflt   Port
		want    string
		problem string
	}{
		{"a.test:443", 0, "a.test:443", ""},
		{"A.test.:443", 0, "a.test:443", ""},
		{"a.test", 80, "a.test:80", ""},
		{"[::1]:443", 0, "[::1]:443", ""},
		{"[::1]", 80, "[::1]:80", ""},
		{"[::ffff:1.2.3.4]:1", 0, "1.2.3.4:1", ""},
		{"1.2.3.4:65535", 0, "1.2.3.4:65535", ""},
		{"a.test", 0, "", `write "a.test:443"`},
		{"a.test:", 80, "", "not a number"},
		{":443", 0, "", "is empty"},
		{"", 80, "", "is empty"},
		{"::1", 80, "", "more than one colon"},
		{"::1:443", 80, "", "more than one colon"},
		{"[::1", 80, "", "brackets"},
		{"[::1]443", 80, "", "brackets"},
		{"[::1]:443:1", 80, "", "more than one colon"},
		{"[::1%lo]:443", 80, "", "without zone"},
		{"[a.test]:443", 80, "", "brackets"},
		{"[1.2.3.4]:443", 80, "", "brackets"},
		{"[]:443", 80, "", "brackets"},
		{"a@b:443", 80, "", "user part"},
		{"a:b@c:443", 80, "", "user part"},
		{"a.test:0", 80, "", "not between"},
		{"a.test:0443", 80, "", `spelt "443"`},
		{"a.test:+443", 80, "", "not a number"},
		{"a.test: 443", 80, "", "not a number"},
		{"a.test:٤٤٣", 80, "", "not a number"},
		{"a.test:66000", 80, "", "not between"},
		{"a.test:99999999999999999999", 80, "", "not between"},
		{"a.test:https", 80, "", "not a number"},
	} {
		h, p, err := ParseAuthority(c.in, c.deflt)
		if c.problem != "" {
			assert.ErrorContains(t, err, c.problem, "%q", c.in)
			assert.True(t, h.IsZero() && p == 0, "%q", c.in)
			continue
		}
		require.NoError(t, err, "%q", c.in)
		assert.Equal(t, c.want, h.Authority(p))
	}
}

func TestHostText(t *testing.T) {
	var h Host
	require.NoError(t, h.UnmarshalText([]byte("a.test")))
	assert.ErrorContains(t, h.UnmarshalText([]byte("A.test")), `is spelt "a.test"`)
	assert.ErrorContains(t, h.UnmarshalText([]byte("a.test.")), `is spelt "a.test"`)
	assert.ErrorContains(t, h.UnmarshalText([]byte("::ffff:1.2.3.4")), `is spelt "1.2.3.4"`)
	out, err := json.Marshal(map[Host]int{h: 1})
	require.NoError(t, err)
	assert.Equal(t, `{"a.test":1}`, string(out))
	assert.Equal(t, HostOf(netip.MustParseAddr("fe80::1%lo")), HostOf(netip.MustParseAddr("fe80::1")))
	assert.True(t, HostOf(netip.Addr{}).IsZero())
}

func TestRuleSpelling(t *testing.T) {
	for _, s := range []string{
		"a.test", "a.test:8443", "*.a.test", "*.a.test:443", "192.0.2.1", "192.0.2.1:80", "::1", "[::1]:443", "*", "*:443",
		"localhost", "*.githubusercontent.com", "*.github.io", "*.example.co.uk",
	} {
		r, err := ParseRule(s)
		require.NoError(t, err)
		assert.Equal(t, s, r.String())
	}
	for _, c := range []struct{ in, problem string }{
		{"", "is empty"},
		{"A.test", `spelt "a.test"`},
		{"a.test.", `spelt "a.test"`},
		{"*.A.test.:443", `spelt "*.a.test:443"`},
		{"[::1]", `spelt "::1"`},
		{"[::0001]:443", `spelt "[::1]:443"`},
		{"::ffff:1.2.3.4", `spelt "1.2.3.4"`},
		{"a.test:0443", `spelt "443"`},
		{"a.test:https", "not a number"},
		{"a.test:", "not a number"},
		{"a.test:70000", "not between"},
		{"https://a.test/x", `write the host alone, "a.test"`},
		{"a.test/x", "has a path"},
		{"10.0.0.0/8", "ranges go into allow_resolved"},
		{"**.a.test", `write "*.a.test" for the names below it and "a.test" for itself`},
		{".a.test", `write "*.a.test"`},
		{"*a.test", "a star stands alone"},
		{"a.*.test", "a star stands alone"},
		{"*.*.test", "a star stands alone"},
		{"*.com", "different owners"},
		{"*.co.uk", "different owners"},
		{"*.co.uk:443", "different owners"},
		{"*.internal", "different owners"},
		{"*.192.0.2.1", "nothing is below an IP address"},
		{"*.2.1", "ends in a number"},
		{"*.", "is empty"},
		{"u@a.test", "user part"},
		{"fe80::1%lo", "more than one colon"},
		{"пример.test", `write "xn--e1afmkfd.test"`},
		{"*.пример.test:443", `write "*.xn--e1afmkfd.test:443"`},
		{"127。0。0。1", "is not ASCII"},
		{"a test", `the character " "`},
		{"0x7f.1", "ends in a number"},
	} {
		_, err := ParseRule(c.in)
		assert.ErrorContains(t, err, c.problem, "%q", c.in)
	}
}

func TestRuleMatch(t *testing.T) {
	for _, c := range []struct {
		rule, host string
		port       Port
		want       bool
	}{
		{"a.test", "a.test", 1, true},
		{"a.test", "b.a.test", 1, false},
		{"a.test:443", "a.test", 443, true},
		{"a.test:443", "a.test", 80, false},
		{"*.a.test", "b.a.test", 1, true},
		{"*.a.test", "c.b.a.test", 1, true},
		{"*.a.test", "a.test", 1, false},
		{"*.a.test", "xa.test", 1, false},
		{"*.a.test:443", "b.a.test", 80, false},
		{"*", "anything.test", 1, true},
		{"*", "192.0.2.1", 1, true},
		{"*:443", "anything.test", 80, false},
		{"192.0.2.1", "192.0.2.1", 1, true},
		{"::1", "::1", 1, true},
		{"[::1]:443", "::1", 443, true},
		{"a.test", "a.test", 0, false},
	} {
		assert.Equal(t, c.want, rules(t, c.rule)[0].Match(host(t, c.host), c.port), "%s %s:%d", c.rule, c.host, c.port)
	}
	assert.False(t, Rule{}.Match(host(t, "a.test"), 1))
	assert.False(t, Rule{}.Match(Host{}, 1), "the zero rule does not match the zero host")
	assert.False(t, rules(t, "*")[0].Match(Host{}, 1))
}

func TestPolicyTOML(t *testing.T) {
	const text = `
allowed_domains = ["a.test", "*.b.test:443"]
allowed_ports = [443, 8443]
allow_unix_sockets = ["/run/x \"y\".sock"]
deny_resolved = ["10.0.0.0/8"]
[hosts]
"db.test" = "127.0.0.1"
`
	var p Policy
	_, err := toml.Decode(text, &p)
	require.NoError(t, err)
	assert.Equal(t, &[]Port{443, 8443}, p.AllowedPorts)
	assert.Equal(t, UnixSockets{Paths: []string{`/run/x "y".sock`}}, p.AllowUnixSockets)
	require.NoError(t, p.Check())

	out, err := toml.Marshal(p)
	require.NoError(t, err)
	var again Policy
	_, err = toml.Decode(string(out), &again)
	require.NoError(t, err, "%s", out)
	assert.Equal(t, p.AllowedDomains, again.AllowedDomains)
	assert.Equal(t, p.AllowedPorts, again.AllowedPorts)
	assert.Equal(t, p.AllowUnixSockets, again.AllowUnixSockets)

	var empty, absent Policy
	_, err = toml.Decode(`allowed_ports = []`, &empty)
	require.NoError(t, err)
	_, err = toml.Decode(``, &absent)
	require.NoError(t, err)
	assert.NotNil(t, empty.AllowedPorts)
	assert.Nil(t, absent.AllowedPorts)

	for _, c := range []struct{ in, problem string }{
		{`allowed_ports = [70000]`, "70000 is not between 1 and 65535"},
		{`allowed_ports = [0]`, "0 is not between"},
		{`allowed_ports = [-1]`, "-1 is not between"},
		{`allowed_ports = ["443"]`, "write 443"},
		{`allowed_ports = ["https"]`, "must be a number"},
		{`allowed_ports = [4.5]`, "must be a number"},
		{`allowed_domains = [true]`, "must be a string"},
		{`allowed_domains = ["A.test"]`, `spelt "a.test"`},
		{`allow_unix_sockets = 1`, "true, false or a list"},
		{`allow_unix_sockets = [1]`, "not a path"},
	} {
		_, err := toml.Decode(c.in, new(Policy))
		assert.ErrorContains(t, err, c.problem, c.in)
	}
}

func TestPolicyCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  Policy
		problem string
	}{
		{"zero", Policy{}, ""},
		{"pin", Policy{Hosts: map[string]netip.Addr{"a.test": netip.MustParseAddr("127.0.0.1")}}, ""},
		{"pin's name", Policy{Hosts: map[string]netip.Addr{"A.test": netip.MustParseAddr("127.0.0.1")}}, `hosts: host "A.test" is spelt "a.test"`},
		{"pin's zone", Policy{Hosts: map[string]netip.Addr{"a.test": netip.MustParseAddr("fe80::1%lo")}}, `like "fe80::1"`},
		{"pin mapped", Policy{Hosts: map[string]netip.Addr{"a.test": netip.MustParseAddr("::ffff:127.0.0.1")}}, `like "127.0.0.1"`},
		{"pin empty", Policy{Hosts: map[string]netip.Addr{"a.test": {}}}, "must be an IP address"},
		{"range", Policy{AllowResolved: prefixes("10.1.0.0/16", "fd00::/8"), DenyResolved: prefixes("8.0.0.0/8")}, ""},
		{"range with host bits", Policy{DenyResolved: prefixes("10.1.2.3/8")}, `"10.1.2.3/8" is spelt "10.0.0.0/8"`},
		{"range mapped", Policy{DenyResolved: prefixes("::ffff:10.0.0.0/104")}, "covers nothing"},
		{"range empty", Policy{DenyResolved: []netip.Prefix{{}}}, "is empty"},
		{"allowing loopback", Policy{AllowResolved: prefixes("127.0.0.0/8")}, "not inside a private range"},
		{"allowing all", Policy{AllowResolved: prefixes("0.0.0.0/0")}, "not inside a private range"},
		{"port that is not allowed", Policy{AllowedDomains: rules(t, "a.test:22"), AllowedPorts: &[]Port{443}}, `"a.test:22" allows nothing`},
	} {
		err := c.policy.Check()
		if c.problem == "" {
			assert.NoError(t, err, c.name)
			continue
		}
		assert.ErrorContains(t, err, c.problem, c.name)
	}
}
