package network

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Rule is one entry of allowed_domains or denied_domains:
//
//	example.com           that name, any port
//	example.com:8443      that name and port
//	*.example.com         the names below it, not itself; with ":port" too
//	192.0.2.1, ::1        an IP address; with a port [::1]:443
//	*                     everything
//
// Each has one spelling. A star matches no IP address unless it stands alone. A star above a public suffix ("*.com",
// "*.co.uk") or above a single label is refused: it would cover names of strangers. The zero Rule matches nothing.
type Rule struct {
	host Host
	port Port // 0: any
	kind ruleKind
}

type ruleKind uint8

const (
	noRule   ruleKind = iota
	exact             // host
	below             // *.host
	anything          // *
)

// ParseRule reads a rule in its canonical spelling; the error for another spelling says the right one.
func ParseRule(s string) (Rule, error) {
	r, err := looseRule(s)
	if err != nil {
		return Rule{}, err
	}
	if want := r.String(); want != s {
		return Rule{}, fmt.Errorf("rule %q is spelt %q", clip(s), want)
	}
	return r, nil
}

// looseRule reads a rule whose host may have capitals, a trailing dot or needless brackets, so that the error can name
// the right spelling.
func looseRule(s string) (Rule, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return Rule{kind: exact, host: HostOf(addr)}, nil
	}
	if err := notARule(s); err != nil {
		return Rule{}, err
	}
	text, portText, err := splitPort(s)
	if err != nil {
		return Rule{}, err
	}
	var port Port
	if portText != "" {
		if port, err = parsePort(portText[1:]); err != nil {
			return Rule{}, fmt.Errorf("rule %q: %w", clip(s), err)
		}
	}
	if text == "*" {
		return Rule{kind: anything, port: port}, nil
	}
	if suffix, ok := strings.CutPrefix(text, "*."); ok {
		h, err := wildcardHost(suffix)
		return Rule{kind: below, host: h, port: port}, err
	}
	h, err := parseBracketed(text)
	return Rule{kind: exact, host: h, port: port}, err
}

// notARule answers what people write instead of a rule with the rule that they mean.
func notARule(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("rule is empty")
	case strings.Contains(s, "://"):
		_, rest, _ := strings.Cut(s, "://")
		host, _, _ := strings.Cut(rest, "/")
		return fmt.Errorf("rule %q is a URL: write the host alone, %q", clip(s), clip(host))
	case isPrefix(s):
		return fmt.Errorf("rule %q is an address range: ranges go into allow_resolved or deny_resolved", s)
	case strings.Contains(s, "/"):
		return fmt.Errorf("rule %q has a path: rules name hosts only", clip(s))
	case strings.HasPrefix(s, "**."):
		return fmt.Errorf("rule %q: write %q for the names below it and %q for itself", clip(s), clip(s[1:]), clip(s[3:]))
	case strings.HasPrefix(s, "."):
		return fmt.Errorf("rule %q: write %q for the names below it", clip(s), clip("*"+s))
	case strings.LastIndexByte(s, '*') > 0, len(s) > 1 && s[0] == '*' && s[1] != '.' && s[1] != ':':
		return fmt.Errorf("rule %q: a star stands alone or as the whole first label, like %q", clip(s), "*.example.com")
	}
	return notASCII(s)
}

func isPrefix(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// notASCII refuses an international name and says its xn-- form, which is what the wire carries.
func notASCII(s string) error {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 {
		return nil
	}
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i:]
	}
	host, star := strings.CutPrefix(host, "*.")
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return fmt.Errorf("rule %q is not ASCII and is no valid international name", clip(s))
	}
	if star {
		ascii = "*." + ascii
	}
	return fmt.Errorf("rule %q is not ASCII: write %q", clip(s), ascii+port)
}

// wildcardHost reads the part after "*.", which must be a name that one owner has.
func wildcardHost(s string) (Host, error) {
	h, err := parseBracketed(s)
	switch {
	case err != nil:
		return Host{}, err
	case h.IsAddr():
		return Host{}, fmt.Errorf(`rule "*.%s": nothing is below an IP address`, h)
	case isPublicSuffix(h.name):
		return Host{}, fmt.Errorf(`rule "*.%s" covers names of different owners: name the domains, like "*.example.%s"`, h, h)
	}
	return h, nil
}

// isPublicSuffix reports whether strangers register names directly below name: one label, or a suffix that a registry
// runs. Suffixes of hosting companies (github.io) do not count; "*.githubusercontent.com" is a sensible rule.
func isPublicSuffix(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	suffix, registry := publicsuffix.PublicSuffix(name)
	return registry && suffix == name
}

// Match reports whether the rule covers host and port.
func (r Rule) Match(h Host, p Port) bool {
	return r.matchHost(h) && (r.port == 0 || r.port == p) && p != 0
}

func (r Rule) matchHost(h Host) bool {
	switch r.kind {
	case exact:
		return r.host == h
	case below:
		return !h.IsAddr() && isBelow(h.name, r.host.name)
	case anything:
		return !h.IsZero()
	}
	return false
}

// isBelow compares label-wise: "notexample.com" is not below "example.com".
func isBelow(name, parent string) bool {
	return len(name) > len(parent)+1 && strings.HasSuffix(name, parent) && name[len(name)-len(parent)-1] == '.'
}

// IsAny reports whether the rule is "*", with a port or without.
func (r Rule) IsAny() bool { return r.kind == anything }

// String returns the canonical spelling; that of the zero Rule is empty.
func (r Rule) String() string {
	host := r.host.String()
	switch r.kind {
	case noRule:
		return ""
	case below:
		host = "*." + host
	case anything:
		host = "*"
	}
	switch {
	case r.port == 0:
		return host
	case r.kind == exact:
		return r.host.Authority(r.port)
	}
	return host + ":" + r.port.String()
}

// MarshalText returns the canonical spelling; the zero Rule has none.
func (r Rule) MarshalText() ([]byte, error) {
	if r.kind == noRule {
		return nil, fmt.Errorf("rule is empty")
	}
	return []byte(r.String()), nil
}

// UnmarshalText accepts the canonical spelling, as ParseRule does.
func (r *Rule) UnmarshalText(text []byte) error {
	v, err := ParseRule(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// UnmarshalTOML accepts a string. Without it the decoder would read true as the host "true".
func (r *Rule) UnmarshalTOML(value any) error {
	s, ok := value.(string)
	if !ok {
		return fmt.Errorf("rule %v must be a string, like %q", value, "example.com")
	}
	return r.UnmarshalText([]byte(s))
}
