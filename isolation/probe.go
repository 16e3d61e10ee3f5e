package isolation

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
)

// ProbeHost gathers what a plan for this policy has to know of this machine. Workspace is the directory that the agent
// works on, agent the program file of the agent; either may be "" when the run has none. Paths of the policy that do not
// exist are left out, for the plan to name them.
func ProbeHost(c *Config, workspace, agent string) (Host, error) {
	h := Host{OS: runtime.GOOS, UID: os.Geteuid(), GID: os.Getegid(), Env: os.Environ(), Bubblewrap: findBubblewrap(), Paths: map[string]Object{}}
	h.Root = h.UID == 0 && ownsSystem()
	h.probeRoot()
	self, err := os.Executable()
	if err != nil {
		return h, fmt.Errorf("find own program: %w", err)
	}
	if h.Self, err = Lookup(self); err != nil {
		return h, fmt.Errorf("find own program: %w", err)
	}
	if err := h.probeRun(workspace, agent); err != nil {
		return h, err
	}
	h.probeUser(string(c.Sandbox.RunAs))
	h.probeHome()
	for _, paths := range [][]string{c.WithDefaults().Workspace.AllowedHostRoots, c.Sandbox.ReadablePaths, c.Sandbox.WritablePaths, c.Sandbox.HiddenPaths} {
		for _, path := range paths {
			if err := h.probePath(path); err != nil {
				return h, err
			}
		}
	}
	return h, nil
}

func (h *Host) probeRun(workspace, agent string) error {
	if workspace != "" {
		o, err := Lookup(workspace)
		if err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
		if !o.Dir {
			return fmt.Errorf("workspace: %s is not a directory", workspace)
		}
		h.Paths[RoleWorkspace] = o
	}
	if agent == "" {
		return nil
	}
	o, err := Lookup(agent)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	h.Paths[RoleAgent] = o
	return nil
}

// probePath looks a path of the policy up; a relative one is relative to the workspace.
func (h *Host) probePath(path string) error {
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(h.Paths[RoleWorkspace].Path, path)
	}
	o, err := Lookup(full)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	h.Paths[path] = o
	return nil
}

// probeHome takes the home directory from the user database, which unlike the environment is nobody's to set.
func (h *Host) probeHome() {
	home, _ := os.UserHomeDir()
	if u, err := user.Current(); err == nil {
		home = u.HomeDir
	}
	if o, err := Lookup(home); home != "" && err == nil {
		h.Home = o.Path
	}
}

// probeUser looks up the user that run_as names, by name or number.
func (h *Host) probeUser(name string) {
	if name == "" || name == "auto" || name == "root" {
		return
	}
	if uid, err := strconv.Atoi(name); err == nil {
		h.Paths[RoleRunAs] = Object{UID: uid, GID: uid}
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	h.Paths[RoleRunAs] = Object{UID: uid, GID: gid}
}
