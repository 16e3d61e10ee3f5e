package ephemeral

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{".vscode", ".vscode", true},
		{".vscode", "a/b/.vscode/tasks.json", true},
		{".vscode", "a.vscode", false},
		{".vscode/", "a/.vscode/x", true},
		{"src/gen", "src/gen/x.go", true},
		{"src/gen", "a/src/gen/x.go", false},
		{"/top", "top/x", true},
		{"/top", "a/top", false},
		{"**/.claude/settings*.json", "a/.claude/settings.local.json", true},
		{"**/.claude/settings*.json", ".claude/settings.json.bak", false},
		{"**/.git/modules/**/hooks", ".git/modules/a/b/hooks/x", true},
		{"**/.git/modules/**/hooks", ".git/modules/hooks", true},
		{"a/**", "a/b", true},
		{"a/*/c", "a/b/c", true},
		{"a/*/c", "a/b/b/c", false},
		{".git/hooks", ".GIT/Hooks/x", true},
		{"*.go", "x\ny\xff.go", true},
	} {
		ps, err := ParsePatterns([]string{c.pattern})
		require.NoError(t, err, c.pattern)
		got, ok := ps.Match(c.path)
		assert.Equal(t, c.want, ok, "%s %s", c.pattern, c.path)
		if ok {
			assert.Equal(t, c.pattern, got)
		}
	}
	for _, bad := range []string{"", "/", "a//b", "../x", "a/./b", "[", "a/[b"} {
		_, err := ParsePatterns([]string{bad})
		assert.ErrorContains(t, err, "is not a pattern", bad)
	}
}

func TestDefaultProtected(t *testing.T) {
	ps, err := newGuard(ApplyOptions{Protected: []string{"default", "mine"}})
	require.NoError(t, err)
	for path, want := range map[string]bool{
		".bashrc": true, ".git/hooks/pre-commit": true, ".git/config": true, ".gitmodules": true, ".mcp.json": true,
		".claude/settings.json": true, ".claude/settings.local.json": true, ".claude/commands/x.md": true, ".claude/agents/a": true,
		".claude/hooks/h": true, ".claude/skills/s/SKILL.md": true, ".vscode/tasks.json": true, "sub/.idea/x": true, "mine": true,
		"deep/er/.git/hooks/x": true, ".git/modules/a/config": true,
		".git/HEAD": false, ".git/objects/ab/cd": false, ".git/refs/heads/main": false, ".claude/todo.md": false, "main.go": false,
		"config": false, "hooks/x": false, ".git/refs/heads/config": false,
	} {
		assert.Equal(t, want, ps.protects(Change{Path: path, New: &Entry{}}) != "", path)
	}
	assert.NotEmpty(t, ps.protects(Change{Path: "sub/.git", New: &Entry{}}))
	assert.Empty(t, ps.protects(Change{Path: "sub/.git", New: &Entry{Mode: fs.ModeDir}}))
	assert.Contains(t, DefaultProtected(), ".mcp.json")
}

func TestRisks(t *testing.T) {
	file := &Entry{Mode: 0o644}
	list := []Change{
		{Path: ".git/hooks/post-checkout", New: file}, {Path: ".git/config", New: file}, {Path: ".envrc", New: file},
		{Path: "web/.husky/pre-push", New: file}, {Path: ".github/workflows/ci.yml", New: file}, {Path: "web/package.json", New: file},
		{Path: "Makefile", New: file}, {Path: ".vscode/tasks.json", New: file}, {Path: ".claude/settings.json", New: file},
		{Path: "docs/CLAUDE.md", New: file}, {Path: ".gitlab-ci.yml", New: file}, {Path: "sub/.git", New: file},
		{Path: "bare/HEAD", New: file}, {Path: "bare/config", New: file},
		{Path: "up", New: &Entry{Mode: fs.ModeSymlink, Target: "../x"}}, {Path: "suid", New: &Entry{Mode: 0o755 | fs.ModeSetuid}},
		{Path: "main.go", New: file}, {Path: "app/config", New: file}, {Path: "Makefile.old", Old: file},
		{Path: "a/in", New: &Entry{Mode: fs.ModeSymlink, Target: "../x"}}, {Path: ".envrc", Old: file, Kind: Deleted},
	}
	flagRisks(list)
	for _, c := range list[:12] {
		assert.NotEmpty(t, c.Risk, c.Path)
	}
	assert.Empty(t, list[12].Risk)
	for _, c := range list[13:16] {
		assert.NotEmpty(t, c.Risk, c.Path)
	}
	for _, c := range list[16:] {
		assert.Empty(t, c.Risk, c.Path)
	}
}
