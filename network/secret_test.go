package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	const text = "hunter2hunter2"
	s := NewSecret(text)
	type outer struct {
		Shown  Secret
		Ptr    *Secret
		hidden Secret
	}
	o := outer{s, &s, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%10s", "%-5v", "%!"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", o)
		fmt.Fprintf(&out, verb+"\n", []Secret{s})
		fmt.Fprintf(&out, verb+"\n", map[string]any{"k": o})
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "s", s, "p", &s, "o", o)
	}
	j, err := json.Marshal(o)
	require.NoError(t, err)
	out.Write(j)
	require.NoError(t, toml.NewEncoder(&out).Encode(o))
	fmt.Fprint(&out, fmt.Errorf("oops: %v", s), s.String(), s.GoString())
	assert.NotContains(t, out.String(), text)
	assert.NotContains(t, out.String(), fmt.Sprintf("%x", text))
	assert.Contains(t, out.String(), "[redacted]")
	assert.Equal(t, `{"Shown":"[redacted]","Ptr":"[redacted]"}`, string(j))
	assert.Equal(t, text, s.Reveal())
}

func TestSecretZero(t *testing.T) {
	var s Secret
	assert.True(t, s.IsZero())
	assert.Empty(t, s.Reveal())
	require.NoError(t, s.UnmarshalText([]byte("a")))
	assert.False(t, s.IsZero())
	assert.Equal(t, "a", s.Reveal())
}
