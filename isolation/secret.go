package isolation

import "github.com/sandboxrun/sandboxrun/network"

const redacted = "[redacted]"

// Secret holds a text that must not be printed: every way of formatting or encoding it gives "[redacted]". It is the
// gateway's type, because the gateway is where secrets go.
type Secret = network.Secret

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return network.NewSecret(text) }
