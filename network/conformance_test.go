package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trick is a way around a filter, as it arrives at the gateway, and the same thing done honestly.
type trick struct {
	row    int // in spec/gateway.md §1.3; 0: not from there
	name   string
	send   string
	status int    // 0: closed without an answer
	reason string // part of the deny record's reason
	twin   string // must be answered with 200
	asks   bool   // a resolver may have been asked: the name is allowed, its address is not
}

func conformancePolicy(t testing.TB) Policy {
	return Policy{
		AllowedDomains: rules(t, "good.test", "*.wild.test", "10.0.0.5", "127.0.0.1", "mixed.test", "rebind.test", "meta.test",
			"6to4.test", "mapped.test", "nat64.test", "teredo.test", "isatap.test", "zero.test", "own.test", "pinned.test",
			"metadata.google.internal", "xn--e1afmkfd.test"),
		DeniedDomains: rules(t, "bad.wild.test"),
		Hosts:         map[string]netip.Addr{"pinned.test": netip.MustParseAddr("127.0.0.1")},
	}
}

func conformanceDNS() map[string][]netip.Addr {
	one := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
	return map[string][]netip.Addr{
		"*":           {publicAddr},
		"mixed.test":  {netip.MustParseAddr("127.0.0.1"), publicAddr, netip.MustParseAddr("10.1.1.1")},
		"rebind.test": one("127.0.0.1"),
		"meta.test":   one("169.254.169.254"),
		"6to4.test":   one("2002:7f00:1::"),
		"mapped.test": one("::ffff:127.0.0.1"),
		"nat64.test":  one("64:ff9b::7f00:1"),
		"teredo.test": one("2001:0:4136:e378:8000:63bf:80ff:fffe"),
		"isatap.test": one("2606:4700::5efe:7f00:1"),
		"zero.test":   one("0.0.0.0"),
		"own.test":    one("93.184.216.99"),
	}
}

var (
	honestGet     = get("http://good.test/", "good.test")
	honestConnect = connectTo("good.test:443")
)

// manyHeaders has one line more than is allowed.
func manyHeaders() string {
	return get("http://good.test/", "good.test", strings.Split(strings.TrimSpace(strings.Repeat("A: b\n", headerFields)), "\n")...)
}

