package claude

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArgs(t *testing.T) {
	const always = "--output-format stream-json --verbose --input-format stream-json --setting-sources= --strict-mcp-config"
	for _, tt := range []struct {
		name string
		opts Options
		want string // what is added, besides the mode and the transcript where they are the usual ones
	}{
		{"nothing", Options{}, ""},
		{"zero values", Options{AllowedTools: nil, DisallowedTools: []string{}, MaxTurns: 0, Resume: "", SessionID: ""}, ""},
		{"not on the command line", Options{SystemPrompt: "s", AppendSystemPrompt: "a", Schema: json.RawMessage("{}"), Settings: json.RawMessage("{}")}, ""},
		{"model", Options{Model: "m"}, "--model=m"},
		{"dash", Options{Model: "--dangerously-skip-permissions"}, "--model=--dangerously-skip-permissions"},
		{"fallback", Options{FallbackModel: "f"}, "--fallback-model=f"},
		{"effort", Options{Effort: "low"}, "--effort=low"},
		{"turns", Options{MaxTurns: 3}, "--max-turns=3"},
		{"budget", Options{MaxBudgetUSD: 0.000001}, "--max-budget-usd=0.000001"},
		{"no tools", Options{AllowedTools: []string{}}, "--tools="},
		{"tools", Options{AllowedTools: []string{"Read", "Bash(git log:*)", "Bash(ls)", "mcp__wink__x"}},
			"--tools=Read,Bash --allowedTools=Read,Bash(git log:*),Bash(ls),mcp__wink__x"},
		{"tools of servers only", Options{AllowedTools: []string{"mcp__wink__x"}}, "--tools= --allowedTools=mcp__wink__x"},
		{"not these", Options{DisallowedTools: []string{"WebFetch", "Task"}}, "--disallowedTools=WebFetch,Task"},
		{"dirs", Options{AddDirs: []string{"/a b", "-c"}}, "--add-dir=/a b --add-dir=-c"},
		{"mcp", Options{MCPConfigPath: "/m.json"}, "--mcp-config=/m.json"},
		{"partial", Options{IncludePartialMessages: true}, "--include-partial-messages"},
		{"ask", Options{Ask: func(context.Context, ToolRequest) Answer { return Answer{} }}, "--permission-prompt-tool=stdio"},
		{"session", Options{SessionID: "u"}, "--session-id=u"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(tt.opts.Args(), " ")
			rest, ok := strings.CutPrefix(got, always)
			assert.True(t, ok, got)
			rest = strings.Replace(rest, " --permission-mode=default", "", 1)
			rest, ok = strings.CutSuffix(rest, " --no-session-persistence")
			assert.True(t, ok, got)
			assert.Equal(t, tt.want, strings.TrimSpace(rest))
		})
	}
}

func TestArgsUsual(t *testing.T) {
	args := Options{SettingsPath: "/run/s.json", PermissionMode: ModeBypassPermissions}.Args()
	assert.Equal(t, []string{"--settings=/run/s.json", "--permission-mode=bypassPermissions", "--no-session-persistence"}, args[7:])
	assert.NotContains(t, Options{Resume: "-id"}.Args(), "--no-session-persistence")
	assert.Contains(t, Options{Resume: "-id"}.Args(), "--resume=-id")
	assert.NotContains(t, Options{Persist: true}.Args(), "--no-session-persistence")
}
