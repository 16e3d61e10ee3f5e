package ephemeral

import "fmt"

// DefaultProtected returns what "default" stands for in protected_paths: files that programs of the host run, or take
// commands from, when somebody merely works in the directory. All match at any depth, so that the repositories of
// submodules, inside the tree and under .git/modules, are covered. Apply protects one thing more that no pattern says: a
// .git which is a file or link, because it names a repository, configuration and hooks elsewhere.
func DefaultProtected() []string {
	texts := make([]string, len(defaultProtected))
	for i, p := range defaultProtected {
		texts[i] = p.text
	}
	return texts
}

var defaultProtected = mustPatterns(
	// Shells read these at start.
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
	"**/.config/fish",
	// Git runs hooks, and what its configuration names: editors, filters, monitors, helpers.
	"**/.git/hooks", "**/.git/config", "**/.git/config.worktree", "**/.git/commondir",
	"**/.git/modules/**/hooks", "**/.git/modules/**/config",
	"**/.git/worktrees/*/config.worktree", "**/.git/worktrees/*/commondir",
	".gitconfig", ".gitmodules",
	// Agents start servers, hooks and commands from these.
	".mcp.json",
	"**/.claude/settings*.json", "**/.claude/commands", "**/.claude/agents", "**/.claude/hooks", "**/.claude/skills",
	// Editors run tasks and interpreters from these.
	".vscode", ".idea",
)

// guard decides what Apply leaves alone.
type guard struct {
	protected, named *cover
	gitLinks         bool
}

// newGuard parses the patterns of ApplyOptions.
func newGuard(opts ApplyOptions) (*guard, error) {
	if opts.Protected == nil {
		opts.Protected = []string{"default"}
	}
	protected, err := ParsePatterns(opts.Protected)
	if err != nil {
		return nil, err
	}
	named, err := ParsePatterns(opts.Named)
	if err != nil {
		return nil, err
	}
	return &guard{protected: newCover(protected.find), named: newCover(named.find), gitLinks: protected.defaults}, nil
}

// protects returns why a change is not to be applied; "" when it may be.
func (g *guard) protects(c Change) string {
	if g.named.of(c.Path) != "" {
		return ""
	}
	if pattern := g.protected.of(c.Path); pattern != "" {
		return fmt.Sprintf("protected path %s", pattern)
	}
	if g.gitLinks && isGitLink(c) {
		return "protected path: a .git that leads elsewhere"
	}
	return ""
}

// isGitLink reports whether a change makes .git something other than a directory.
func isGitLink(c Change) bool {
	_, name := splitPath(c.Path)
	return foldCase(name) == ".git" && c.New != nil && !c.New.Mode.IsDir()
}
