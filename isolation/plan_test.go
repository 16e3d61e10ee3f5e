package isolation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// debian is a host as plans see it, with made-up numbers.
func debian() Host {
	return Host{
		OS: "linux", UID: 1001, GID: 1001, Home: "/home/someone", Bubblewrap: "/usr/bin/bwrap",
		Env:   []string{"TERM=xterm", "GITHUB_TOKEN=ghp_x", "PATH=/host/bin", "HOME=/home/someone"},
		Self:  Object{Path: "/usr/local/bin/sandboxrun", Dev: 1, Ino: 10},
		Links: []Link{{"bin", "usr/bin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}, {"sbin", "usr/sbin"}},
		Etc:   []Entry{{"alternatives", true}, {"ld.so.cache", false}, {"ssl/certs", true}},
		Paths: map[string]Object{
			RoleWorkspace: {Path: "/home/someone/project", Dir: true, UID: 1001, GID: 1001, Dev: 1, Ino: 20},
			".":           {Path: "/home/someone/project", Dir: true, Dev: 1, Ino: 20},
			"/srv/data":   {Path: "/srv/data", Dir: true, Dev: 1, Ino: 30},
			"/srv/out":    {Path: "/srv/out", Dir: true, Dev: 1, Ino: 31},
			"/srv/data/k": {Path: "/srv/data/k", Dev: 1, Ino: 32},
			"build":       {Path: "/home/someone/project/build", Dir: true, Dev: 1, Ino: 33},
			"/etc":        {Path: "/etc", Dir: true, Dev: 1, Ino: 34},
			"/home":       {Path: "/home", Dir: true, Dev: 1, Ino: 35},
		},
	}
}

// withAgent adds what a run of Claude Code has.
func withAgent(h Host) Host {
	h.ModelCA = "-----BEGIN CERTIFICATE-----\n"
	h.Paths[RoleAgent] = Object{Path: "/opt/claude/claude", Dev: 1, Ino: 40}
	return h
}

func TestPlansAreGolden(t *testing.T) {
	for _, preset := range []string{"no-network", "api-only", "project"} {
		cfg, err := Load(preset)
		require.NoError(t, err)
		plan, err := cfg.Plan(withAgent(debian()))
		require.NoError(t, err)
		golden(t, filepath.Join("plan", preset+".txt"), plan.String())
	}
}

// The orders are what stage zero and bubblewrap get to see; a change of them is a change of the wall.
func TestOrdersAreGolden(t *testing.T) {
	cfg, err := LoadWith("no-network", `sandbox.readable_paths=["/srv/data"]`, `sandbox.writable_paths=["/srv/out", "build"]`,
		`sandbox.hidden_paths=["/srv/data/k"]`)
	require.NoError(t, err)
	plan, err := cfg.Plan(debian())
	require.NoError(t, err)
	data, err := json.MarshalIndent(plan.orders(), "", "  ")
	require.NoError(t, err)
	golden(t, filepath.Join("plan", "orders.json"), string(data)+"\n")
}

func TestPlanChoosesWhoTheSandboxIs(t *testing.T) {
	for _, tt := range []struct {
		name      string
		root      bool
		owner     int
		runAs     string
		uid       int
		mapOwner  bool
		wantError string
	}{
		{name: "a plain user stays itself", uid: 1001},
		{name: "root becomes the owner of the workspace", root: true, owner: 1007, uid: 1007, mapOwner: true},
		{name: "root on root's files becomes nobody's number", root: true, uid: dedicatedUID, mapOwner: true},
		{name: "root may name somebody", root: true, runAs: "build", uid: 77, mapOwner: true},
		{name: "root may insist", root: true, runAs: "root", uid: 0},
		{name: "root may insist by number", root: true, runAs: "0", uid: 0},
		{name: "a plain user may not", runAs: "root", wantError: "only root can run as somebody else"},
		{name: "somebody must exist", root: true, runAs: "nosuch", wantError: "no such user"},
	} {
		h := debian()
		if tt.root {
			h.UID, h.GID, h.Root = 0, 0, true
		}
		workspace := h.Paths[RoleWorkspace]
		workspace.UID = tt.owner
		h.Paths[RoleWorkspace] = workspace
		if tt.runAs == "build" {
			h.Paths[RoleRunAs] = Object{UID: 77, GID: 77}
		}
		plan, err := (&Config{Sandbox: Sandbox{RunAs: RunAs(tt.runAs)}}).Plan(h)
		if tt.wantError != "" {
			assert.ErrorContains(t, err, tt.wantError, tt.name)
			continue
		}
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.uid, plan.UID, tt.name)
		assert.Equal(t, tt.mapOwner, plan.MapOwner, tt.name)
	}
}

func TestPlanHoldsTheWorkspaceToItsRoots(t *testing.T) {
	for _, tt := range []struct {
		workspace string
		roots     []string
		want      string
	}{
		{"/home/someone/project", nil, ""},
		{"/srv/data/deep", []string{"/srv/data"}, ""},
		{"/srv/data", []string{"/srv/data"}, ""},
		{"/srv/database", []string{"/srv/data"}, "is outside"},
		{"/srv/out", []string{"/srv/data"}, "is outside"},
		{"/srv/out", []string{"/nosuch"}, "is outside"},
		{"/home/someone", nil, "holds the home directory"},
		{"/home", nil, "holds the home directory"},
		{"/", nil, "holds the home directory"},
		{"/home", []string{"/home"}, ""},
	} {
		h := debian()
		for _, name := range []string{RoleWorkspace, "."} {
			h.Paths[name] = Object{Path: tt.workspace, Dir: true, UID: 1001, Dev: 1, Ino: 21}
		}
		cfg := &Config{}
		cfg.Workspace.AllowedHostRoots = tt.roots
		_, err := cfg.Plan(h)
		if tt.want == "" {
			assert.NoError(t, err, "%+v", tt)
		} else {
			assert.ErrorContains(t, err, tt.want, "%+v", tt)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	no := false
	for name, tt := range map[string]struct {
		config Config
		change func(*Host)
		want   string
	}{
		"no bubblewrap":            {change: func(h *Host) { h.Bubblewrap = "" }, want: ErrNoBubblewrap.Error()},
		"another system":           {change: func(h *Host) { h.OS = "windows" }, want: "plan for windows"},
		"no sandbox":               {config: Config{Sandbox: Sandbox{Enabled: &no}}, want: "not built yet"},
		"a path that is not there": {config: Config{Sandbox: Sandbox{ReadablePaths: []string{"/nosuch"}}}, want: `sandbox.readable_paths[0] = "/nosuch": does not exist`},
		"the sandbox's own /etc":   {config: Config{Sandbox: Sandbox{ReadablePaths: []string{"/etc"}}}, want: "name a narrower path"},
		"above the agent's home":   {config: Config{Sandbox: Sandbox{WritablePaths: []string{"/home"}}}, want: "name a narrower path"},
	} {
		h := debian()
		if tt.change != nil {
			tt.change(&h)
		}
		_, err := tt.config.Plan(h)
		assert.ErrorContains(t, err, tt.want, name)
	}
}

func TestLookupResolvesLinks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	o, err := Lookup(filepath.Join(dir, "link"))
	require.NoError(t, err)
	assert.Equal(t, "real", filepath.Base(o.Path))
	assert.True(t, o.Dir)
	_, err = Lookup(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, ErrNotFound)
}
