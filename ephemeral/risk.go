package ephemeral

import (
	"io/fs"
	"path"
	"strings"
)

// riskRules say how files come to run code on the host after a run. Of the rules that match a path the first speaks; what
// matches a directory is true of all below.
var riskRules = []struct {
	reason   string
	patterns []pattern
}{
	{"git hook: git runs it", mustPatterns("**/.git/hooks", "**/.git/modules/**/hooks", ".githooks")},
	{"git configuration: core.hooksPath, filters and helpers name programs that git runs", mustPatterns(
		"**/.git/config", "**/.git/config.worktree", "**/.git/commondir", "**/.git/modules/**/config",
		"**/.git/worktrees/*/config.worktree", "**/.git/worktrees/*/commondir", ".gitconfig")},
	{"names repositories that git fetches and whose hooks it runs", mustPatterns(".gitmodules")},
	{"names filters and merge drivers that git runs", mustPatterns(".gitattributes", "**/.git/info/attributes")},
	{"hook manager: git runs what it names", mustPatterns(
		".husky", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml",
		".lefthook", ".overcommit.yml", ".lintstagedrc*")},
	{"shell start-up file", mustPatterns(
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
		"**/.config/fish")},
	{"run on entering the directory", mustPatterns(".envrc", ".direnv", ".autoenv", ".autoenv.zsh", "mise.toml", ".mise.toml", "**/.config/mise")},
	{"CI workflow", mustPatterns(
		"**/.github/workflows", "**/.github/actions", ".gitlab-ci.yml", "**/.gitlab/ci", ".circleci", ".buildkite",
		".travis.yml", ".drone.yml", ".cirrus.yml", ".woodpecker", ".woodpecker.yml", "azure-pipelines.yml",
		"bitbucket-pipelines.yml", "Jenkinsfile", "appveyor.yml", ".appveyor.yml", "**/.forgejo/workflows",
		"**/.gitea/workflows", "cloudbuild.yaml", "buildspec.yml")},
	{"agent settings: starts servers, hooks or commands", mustPatterns(
		".mcp.json", ".claude", ".claude.json", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".aider.conf.yml",
		".roo", ".clinerules", "opencode.json")},
	{"agent instructions: read as orders in the next session", mustPatterns(
		"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENT.md", "GEMINI.md", ".cursorrules", ".windsurfrules",
		"**/.github/copilot-instructions.md", "**/.github/instructions", "**/.github/prompts")},
	{"editor settings: tasks, interpreters and plugins", mustPatterns(
		".vscode", ".idea", ".zed", ".fleet", "*.code-workspace", "*.sublime-project", ".devcontainer",
		".devcontainer.json", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".ycm_extra_conf.py")},
	{"package manifest: scripts run on install and build", mustPatterns(
		"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnp.*", ".pnpmfile.cjs", "binding.gyp", "setup.py",
		"setup.cfg", "pyproject.toml", "composer.json", "Gemfile", "*.gemspec", "mix.exs", "build.rs",
		"**/.cargo/config", "**/.cargo/config.toml", "rust-toolchain", "rust-toolchain.toml", "Package.swift")},
	{"build file: runs on build", mustPatterns(
		"Makefile", "GNUmakefile", "*.mk", "CMakeLists.txt", "*.cmake", "configure", "configure.ac", "meson.build", "BUILD",
		"BUILD.bazel", "WORKSPACE", "MODULE.bazel", ".bazelrc", "*.bzl", "justfile", ".justfile", "Taskfile.yml",
		"Taskfile.yaml", "Rakefile", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
		"gradlew", "gradlew.bat", "**/gradle/wrapper", "pom.xml", "mvnw", "mvnw.cmd", "**/.mvn", "build.xml", "SConstruct",
		"wscript", "Vagrantfile", "Dockerfile", "Containerfile", "*.dockerfile", "compose.yaml", "compose.yml",
		"docker-compose.yml", "docker-compose.yaml", "Procfile", "flake.nix", "shell.nix", "default.nix", "Tiltfile",
		"Earthfile", "*.csproj", "*.targets", "*.props", "Directory.Build.*")},
	{"loaded by every test or interpreter start", mustPatterns(
		"conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "tox.ini", "noxfile.py", "pytest.ini", "jest.config.*",
		"vitest.config.*", "vite.config.*", "webpack.config.*", "rollup.config.*", "babel.config.*", ".babelrc*",
		"eslint.config.*", ".eslintrc*", ".prettierrc*", "prettier.config.*", "postcss.config.*", "tailwind.config.*",
		"next.config.*", ".mocharc.*", "karma.conf.js", "gulpfile.*", "Gruntfile.*", ".rspec", ".irbrc", ".pryrc",
		".gdbinit", ".lldbinit", ".pdbrc")},
}

// flagRisks sets Risk in a list of changes.
func flagRisks(list []Change) {
	heads := make(map[string]bool) // directories that look like a bare repository's
	for _, c := range list {
		if dir, name := splitPath(c.Path); foldCase(name) == "head" && c.New != nil {
			heads[dir] = true
		}
	}
	rules := newCover(findRisk)
	for i := range list {
		list[i].Risk = riskOf(list[i], rules, heads)
	}
}

func findRisk(names []string) string {
	for _, rule := range riskRules {
		for _, p := range rule.patterns {
			if matchNames(p.names, names) {
				return rule.reason
			}
		}
	}
	return ""
}

// riskOf returns the reason for one change. What is gone runs nothing.
func riskOf(c Change, rules *cover, heads map[string]bool) string {
	if c.New == nil || c.Kind == Special {
		return ""
	}
	if reason := rules.of(c.Path); reason != "" {
		return reason
	}
	dir, name := splitPath(c.Path)
	switch {
	case isGitLink(c):
		return "leads git to a repository with configuration and hooks of its own"
	case foldCase(name) == "config" && heads[dir]:
		return "configuration of a bare repository: git takes its orders inside that directory"
	case leadsOut(c):
		return "link leads out of the workspace"
	case c.New.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !c.New.Mode.IsDir():
		return "setuid or setgid bit"
	}
	return ""
}

// leadsOut reports whether a symlink's target, taken literally, is above the workspace. Links on the way are not followed.
func leadsOut(c Change) bool {
	if c.New.Mode.Type() != fs.ModeSymlink {
		return false
	}
	dir, _ := splitPath(c.Path)
	resolved := path.Join(dir, c.New.Target)
	return strings.HasPrefix(c.New.Target, "/") || resolved == ".." || strings.HasPrefix(resolved, "../")
}
