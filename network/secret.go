package network

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret holds a text that must not be seen: every way of formatting, logging or encoding it gives "[redacted]". Only
// Reveal gives the text. The zero value is the empty text. Secrets do not compare with ==.
type Secret struct {
	_    [0]func()
	text *string // a pointer: fmt, which walks unexported fields without asking their methods, prints an address
}

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the text. Its callers are the places to review.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return redacted }

// Format writes "[redacted]" whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]"; encoding/json and TOML encoders use it as well.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText takes the text as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
