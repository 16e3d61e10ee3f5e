package claude

import "regexp"

var (
	reBearer = regexp.MustCompile(`(?i)(authorization:\s*bearer\s+)[^\s"]+`)
	reKey    = regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]+`)
	reAssign = regexp.MustCompile(`\b([A-Z_][A-Z0-9_]*)=(\S+)`)
)

// Redact replaces what looks like a secret in text meant for people: bearer tokens, Anthropic keys, and the value of
// anything written like an environment variable.
func Redact(text string) string {
	text = reBearer.ReplaceAllString(text, "${1}***")
	text = reKey.ReplaceAllString(text, "sk-ant-***")
	return reAssign.ReplaceAllString(text, "${1}=***")
}