var tricks = []trick{
	{1, "capitals of a denied name", connectTo("BAD.wild.TEST:443"), 403, "denied_domains names bad.wild.test:443", connectTo("GoOd.TeSt:443"), false},
	{2, "trailing dot of a denied name", connectTo("bad.wild.test.:443"), 403, "denied_domains names bad.wild.test:443", connectTo("good.test.:443"), false},
	{2, "two trailing dots", connectTo("good.test..:443"), 400, "empty label", honestConnect, false},
	{2, "two trailing dots, plain", get("http://good.test../", "good.test.."), 400, "empty label", honestGet, false},
	{3, "brackets around a name", connectTo("[good.test]:443"), 400, "brackets hold an IPv6 address", honestConnect, false},
	{3, "brackets around IPv4", connectTo("[93.184.216.34]:443"), 400, "brackets hold an IPv6 address", honestConnect, false},
	{3, "unbracketed IPv6", connectTo("2606:2800:220:1::1:443"), 400, "more than one colon", honestConnect, false},
	{4, "user part in CONNECT", connectTo("good.test@evil.test:443"), 400, "user part", honestConnect, false},
	{4, "user part in a URL", get("http://good.test@evil.test/", "evil.test"), 400, "user part", honestGet, false},
	{4, "user part with backslash", get(`http://good.test\@evil.test/`, "evil.test"), 400, "URLs do not have", honestGet, false},
	{4, "fragment before the real host", get("http://good.test#@evil.test/", "evil.test"), 400, "URLs do not have", honestGet, false},
	{5, "suffix without dot", connectTo("notgood.test:443"), 403, "no entry of allowed_domains", honestConnect, false},
	{5, "suffix of a wildcard without dot", connectTo("notwild.test:443"), 403, "no entry of allowed_domains", connectTo("a.wild.test:443"), false},
	{5, "allowed name as prefix", connectTo("good.test.evil.test:443"), 403, "no entry of allowed_domains", honestConnect, false},
	{5, "wildcard's own name", connectTo("wild.test:443"), 403, "no entry of allowed_domains", connectTo("a.b.wild.test:443"), false},
	{6, "NUL in the name", connectTo("evil.test\x00.wild.test:443"), 400, "not printable ASCII", connectTo("evil.test.wild.test:443"), false},
	{6, "escaped NUL", connectTo("evil.test%00.wild.test:443"), 400, "zone id or an escape", connectTo("a.wild.test:443"), false},
	{6, "space in the name", connectTo("evil.test .wild.test:443"), 400, "METHOD TARGET VERSION", connectTo("a.wild.test:443"), false},
	{6, "label of 64 bytes", connectTo(strings.Repeat("a", 64) + ".wild.test:443"), 400, "longer than 63", connectTo(strings.Repeat("a", 63) + ".wild.test:443"), false},
	{6, "name of 254 bytes", connectTo(strings.Repeat("abcd.", 49) + "wild.test:443"), 400, "longer than 253", connectTo(strings.Repeat("abcd.", 48) + "wild.test:443"), false},
	{7, "zone id", connectTo("[::ffff:1.2.3.4%x.wild.test]:443"), 400, "without zone", connectTo("a.wild.test:443"), false},
	{7, "escaped zone id", connectTo("[fe80::1%25lo.wild.test]:443"), 400, "without zone", connectTo("a.wild.test:443"), false},
	{8, "short IPv4", connectTo("127.1:80"), 400, "ends in a number", honestConnect, false},
	{8, "decimal IPv4", connectTo("2130706433:80"), 400, "ends in a number", honestConnect, false},
	{8, "octal IPv4", connectTo("0177.0.0.1:80"), 400, "ends in a number", honestConnect, false},
	{8, "leading zero", connectTo("127.0.0.01:80"), 400, "ends in a number", honestConnect, false},
	{8, "hexadecimal IPv4", connectTo("0x7f000001:80"), 400, "ends in a number", honestConnect, false},
	{8, "dotted hexadecimal", connectTo("0x7f.0.0.0x1:80"), 400, "ends in a number", honestConnect, false},
	{8, "five numbers", get("http://127.0.0.1.1/", "127.0.0.1.1"), 400, "ends in a number", honestGet, false},
	{8, "below a wildcard", connectTo("a.wild.test.1:80"), 400, "ends in a number", connectTo("1.wild.test:80"), false},
	{9, "IPv4-mapped literal", connectTo("[::ffff:127.0.0.1]:80"), 403, "loopback", honestConnect, false},
	{9, "IPv4-mapped answer", connectTo("mapped.test:443"), 403, "loopback", honestConnect, true},
	{9, "NAT64 answer", connectTo("nat64.test:443"), 403, "carries 127.0.0.1", honestConnect, true},
	{9, "6to4 answer", connectTo("6to4.test:443"), 403, "carries 127.0.0.1", honestConnect, true},
	{9, "Teredo answer", connectTo("teredo.test:443"), 403, "carries 127.0.0.1", honestConnect, true},
	{9, "ISATAP answer", connectTo("isatap.test:443"), 403, "carries 127.0.0.1", honestConnect, true},
	{10, "rebinding", connectTo("rebind.test:443"), 403, "loopback", honestConnect, true},
	{10, "rebinding, plain", get("http://rebind.test/", "rebind.test"), 403, "loopback", honestGet, true},
	{12, "metadata address", connectTo("169.254.169.254:80"), 403, "no entry of allowed_domains", honestConnect, false},
	{12, "metadata answer", get("http://meta.test/latest/meta-data/", "meta.test"), 403, "cloud metadata", honestGet, true},
	{12, "metadata name that is listed", get("http://metadata.google.internal/", "metadata.google.internal"), 403, "metadata service", honestGet, false},
	{13, "this machine's address", connectTo("own.test:443"), 403, "this machine's own address", honestConnect, true},
	{13, "0.0.0.0", connectTo("zero.test:443"), 403, "this network", honestConnect, true},
	{13, "loopback that is listed", connectTo("127.0.0.1:8080"), 403, "loopback", connectTo("10.0.0.5:8080"), false},
	{13, "loopback that is not pinned", connectTo("localhost:8080"), 403, "no entry of allowed_domains", connectTo("pinned.test:8080"), false},
	{14, "Host header names another host", get("http://good.test/", "evil.test"), 400, "Host header names evil.test:80", honestGet, false},
	{14, "Host header names another port", get("http://good.test/", "good.test:81"), 400, "Host header names good.test:81", get("http://good.test:81/", "good.test:81"), false},
	{14, "two Host headers", get("http://good.test/", "good.test", "Host: evil.test"), 400, "more than one Host", honestGet, false},
	{14, "empty Host header", get("http://good.test/", ""), 400, "is empty", honestGet, false},
	{14, "no Host header", "GET http://good.test/ HTTP/1.1\r\n\r\n", 400, "no Host", "GET http://good.test/ HTTP/1.0\r\n\r\n", false},
	{15, "CONNECT with an allowed Host header", "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n", 403, "evil.test:443", "CONNECT good.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", false},
	{22, "HTTP/2 prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, "HTTP/2", honestGet, false},
	{22, "HTTP/2 version with another method", "GET http://good.test/ HTTP/2.0\r\nHost: good.test\r\n\r\n", 400, "neither HTTP/1.1", get("http://good.test/", "good.test", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), false},
	{23, "Content-Length and Transfer-Encoding", get("http://good.test/", "good.test", "Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400, "how long its body", get("http://good.test/", "good.test", "Transfer-Encoding: chunked") + "3\r\nabc\r\n0\r\n\r\n", false},
	{23, "two Content-Lengths", get("http://good.test/", "good.test", "Content-Length: 0", "Content-Length: 5") + "abcde", 400, "how long its body", get("http://good.test/", "good.test", "Content-Length: 5") + "abcde", false},
	{23, "obscured encoding", get("http://good.test/", "good.test", "Transfer-Encoding: xchunked"), 400, "not chunked", honestGet, false},
	{23, "two encodings", get("http://good.test/", "good.test", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"), 400, "not chunked", honestGet, false},
	{23, "signed length", get("http://good.test/", "good.test", "Content-Length: +3") + "abc", 400, "not a number", get("http://good.test/", "good.test", "Content-Length: 3") + "abc", false},
	{23, "folded line", "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\nX-A: b\r\n Transfer-Encoding: chunked\r\n\r\n", 400, "not NAME: VALUE", honestGet, false},
	{23, "bare line feed", "GET http://good.test/ HTTP/1.1\nHost: good.test\n\n", 400, "CR LF", honestGet, false},
	{23, "space before the colon", get("http://good.test/", "good.test", "Transfer-Encoding : chunked"), 400, "not NAME: VALUE", honestGet, false},
	{23, "bare CR in a value", get("http://good.test/", "good.test", "X-A: b\rTransfer-Encoding: chunked"), 400, "control character", honestGet, false},
	{23, "body of a CONNECT", "CONNECT good.test:443 HTTP/1.1\r\nHost: x.test\r\nContent-Length: 5\r\n\r\nhello", 400, "no body", honestConnect, false},
	{25, "websocket upgrade", get("http://good.test/", "good.test", "Connection: Upgrade", "Upgrade: websocket"), 501, "no Upgrade", honestGet, false},
	{27, "IP address instead of a name", connectTo("93.184.216.34:443"), 403, "no entry of allowed_domains", connectTo("10.0.0.5:443"), false},
	{27, "IPv6 address instead of a name", connectTo("[2606:2800:220:1::1]:443"), 403, "no entry of allowed_domains", honestConnect, false},
	{28, "SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", 0, "SOCKS4", honestConnect, false},
	{28, "TLS to the proxy", "\x16\x03\x01\x00\x05", 0, "speaks no TLS", honestConnect, false},
	{28, "a byte of no protocol", "\x00\x01", 0, "of no HTTP request", honestConnect, false},
	{28, "something else", "SSH-2.0-x\r\n\r\n", 400, "METHOD TARGET VERSION", honestConnect, false},
	{29, "data in the labels of a denied name", connectTo("c2VjcmV0.evil.test:443"), 403, "no entry of allowed_domains", connectTo("c2VjcmV0.wild.test:443"), false},
	{30, "huge head", get("http://good.test/", "good.test", "X-A: "+strings.Repeat("a", 64<<10)), 431, "longer than 65536", get("http://good.test/", "good.test", "X-A: "+strings.Repeat("a", 60<<10)), false},
	{30, "header flood", manyHeaders(), 400, "more than 128 header lines", honestGet, false},
	{37, "port with leading zero", connectTo("good.test:0443"), 400, `spelt "443"`, honestConnect, false},
	{37, "port by name", connectTo("good.test:https"), 400, "not a number", honestConnect, false},
	{37, "port 0", connectTo("good.test:0"), 400, "not between", honestConnect, false},
	{37, "port beyond 65535", connectTo("good.test:66000"), 400, "not between", honestConnect, false},
	{37, "port that wraps to 443", connectTo("good.test:65979"), 400, "not between", honestConnect, false},
	{37, "empty port", connectTo("good.test:"), 400, "not a number", honestConnect, false},
	{37, "no port", connectTo("good.test"), 400, "has no port", honestConnect, false},
	{37, "signed port", get("http://good.test:+80/", "good.test"), 400, "not a number", get("http://good.test:80/", "good.test"), false},
	{37, "path after the port", connectTo("good.test:443/foo"), 400, "not a number", honestConnect, false},
	{37, "URL as CONNECT target", connectTo("http://good.test:443/"), 400, "more than one colon", honestConnect, false},
	{38, "name that is not ASCII", connectTo("пример.test:443"), 400, "not printable ASCII", connectTo("xn--e1afmkfd.test:443"), false},
	{38, "fullwidth dots", connectTo("127。0。0。1:80"), 400, "not printable ASCII", honestConnect, false},
	{39, "control headers", get("http://evil.test/", "evil.test", "X-Upstream-Https-Proxy: http://10.0.0.5:80", "X-Unix-Socket: /var/run/docker.sock", "Proxy-Authorization: Basic YTpi"), 403, "evil.test:80", honestGet, false},
	{0, "origin form", "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", 400, "proxy, not a server", honestGet, false},
	{0, "asterisk form", "OPTIONS * HTTP/1.1\r\nHost: good.test\r\n\r\n", 400, "proxy, not a server", honestGet, false},
	{0, "https in absolute form", get("https://good.test/", "good.test"), 400, "needs CONNECT", honestGet, false},
	{0, "another scheme", get("ftp://good.test/", "good.test"), 400, "not an http:// URL", honestGet, false},
	{0, "TRACE shows headers back", "TRACE http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n", 405, "TRACE is refused", honestGet, false},
}

// socksTrick is a way around a filter in SOCKS5: a request, which follows the greeting, and the same thing done honestly.
type socksTrick struct {
	row    int
	name   string
	send   string
	reply  socksReply
	reason string
	twin   string
	asks   bool
}

var honestSOCKS = socksName("good.test", 22)

var socksTricks = []socksTrick{
	{1, "capitals of a denied name", socksName("BAD.wild.TEST", 443), 2, "denied_domains names bad.wild.test:443", socksName("GoOd.TeSt", 443), false},
	{2, "trailing dot of a denied name", socksName("bad.wild.test.", 443), 2, "denied_domains names bad.wild.test:443", socksName("good.test.", 443), false},
	{2, "two trailing dots", socksName("good.test..", 443), 2, "empty label", honestSOCKS, false},
	{3, "brackets around a name", socksName("[good.test]", 443), 2, "brackets", honestSOCKS, false},
	{3, "brackets around an address", socksName("[2606:2800:220:1::1]", 443), 2, "brackets", honestSOCKS, false},
	{4, "user part", socksName("good.test@evil.test", 443), 2, "user part", honestSOCKS, false},
	{5, "suffix without dot", socksName("notgood.test", 443), 2, "no entry of allowed_domains", honestSOCKS, false},
	{6, "NUL in the name", socksName("evil.test\x00.wild.test", 443), 2, `character "\x00"`, socksName("evil.test.wild.test", 443), false},
	{6, "NUL at the end", socksName("good.test\x00", 443), 2, `character "\x00"`, honestSOCKS, false},
	{6, "line end in the name", socksName("good.test\r\n", 443), 2, `character "\r"`, honestSOCKS, false},
	{6, "control byte in the name", socksName("evil.test\x1b.wild.test", 443), 2, `character "\x1b"`, socksName("a.wild.test", 443), false},
	{6, "space in the name", socksName("evil.test .wild.test", 443), 2, `character " "`, socksName("a.wild.test", 443), false},
	{6, "slash in the name", socksName("evil.test/.wild.test", 443), 2, `character "/"`, socksName("a.wild.test", 443), false},
	{6, "port in the name", socksName("good.test:443", 443), 2, `character ":"`, honestSOCKS, false},
	{6, "empty name", socksName("", 443), 2, "is empty", honestSOCKS, false},
	{6, "label of 64 bytes", socksName(strings.Repeat("a", 64)+".wild.test", 443), 2, "longer than 63", socksName(strings.Repeat("a", 63)+".wild.test", 443), false},
	{6, "name of 254 bytes", socksName(strings.Repeat("abcd.", 49)+"wild.test", 443), 2, "longer than 253", socksName(strings.Repeat("abcd.", 48)+"wild.test", 443), false},
	{7, "zone id", socksName("::ffff:1.2.3.4%x.wild.test", 443), 2, "which no host name has", socksName("a.wild.test", 443), false},
	{7, "zone id of a link-local address", socksName("fe80::1%lo.wild.test", 443), 2, "which no host name has", socksName("a.wild.test", 443), false},
	{7, "escape", socksName("evil.test%00.wild.test", 443), 2, "zone id or an escape", socksName("a.wild.test", 443), false},
	{8, "short IPv4", socksName("127.1", 80), 2, "ends in a number", honestSOCKS, false},
	{8, "decimal IPv4", socksName("2130706433", 80), 2, "ends in a number", honestSOCKS, false},
	{8, "octal IPv4", socksName("0177.0.0.1", 80), 2, "ends in a number", honestSOCKS, false},
	{8, "hexadecimal IPv4", socksName("0x7f000001", 80), 2, "ends in a number", honestSOCKS, false},
	{8, "dotted hexadecimal", socksName("0x7f.0.0.0x1", 80), 2, "ends in a number", honestSOCKS, false},
	{8, "below a wildcard", socksName("a.wild.test.1", 80), 2, "ends in a number", socksName("1.wild.test", 80), false},
	{9, "IPv4-mapped address", socksAddr("::ffff:127.0.0.1", 80), 2, "loopback", honestSOCKS, false},
	{9, "NAT64 answer", socksName("nat64.test", 443), 2, "carries 127.0.0.1", honestSOCKS, true},
	{10, "rebinding", socksName("rebind.test", 443), 2, "loopback", honestSOCKS, true},
	{12, "metadata address", socksAddr("169.254.169.254", 80), 2, "no entry of allowed_domains", honestSOCKS, false},
	{13, "loopback that is listed", socksAddr("127.0.0.1", 8080), 2, "loopback", socksAddr("10.0.0.5", 8080), false},
	{27, "IPv4 address instead of a name", socksAddr("93.184.216.34", 443), 2, "no entry of allowed_domains", socksAddr("10.0.0.5", 443), false},
	{27, "IPv6 address instead of a name", socksAddr("2606:2800:220:1::1", 443), 2, "no entry of allowed_domains", socksAddr("::ffff:10.0.0.5", 443), false},
	{27, "IPv4 address as a name", socksName("93.184.216.34", 443), 2, "no entry of allowed_domains", socksName("10.0.0.5", 443), false},
	{27, "IPv6 address as a name", socksName("2606:2800:220:1::1", 443), 2, "no entry of allowed_domains", socksName("10.0.0.5", 443), false},
	{28, "UDP ASSOCIATE", "\x05\x03" + honestSOCKS[2:], 7, "no UDP leaves the sandbox", honestSOCKS, false},
	{28, "UDP ASSOCIATE for any address", "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", 7, "no UDP leaves the sandbox", honestSOCKS, false},
	{28, "BIND", "\x05\x02" + honestSOCKS[2:], 7, "nothing connects into the sandbox", honestSOCKS, false},
	{28, "an extension's command", "\x05\xf0" + honestSOCKS[2:], 7, "command 240 is unknown", honestSOCKS, false},
	{28, "an extension's address type", "\x05\x01\x00\x02" + honestSOCKS[4:], 8, "address type 2", honestSOCKS, false},
	{28, "SOCKS4 after the greeting", "\x04" + honestSOCKS[1:], 1, "not of version 5", honestSOCKS, false},
	{28, "reserved byte", "\x05\x01\x01" + honestSOCKS[3:], 1, "reserved byte", honestSOCKS, false},
	{29, "data in the labels of a denied name", socksName("c2VjcmV0.evil.test", 443), 2, "no entry of allowed_domains", socksName("c2VjcmV0.wild.test", 443), false},
	{37, "port 0", socksName("good.test", 0), 2, "port 0", honestSOCKS, false},
	{37, "port 0 of an address", socksAddr("10.0.0.5", 0), 2, "port 0", socksAddr("10.0.0.5", 65535), false},
	{38, "name that is not ASCII", socksName("пример.test", 443), 2, "not ASCII", socksName("xn--e1afmkfd.test", 443), false},
	{38, "fullwidth dots", socksName("127。0。0。1", 80), 2, "not ASCII", honestSOCKS, false},
}

// socksRows are the rows that must hold in SOCKS as well, and the tests of those that are no trick.
var socksRows = map[int]string{
	6: "", 7: "", 8: "", 27: "", 28: "",
	30: "TestSOCKSHandshakeTimeout, TestSOCKSByteByByte",
	31: "TestSOCKSHalfClose",
	40: "TestSOCKSEarlyBytes",
}

// rowsElsewhere are the rows that have a test of their own, or that this form of the gateway does not reach.
var rowsElsewhere = map[int]string{
	11: "TestMixedAnswers",
	16: "TestTLSInTunnels",
	17: "not in this form: needs intercept",
	18: "TestTLSInTunnels",
	19: "TestTLSInTunnels",
	20: "TestTLSInTunnels",
	21: "TestPort443IsForTLS",
	24: "TestModelNominatedHeader, TestPlainStripsHopByHop",
	26: "TestRedirectsAreNotFollowed",
	31: "TestTunnelHalfClose",
	32: "outside the gateway: UDP and ICMP do not reach it",
	33: "TestNothingIsRemembered",
	34: "outside the gateway: transparent mode",
	35: "TestModelPath",
	36: "TestModelRedactsResponse",
	40: "TestTunnelEarlyBytes, TestTLSInTunnels",
	41: "TestServeRefusesWhatIsNotBuilt, TestNoProxyFromEnvironment",
}

func TestConformanceOnTheWire(t *testing.T) {
	r := newRig(t, conformancePolicy(t), func(r *rig) { r.dns.answers = conformanceDNS() })
	for _, k := range tricks {
		t.Run(k.name, func(t *testing.T) {
			r.forget()
			status, header, body := r.send(k.send)
			assert.Equal(t, k.status, status, body)
			assert.Contains(t, r.await(EventDeny).Reason, k.reason)
			_, dialled, asked := r.seen()
			assert.Empty(t, dialled, "dialled")
			if !k.asks {
				assert.Empty(t, asked, "resolved")
			}
			if status != 0 {
				assert.Contains(t, header.Get("X-Sandboxrun-Decision"), "deny; rule=")
				assert.Contains(t, body, "Retrying")
				assert.Equal(t, "application/json", header.Get("Content-Type"))
			}

			r.forget()
			status, _, body = r.send(k.twin)
			assert.Equal(t, 200, status, body)
			assert.Equal(t, Allow, r.await(EventOpen).Verdict, "the honest twin must get out")
		})
	}
}

func TestConformanceRowsAreComplete(t *testing.T) {
	covered := map[int]bool{}
	for _, k := range tricks {
		covered[k.row] = true
	}
	for row := 1; row <= 41; row++ {
		assert.True(t, covered[row] != (rowsElsewhere[row] != ""), "row %d: in one of the two lists", row)
	}
	socks := map[int]bool{}
	for _, k := range socksTricks {
		socks[k.row] = true
	}
	for row, test := range socksRows {
		assert.True(t, socks[row] != (test != ""), "row %d in SOCKS: a trick or a test", row)
	}
}

// The same rows, where they are about spelling, without a gateway.
func TestConformanceOfParsing(t *testing.T) {
	for _, k := range tricks {
		if k.status != 400 && k.status != 431 || k.name == "body of a CONNECT" || k.name == "huge head" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			if headOf(t, k.send) != "" {
				_, err := parseHead([]byte(headOf(t, k.send)), Host{})
				assert.ErrorContains(t, err, k.reason)
			}
			_, err := parseHead([]byte(headOf(t, k.twin)), Host{})
			assert.NoError(t, err)
		})
	}
}

func TestConformanceOfSOCKSOnTheWire(t *testing.T) {
	r := newRig(t, conformancePolicy(t), func(r *rig) { r.dns.answers = conformanceDNS() })
	for _, k := range socksTricks {
		t.Run(k.name, func(t *testing.T) {
			r.forget()
			assert.Equal(t, k.reply, r.sendSOCKS(k.send))
			rec := r.await(EventDeny)
			assert.Contains(t, rec.Reason, k.reason)
			assert.Equal(t, ViaSOCKS, rec.Via)
			assert.Zero(t, rec.Status)
			_, dialled, asked := r.seen()
			assert.Empty(t, dialled, "dialled")
			if !k.asks {
				assert.Empty(t, asked, "resolved")
			}

			r.forget()
			assert.Equal(t, socksSucceeded, r.sendSOCKS(k.twin))
			rec = r.await(EventOpen)
			assert.Equal(t, Allow, rec.Verdict, "the honest twin must get out")
			assert.Equal(t, ViaSOCKS, rec.Via)
		})
	}
}

// What is wrong with the request itself is seen without a gateway, and what the policy has to decide is not.
func TestConformanceOfSOCKSParsing(t *testing.T) {
	for _, k := range socksTricks {
		t.Run(k.name, func(t *testing.T) {
			r, err := readSOCKS(k.send)
			if err == nil {
				assert.Equal(t, socksNotAllowed, k.reply)
				d := conformancePolicy(t).Decide(r.host, r.port)
				assert.True(t, d.Verdict == Deny || k.asks || r.host.Addr() == loopback4, "%+v", d)
			} else {
				bad, ok := err.(socksError)
				require.True(t, ok)
				assert.Equal(t, k.reply, bad.reply)
				assert.ErrorContains(t, err, k.reason)
			}
			r, err = readSOCKS(k.twin)
			require.NoError(t, err)
			assert.Equal(t, Allow, conformancePolicy(t).Decide(r.host, r.port).Verdict)
		})
	}
}

// headOf cuts a request before its body; empty if the head has no end that counts.
func headOf(t *testing.T, raw string) string {
	end, err := headEnd([]byte(raw), 0)
	if err != nil {
		return ""
	}
	require.NotZero(t, end)
	return raw[:end]
}
