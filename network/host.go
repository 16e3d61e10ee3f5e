package network

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Host is a host as policy, dialler, credentials and audit know it: a name in lower-case ASCII without trailing dot, or
// an IP address without zone, with IPv4 mapped into IPv6 already taken out. Two spellings of one host give one value, so
// Hosts compare with == and serve as map keys. The zero value is no host, and nothing allows it.
type Host struct {
	name string
	addr netip.Addr
}

// ParseHost reads a host without port, as it comes from the wire: letters of any case, one trailing dot at most, IPv6
// without brackets. Other spellings are refused, not repaired: numeric, octal, hexadecimal and short IPv4 (a C resolver
// reads them as addresses), zone ids, anything but letters, digits, hyphens and underscores in a name, empty or long
// labels.
func ParseHost(s string) (Host, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return HostOf(addr), nil
	}
	name := strings.TrimSuffix(lowerASCII(s), ".")
	if err := checkName(name); err != nil {
		return Host{}, fmt.Errorf("host %q %w", clip(s), err)
	}
	return Host{name: name}, nil
}

// HostOf returns the Host of an address; its zone is dropped. An invalid address gives the zero Host.
func HostOf(addr netip.Addr) Host { return Host{addr: addr.Unmap().WithZone("")} }

// ParseAuthority reads "host", "host:port", an IPv4 address or a bracketed IPv6 address with or without port, as
// they stand in CONNECT targets, absolute URLs and Host headers. Without a port it is defaultPort, or an error if that is 0.
func ParseAuthority(s string, defaultPort Port) (Host, Port, error) {
	text, port, err := splitPort(s)
	if err != nil {
		return Host{}, 0, err
	}
	h, err := parseBracketed(text)
	if err != nil {
		return Host{}, 0, err
	}
	if port == "" && defaultPort == 0 {
		return Host{}, 0, fmt.Errorf("authority %q has no port: write %q", clip(s), h.Authority(443))
	}
	if port == "" {
		return h, defaultPort, nil
	}
	p, err := parsePort(port[1:])
	if err != nil {
		return Host{}, 0, err
	}
	return h, p, nil
}

// splitPort cuts an authority before the colon of its port. Brackets stay on the host; without a port the second text is
// empty, else it begins with the colon.
func splitPort(s string) (host, port string, err error) {
	if strings.Contains(s, "@") {
		return "", "", fmt.Errorf("authority %q has a user part, which is refused", clip(s))
	}
	cut := strings.IndexByte(s, ':')
	if strings.HasPrefix(s, "[") {
		cut = strings.IndexByte(s, ']') + 1
		if cut == 0 || cut < len(s) && s[cut] != ':' {
			return "", "", fmt.Errorf("authority %q has brackets that do not hold an IPv6 address", clip(s))
		}
	}
	if cut < 0 {
		return s, "", nil
	}
	if strings.Count(s[cut:], ":") > 1 {
		return "", "", fmt.Errorf("authority %q has more than one colon; an IPv6 address stands in brackets", clip(s))
	}
	return s[:cut], s[cut:], nil
}

// parseBracketed reads the host part of an authority, where IPv6 stands in brackets and nothing else does.
func parseBracketed(s string) (Host, error) {
	inner, bracketed := strings.CutPrefix(s, "[")
	if !bracketed {
		return ParseHost(s)
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return Host{}, fmt.Errorf("host %q: brackets hold an IPv6 address without zone and nothing else", clip(s))
	}
	return HostOf(addr), nil
}

// IsZero reports whether h is no host.
func (h Host) IsZero() bool { return h == Host{} }

// IsAddr reports whether h is an IP address.
func (h Host) IsAddr() bool { return h.addr.IsValid() }

// Addr returns the address, which is invalid for a name.
func (h Host) Addr() netip.Addr { return h.addr }

// String returns the name or the address; IPv6 without brackets.
func (h Host) String() string {
	if h.IsAddr() {
		return h.addr.String()
	}
	return h.name
}

// Authority returns "host:port", with IPv6 in brackets.
func (h Host) Authority(p Port) string { return net.JoinHostPort(h.String(), p.String()) }

// MarshalText returns what String does.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText accepts the canonical spelling and nothing else; the error for another spelling says the right one.
func (h *Host) UnmarshalText(text []byte) error {
	v, err := ParseHost(string(text))
	if err != nil {
		return err
	}
	if want := v.String(); want != string(text) {
		return fmt.Errorf("host %q is spelt %q", text, want)
	}
	*h = v
	return nil
}

// checkName returns what is wrong with a name in lower case without trailing dot, in words that follow `host "…"`.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("is empty")
	}
	if len(name) > 253 {
		return fmt.Errorf("is longer than 253 bytes")
	}
	if i := strings.IndexFunc(name, notInName); i >= 0 {
		return badByte(name[i:])
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return err
		}
		last = label
	}
	if endsInNumber(last) {
		return fmt.Errorf("ends in a number but is no IP address in its usual form")
	}
	return nil
}

func notInName(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.')
}

// badByte names the first character of a text that no host name has.
func badByte(rest string) error {
	switch c := rest[0]; {
	case c == '%':
		return fmt.Errorf("has a zone id or an escape, which is refused")
	case c == '@':
		return fmt.Errorf("has a user part, which is refused")
	case c >= 0x80:
		return fmt.Errorf("is not ASCII; use its xn-- form")
	case c == '[' || c == ']':
		return fmt.Errorf("has brackets, which only an IPv6 address in an authority has")
	default:
		return fmt.Errorf("has the character %q, which no host name has", rest[:1])
	}
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return fmt.Errorf("has an empty label")
	case len(label) > 63:
		return fmt.Errorf("has a label longer than 63 bytes")
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("has a label that begins or ends with a hyphen")
	}
	return nil
}

// endsInNumber is the test of the WHATWG URL standard for names that some program reads as an IPv4 address: the last
// label is decimal, octal or hexadecimal. Go would send 0x7f000001 to DNS, a C resolver connects to 127.0.0.1.
func endsInNumber(last string) bool {
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// lowerASCII folds A–Z only: strings.ToLower would make ASCII out of the Kelvin sign.
func lowerASCII(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}
