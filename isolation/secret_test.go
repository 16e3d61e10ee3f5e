package isolation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretsDoNotPrint(t *testing.T) {
	const text = "hunter2"
	secret := NewSecret(text)
	type hidden struct{ s Secret }
	config := &Config{APIKey: &Source{Literal: secret}, Credentials: []Credential{{Source: Source{Literal: secret}}}}
	for _, v := range []any{secret, &secret, []Secret{secret}, map[string]Secret{"a": secret}, hidden{secret}, &hidden{secret}, Source{Literal: secret}, *config.APIKey, config, *config} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10s", "%T"} {
			out := fmt.Sprintf(verb, v)
			assert.NotContains(t, out, text, verb)
			assert.NotContains(t, out, "68756e74657232", verb)
		}
		if data, err := json.Marshal(v); err == nil {
			assert.NotContains(t, string(data), text)
		}
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
		assert.NotContains(t, b.String(), text)
	}
	var b bytes.Buffer
	require.NoError(t, toml.NewEncoder(&b).Encode(map[string]any{"s": secret}))
	assert.NotContains(t, b.String(), text)
	assert.NotContains(t, Explain(config), text)
	assert.Equal(t, text, secret.Reveal())
	assert.Equal(t, "", Secret{}.Reveal())
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"1h": time.Hour, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond} {
		var d Duration
		require.NoError(t, d.UnmarshalText([]byte(text)))
		assert.Equal(t, Duration(want), d)
	}
	for _, text := range []string{"", "1", "0", "0s", "-1s", "+1s", "1.5h", "1d", "1h ", " 1h", "h", "1us", "1ns", "1µs", "9999999h", "1H"} {
		var d Duration
		assert.Error(t, d.UnmarshalText([]byte(text)), text)
		assert.Zero(t, d)
	}
	for d, want := range map[Duration]string{Duration(time.Hour): "1h", Duration(90 * time.Second): "1m30s", Duration(time.Hour + time.Second): "1h0m1s", Duration(10 * time.Minute): "10m", 0: "0s"} {
		assert.Equal(t, want, d.String())
	}
}
