package isolation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// SHA256 returns the hexadecimal SHA-256 of the effective policy: one line "key = value" for every key that says
// something once the defaults are in, in a fixed order. Two files that mean the same have the same sum, whatever their
// layout, comments, descriptions and chain of extends. A literal api_key does not enter the sum: the same policy with
// another key is the same policy.
func (c *Config) SHA256() string {
	d := c.WithDefaults()
	d.Description, d.Extends = "", ""
	var b strings.Builder
	for _, l := range leaves(d) {
		if l.empty && l.key != "workspace.allowed_host_roots" { // where absent means something else
			continue
		}
		b.WriteString(l.key + " = " + rawText(l.data) + "\n")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}
