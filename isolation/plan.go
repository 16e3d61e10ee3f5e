package isolation

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/network"
)

// Where things are inside, on every machine, so that runs compare.
const (
	HomeDir      = "/home/agent"
	WorkspaceDir = "/workspace"
	AgentDir     = "/opt/agent"
	SettingsPath = HomeDir + "/.claude/settings.json"

	insideUID = 1000
	proxyPort = 3128
)

// Plan is everything that a run will set up, decided but not done: pure data, the same for the same policy and the same
// [Host]. Print it with [Plan.String], make it real with [Plan.Start].
type Plan struct {
	Policy     string // name of the policy
	Bubblewrap string
	Root       bool // started by root of the whole system
	UID, GID   int  // of the sandbox's processes as the kernel knows them; inside they are 1000
	MapOwner   bool // files of root appear as the sandbox's own, through idmapped mounts
	OnDisk     bool // overlays keep what is written on disk instead of in memory
	Mounts     []Mount
	Dir        string // working directory of the command
	Env        []string
	Dropped    []Dropped
	Network    network.Policy
	Limits     Limits
	Layers     []Ring
	Warnings   []string
	Protected  []string // workspace paths that are not applied unless named
}

// Mount is one thing that the sandbox sees, in the order in which it is put in place.
type Mount struct {
	Kind     MountKind
	Target   string // absolute, inside
	Source   Object // what it shows; of a MountSystem only Path counts
	Text     string // MountFile: content; MountSymlink: where it points; MountScratch: mode
	Writable bool   // MountBind
}

// MountKind says where the content of a [Mount] comes from.
type MountKind string

// The kinds of mounts.
const (
	MountSystem  MountKind = "system"  // a public part of the host, read-only
	MountBind    MountKind = "bind"    // a granted path of the host; the very object that was judged
	MountOverlay MountKind = "overlay" // copy-on-write view of a host directory
	MountScratch MountKind = "scratch" // an empty directory in the run's memory
	MountFile    MountKind = "file"    // a generated file, read-only
	MountSymlink MountKind = "link"
	MountProc    MountKind = "proc"
	MountDev     MountKind = "dev"
	MountMask    MountKind = "mask" // an empty file or directory over a hidden path
)

// Ring is one layer of the isolation and what this run does with it.
type Ring struct {
	Name   string
	State  string // "on" or "off"
	Detail string
}

// Errors of planning and starting that a user can do something about.
var (
	ErrNoBubblewrap = errors.New("bubblewrap is not installed")
	ErrPlatform     = errors.New("this platform has no sandbox in this release")
)

// grace is how long a command may take to end after it was told to.
const grace = 5 * time.Second

// Plan decides what a run under this policy sets up on a host with these facts. It reads nothing and changes nothing.
func (c *Config) Plan(h Host) (*Plan, error) {
	c = c.WithDefaults()
	if !c.Sandbox.IsEnabled() {
		return nil, errors.New("sandbox.enabled = false: running without a sandbox is not built yet; use a policy that keeps it on")
	}
	if h.OS != "linux" {
		return nil, fmt.Errorf("plan for %s: %w", h.OS, ErrPlatform)
	}
	if h.Bubblewrap == "" {
		return nil, ErrNoBubblewrap
	}
	p := &Plan{Policy: c.Name(), Bubblewrap: h.Bubblewrap, Network: c.NetworkPolicy, Limits: c.Limits, Warnings: c.Warnings()}
	p.Protected = c.Sandbox.Protected()
	if err := checkWorkspace(c, h); err != nil {
		return nil, err
	}
	if err := p.chooseUID(c, h); err != nil {
		return nil, err
	}
	if err := p.addMounts(c, h); err != nil {
		return nil, err
	}
	p.addEnv(c, h)
	p.addLayers(c, h)
	return p, nil
}

// fault is what only a host shows to be wrong with a policy, with the place where the policy says it.
func (c *Config) fault(key, value string, cause error, format string, args ...any) error {
	f := faults{origin: c.origin}
	f.add(key, value, format, args...).Err = cause
	return f.err()
}

