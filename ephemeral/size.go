package ephemeral

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, never negative. Every value has one text form: a whole number with the largest of KiB,
// MiB, GiB and TiB that divides it, or without a unit ("4GiB", "1536MiB", "100", "0").
type Size int64

// sizeUnits are the units that Size is written in, largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"", 1},
}

// String returns the text form. That of a negative number, which no parser returns, is the plain number.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s > 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns the text form; a negative size is an error.
func (s Size) MarshalText() ([]byte, error) {
	if s < 0 {
		return nil, fmt.Errorf("size %d is negative", int64(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText accepts the text form and nothing else; the error for another spelling of a size says the right one.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := looseSize(string(text))
	if err != nil {
		return err
	}
	if want := n.String(); want != string(text) {
		return fmt.Errorf("size %q is spelt %q", text, want)
	}
	*s = n
	return nil
}

// UnmarshalTOML accepts a string as UnmarshalText does, or an integer, which counts bytes.
func (s *Size) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case string:
		return s.UnmarshalText([]byte(v))
	case int64:
		if v < 0 {
			return fmt.Errorf("size %d is negative", v)
		}
		*s = Size(v)
		return nil
	}
	return fmt.Errorf(`size %v must be a string like "4GiB" or a whole number of bytes`, value)
}

// looseSize reads what people write for sizes, so that the error can name the right spelling: any case, spaces, signs,
// GB and G for GiB.
func looseSize(text string) (Size, error) {
	bad := fmt.Errorf(`size %q must be a whole number with KiB, MiB, GiB, TiB or no unit, like "4GiB"`, text)
	trimmed := strings.TrimSpace(text)
	end := len(trimmed) - len(strings.TrimLeft(trimmed, "+-_0123456789"))
	unit, ok := looseUnit(strings.TrimSpace(trimmed[end:]))
	if !ok {
		return 0, bad
	}
	digits := strings.TrimPrefix(strings.ReplaceAll(trimmed[:end], "_", ""), "+")
	if rest, negative := strings.CutPrefix(digits, "-"); negative && isDigits(rest) {
		return 0, fmt.Errorf("size %q is negative", text)
	}
	if !isDigits(digits) {
		return 0, bad
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("size %q is too large: the largest is %d bytes", text, int64(math.MaxInt64))
	}
	return Size(n * unit), nil
}

// looseUnit returns the bytes of a unit that may lack its i or B, in any case.
func looseUnit(name string) (int64, bool) {
	name = strings.ToLower(name)
	for _, u := range sizeUnits[:len(sizeUnits)-1] {
		full := strings.ToLower(u.name)
		if name == full || name == full[:1] || name == full[:1]+"b" {
			return u.bytes, true
		}
	}
	return 1, name == "" || name == "b" || name == "byte" || name == "bytes"
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
