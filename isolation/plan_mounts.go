package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/isolation/inside"
)

// addMounts lists the whole file tree of the sandbox, from the root down.
func (p *Plan) addMounts(c *Config, h Host) error {
	p.addSystem(h)
	p.addEtc(h)
	p.Mounts = append(p.Mounts,
		Mount{Kind: MountProc, Target: "/proc"},
		Mount{Kind: MountDev, Target: "/dev"},
		Mount{Kind: MountScratch, Target: "/dev/shm", Text: "1777"},
		Mount{Kind: MountScratch, Target: "/tmp", Text: "1777"},
		Mount{Kind: MountScratch, Target: HomeDir, Text: "0700"},
		Mount{Kind: MountBind, Target: inside.InitPath, Source: h.Self},
	)
	p.addWorkspace(c, h)
	if err := p.addAgent(c, h); err != nil {
		return err
	}
	return p.addGrants(c, h)
}

func (p *Plan) addSystem(h Host) {
	p.system("/usr", true)
	for _, name := range h.Roots {
		p.system("/"+name, true)
	}
	for _, l := range h.Links {
		p.Mounts = append(p.Mounts, Mount{Kind: MountSymlink, Target: "/" + l.Name, Text: l.Target})
	}
}

func (p *Plan) system(path string, dir bool) {
	p.Mounts = append(p.Mounts, Mount{Kind: MountSystem, Target: path, Source: Object{Path: path, Dir: dir}})
}

func (p *Plan) addEtc(h Host) {
	for _, e := range h.Etc {
		p.system("/etc/"+e.Name, e.Dir)
	}
	for _, f := range etcFiles {
		p.Mounts = append(p.Mounts, Mount{Kind: MountFile, Target: "/etc/" + f.name, Text: f.text})
	}
	p.Mounts = append(p.Mounts,
		Mount{Kind: MountSymlink, Target: "/etc/localtime", Text: "/usr/share/zoneinfo/UTC"},
		Mount{Kind: MountSymlink, Target: "/etc/os-release", Text: "../usr/lib/os-release"},
		Mount{Kind: MountSymlink, Target: "/etc/mtab", Text: "/proc/self/mounts"})
}

// etcFiles are the same on every machine: nothing of the host's users, names or identity.
var etcFiles = []struct{ name, text string }{
	{"passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000:agent:" + HomeDir + ":/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
	{"hostname", hostname + "\n"},
	{"hosts", "127.0.0.1 localhost " + hostname + "\n::1 localhost\n"},
	{"resolv.conf", "# names are resolved by the gateway, outside\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n"},
	{"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	{"machine-id", "00000000000000000000000000005b0c\n"},
}

const hostname = "sandbox"

func (p *Plan) addWorkspace(c *Config, h Host) {
	p.Dir = WorkspaceDir
	if c.Workspace.Mode == ephemeral.None {
		p.Mounts = append(p.Mounts, Mount{Kind: MountScratch, Target: WorkspaceDir, Text: "0755"})
		return
	}
	p.OnDisk = c.Workspace.Storage == ephemeral.Disk
	p.Mounts = append(p.Mounts, Mount{Kind: MountOverlay, Target: WorkspaceDir, Source: h.Paths[RoleWorkspace]})
}

// addAgent puts the agent's program and its settings in place. The settings are a mount of their own so that the agent
// can neither change nor replace them.
func (p *Plan) addAgent(c *Config, h Host) error {
	agent, ok := h.Paths[RoleAgent]
	if !ok {
		return nil
	}
	settings, err := ClaudeSettings(c)
	if err != nil {
		return err
	}
	p.Mounts = append(p.Mounts,
		Mount{Kind: MountBind, Target: AgentDir + "/claude", Source: agent},
		Mount{Kind: MountFile, Target: SettingsPath, Text: string(settings)},
		Mount{Kind: MountFile, Target: modelCAPath, Text: h.ModelCA})
	return nil
}

// modelCAPath is read by the agent alone; nothing else inside trusts it.
const modelCAPath = AgentDir + "/model-ca.pem"

// addGrants binds the policy's own paths in, parents before children, then hides what it wants hidden.
func (p *Plan) addGrants(c *Config, h Host) error {
	var grants []Mount
	for i, path := range c.Sandbox.ReadablePaths {
		m, err := c.grant(fmt.Sprintf("sandbox.readable_paths[%d]", i), path, h)
		if err != nil {
			return err
		}
		grants = append(grants, m)
	}
	for i, path := range c.Sandbox.WritablePaths {
		m, err := c.grant(fmt.Sprintf("sandbox.writable_paths[%d]", i), path, h)
		if err != nil {
			return err
		}
		m.Writable = true
		grants = append(grants, m)
	}
	slices.SortStableFunc(grants, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	p.Mounts = append(p.Mounts, grants...)
	for i, path := range c.Sandbox.HiddenPaths {
		mask, err := c.grant(fmt.Sprintf("sandbox.hidden_paths[%d]", i), path, h)
		if err != nil {
			return err
		}
		mask.Kind = MountMask
		p.Mounts = append(p.Mounts, mask)
	}
	return nil
}

// ownTargets are places inside that a grant must neither be, contain nor lie in: they are the sandbox's own.
var ownTargets = []string{"/dev", "/etc", "/home/agent", "/opt/agent", "/proc", "/run", "/sys", "/tmp", "/usr"}

// grant says what a path of the policy is and where it appears: a path in the workspace below /workspace, every other one
// where it is on the host.
func (c *Config) grant(key, path string, h Host) (Mount, error) {
	m := Mount{Kind: MountBind}
	o, ok := h.Paths[path]
	if !ok {
		return m, c.fault(key, strconv.Quote(path), ErrNotFound, "does not exist")
	}
	m.Source, m.Target = o, o.Path
	workspace := h.Paths[RoleWorkspace].Path
	if workspace != "" && below(o.Path, workspace) {
		m.Target = WorkspaceDir + "/" + strings.TrimPrefix(strings.TrimPrefix(o.Path, workspace), "/")
		return m, nil
	}
	for _, own := range ownTargets {
		// Below /usr and /tmp a grant is useful and hides nothing of ours.
		within := below(o.Path, own) && own != "/usr" && own != "/tmp"
		if o.Path == own || below(own, o.Path) || within {
			return m, c.fault(key, strconv.Quote(path), nil, "%s would cover the sandbox's own %s; name a narrower path", o.Path, own)
		}
	}
	return m, nil
}

// below reports whether path lies strictly below dir.
func below(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") && path != dir
}