// checkWorkspace holds the workspace to workspace.allowed_host_roots. The root of the file tree and what holds the
// caller's home are full of keys: these must stand there themselves.
func checkWorkspace(c *Config, h Host) error {
	workspace, ok := h.Paths[RoleWorkspace]
	if !ok || c.Workspace.Mode == ephemeral.None {
		return nil
	}
	inside, named := false, false
	for _, root := range c.Workspace.AllowedHostRoots {
		o, ok := h.Paths[root]
		inside = inside || ok && (workspace.Path == o.Path || below(workspace.Path, o.Path))
		named = named || ok && workspace.Path == o.Path && root != "."
	}
	if !inside {
		return c.fault("workspace.allowed_host_roots", fmt.Sprintf("%q", c.Workspace.AllowedHostRoots), nil, "the workspace %s is outside", workspace.Path)
	}
	if broad := workspace.Path == "/" || workspace.Path == h.Home || below(h.Home, workspace.Path); broad && !named {
		return c.fault("workspace.allowed_host_roots", fmt.Sprintf("%q", c.Workspace.AllowedHostRoots), nil,
			"the workspace %s is or holds the home directory %s, with its keys; choose a directory of a project, or name it here", workspace.Path, h.Home)
	}
	return nil
}

// dedicatedUID is who the sandbox is for the kernel when root starts it on root's own files: nobody else's number, below
// the 2^31 that some programs take for the end, above the ranges that systemd and subuid hand out.
const dedicatedUID = 2_000_001_000

// chooseUID settles run_as. The kernel lets uid 0 write sysctls and exempts it from RLIMIT_NPROC whatever its namespace
// and capabilities, so a root caller's sandbox runs as somebody else unless the policy insists.
func (p *Plan) chooseUID(c *Config, h Host) error {
	workspace := h.Paths[RoleWorkspace]
	p.UID, p.GID = h.UID, h.GID
	p.Root = h.Root
	if !h.Root {
		if c.Sandbox.RunAs != RunAsAuto {
			return c.fault("sandbox.run_as", strconv.Quote(string(c.Sandbox.RunAs)), nil, "only root can run as somebody else; remove the key")
		}
		return nil
	}
	switch run := c.Sandbox.RunAs; {
	case run == "root" || run == "0":
		return nil
	case run != RunAsAuto:
		o, ok := h.Paths[RoleRunAs]
		if !ok {
			return c.fault("sandbox.run_as", strconv.Quote(string(run)), nil, "no such user")
		}
		p.UID, p.GID = o.UID, o.GID
	case workspace.UID != 0:
		p.UID, p.GID = workspace.UID, workspace.GID
	default:
		p.UID, p.GID = dedicatedUID, dedicatedUID
	}
	p.MapOwner = p.UID != 0
	return nil
}

// Roles under which [Host.Paths] holds what is not a path of the policy.
const (
	RoleWorkspace = "workspace"
	RoleAgent     = "agent"
	RoleRunAs     = "run_as"
)

func (p *Plan) addLayers(c *Config, h Host) {
	on := func(name, detail string) { p.Layers = append(p.Layers, Ring{name, "on", detail}) }
	off := func(name, detail string) { p.Layers = append(p.Layers, Ring{name, "off", detail}) }
	on("namespaces", "user, mount, pid, network, ipc, uts, cgroup")
	on("filesystem", "empty root; reads denied unless granted")
	on("capabilities", "none, no_new_privs")
	on("network", fmt.Sprintf("no interface but lo; gateway on 127.0.0.1:%d (tier: proxy)", proxyPort))
	on("environment", fmt.Sprintf("%d variables, %d dropped", len(p.Env), len(p.Dropped)))
	on("rlimits", fmt.Sprintf("processes %d, open files %d, no core dumps", p.Limits.PIDs, p.Limits.OpenFiles))
	off("landlock", "not built yet")
	off("seccomp", "not built yet")
	off("cgroup", "not built yet")
}
