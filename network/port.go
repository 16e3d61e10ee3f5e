package network

import (
	"fmt"
	"strconv"
	"strings"
)

// Port is a TCP port from 1 to 65535. Its one spelling is decimal without leading zeros; policy files write it as a
// number. Zero is no port.
type Port uint16

// String returns the decimal spelling.
func (p Port) String() string { return strconv.Itoa(int(p)) }

// MarshalText returns the decimal spelling; the zero Port has none.
func (p Port) MarshalText() ([]byte, error) {
	if p == 0 {
		return nil, fmt.Errorf("port 0 is no port")
	}
	return []byte(p.String()), nil
}

// UnmarshalText accepts the decimal spelling and nothing else; the error for another spelling says the right one.
func (p *Port) UnmarshalText(text []byte) error {
	v, err := parsePort(string(text))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// UnmarshalTOML accepts a whole number from 1 to 65535.
func (p *Port) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case int64:
		if v < 1 || v > 65535 {
			return fmt.Errorf("port %d is not between 1 and 65535", v)
		}
		*p = Port(v)
		return nil
	case string:
		if n, err := parsePort(v); err == nil {
			return fmt.Errorf("port %q is a number: write %s", v, n)
		}
		return fmt.Errorf("port %q must be a number, like 443", v)
	}
	return fmt.Errorf("port %v must be a number, like 443", value)
}

// MarshalTOML returns the number.
func (p Port) MarshalTOML() ([]byte, error) { return p.MarshalText() }

// MarshalJSON returns the number.
func (p Port) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalJSON accepts the number.
func (p *Port) UnmarshalJSON(data []byte) error { return p.UnmarshalText(data) }

// parsePort reads the decimal spelling of a port. It is stricter than strconv: no sign, no leading zero, no name.
func parsePort(s string) (Port, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", clip(s))
	}
	digits := strings.TrimLeft(s, "0")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %q is not between 1 and 65535", clip(s))
	}
	if digits != s {
		return 0, fmt.Errorf("port %q is spelt %q", clip(s), digits)
	}
	return Port(n), nil
}

// clip shortens text from outside for a message.
func clip(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
