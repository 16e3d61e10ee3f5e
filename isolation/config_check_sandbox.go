package isolation

import (
	"path"
	"slices"
	"strings"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/network"
)

func (k *checker) sandbox() {
	s := k.cfg.Sandbox
	k.granted("sandbox.writable_paths", s.WritablePaths)
	k.granted("sandbox.readable_paths", s.ReadablePaths)
	for i, p := range s.HiddenPaths {
		k.path(indexKey("sandbox.hidden_paths", i), p)
	}
	for i, p := range s.Protected() {
		if _, err := ephemeral.ParsePatterns([]string{p}); err != nil {
			k.add(indexKey("sandbox.protected_paths", i), quoteTOML(p), `want "default", a name, or a path inside the workspace`).Err = err
		}
	}
	for i, command := range s.ExcludedCommands {
		if strings.TrimSpace(command) == "" || strings.ContainsFunc(command, isControl) {
			k.add(indexKey("sandbox.excluded_commands", i), quoteTOML(command), "want a command")
		}
	}
	if s.AllowUnsandboxedCommands && len(s.ExcludedCommands) == 0 {
		k.fail("sandbox.allow_unsandboxed_commands", "needs sandbox.excluded_commands, the commands meant")
	}
	k.switchedOff()
}

// switchedOff wants a policy without a sandbox to say that it has no network policy either, rather than to look as if
// it had one.
func (k *checker) switchedOff() {
	n := k.cfg.NetworkPolicy
	if k.cfg.Sandbox.IsEnabled() {
		return
	}
	if slices.ContainsFunc(n.AllowedDomains, isEverything) && len(n.DeniedDomains) == 0 && n.AllowedPorts == nil {
		return
	}
	k.fail("sandbox.enabled", "without a sandbox nothing enforces the network policy").Hint =
		`say so with allowed_domains = ["*"] and no other rule, or use the preset "dev"`
}

func isEverything(r network.Rule) bool { return r.String() == "*" }

// ownTrees are made fresh for the sandbox; the host's would undo it.
var ownTrees = []string{"/proc", "/sys", "/dev"}

func (k *checker) granted(key string, paths []string) {
	for i, p := range paths {
		at := indexKey(key, i)
		if !k.path(at, p) {
			continue
		}
		if p == "/" {
			k.add(at, quoteTOML(p), "grants the whole host; name the directories")
		}
		if i := slices.IndexFunc(ownTrees, func(tree string) bool { return p == tree || strings.HasPrefix(p, tree+"/") }); i >= 0 {
			k.add(at, quoteTOML(p), "the sandbox has its own %s", ownTrees[i])
		}
	}
}

// path wants the one spelling that a path has, and reports whether it has it.
func (k *checker) path(key, p string) bool {
	switch {
	case p == "" || strings.ContainsFunc(p, isControl):
		k.add(key, quoteTOML(p), "want a path")
	case p[0] == '~':
		k.add(key, quoteTOML(p), "~ is not expanded; write the path in full")
	case path.Clean(p) != p:
		k.add(key, quoteTOML(p), "write the path as %q", path.Clean(p))
	default:
		return true
	}
	return false
}

// staysInside reports whether a clean path is relative and does not climb.
func staysInside(p string) bool {
	return p[0] != '/' && p != ".." && !strings.HasPrefix(p, "../")
}

func (k *checker) workspace() {
	w := k.cfg.Workspace
	for i, root := range w.AllowedHostRoots {
		k.path(indexKey("workspace.allowed_host_roots", i), root)
	}
	if w.Storage == ephemeral.Disk && w.Mode != "" && w.Mode != ephemeral.Overlay {
		k.fail("workspace.storage", "is about an overlay, and workspace.mode is %q", string(w.Mode))
	}
	if w.Mode == ephemeral.None && len(w.Mounts) > 0 {
		k.add("workspace.mounts", "", `workspace.mode = "none" has no place for mounts`)
	}
	taken := map[string]bool{}
	for i, m := range w.Mounts {
		k.mount(indexKey("workspace.mounts", i), m, taken)
	}
}

func (k *checker) mount(key string, m ephemeral.Mount, taken map[string]bool) {
	if m.HostPath == "" {
		k.add(key+".host_path", "", "missing")
		return
	}
	k.path(key+".host_path", m.HostPath)
	k.globs(key+".include_glob", m.IncludeGlob)
	k.globs(key+".exclude_glob", m.ExcludeGlob)
	target, at := m.MountPath, key+".mount_path"
	if target == "" {
		target, at = path.Base(m.HostPath), key+".host_path"
		if target == "." || target == ".." || target == "/" {
			k.add(at, quoteTOML(m.HostPath), "has no name of its own; add mount_path")
			return
		}
	} else if !k.path(at, target) {
		return
	}
	switch {
	case !staysInside(target) || target == ".":
		k.add(at, quoteTOML(target), "want a path inside the workspace, without ..")
	case taken[target]:
		k.add(at, quoteTOML(target), "another mount is there")
	}
	taken[target] = true
}

func (k *checker) globs(key string, patterns []string) {
	for i, p := range patterns {
		if p == "" || p[0] == '/' || strings.HasPrefix(p, "../") || strings.ContainsFunc(p, isControl) {
			k.add(indexKey(key, i), quoteTOML(p), "want a pattern on the path relative to host_path")
		}
	}
}
