package isolation

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time, written as whole numbers with the units h, m, s and ms: "1h", "1h30m", "90s".
type Duration time.Duration

// String returns the text form without units that are zero: "1h", not "1h0m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts the text form of a positive length of time.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return fmt.Errorf("a duration needs a unit; write %q", s+"s")
	}
	v, err := time.ParseDuration(s)
	if err != nil || strings.ContainsAny(s, "+.nuµμ") {
		return fmt.Errorf(`want a duration such as "90s", "15m" or "1h30m"`)
	}
	if v <= 0 {
		return fmt.Errorf("want a duration above zero")
	}
	*d = Duration(v)
	return nil
}
