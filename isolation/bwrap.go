package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxrun/sandboxrun/isolation/inside"
)

// orders translates the plan for stage zero: the file tree that it builds, and bubblewrap's arguments, which put the
// namespaces around it. Pure.
func (p *Plan) orders() inside.ZeroOrders {
	return inside.ZeroOrders{
		ScratchBytes:  int64(p.Limits.Disk),
		ScratchInodes: max(int64(p.Limits.Disk)/4096, 1<<16),
		Tree:          p.tree(),
		Listen:        []int{proxyPort},
		Bubblewrap:    p.Bubblewrap,
		Args: []string{
			"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
			"--uid", strconv.Itoa(insideUID), "--gid", strconv.Itoa(insideUID), "--hostname", hostname,
			"--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL",
			"--bind", inside.Root, "/", "--proc", "/proc", "--dev", "/dev",
			// Bubblewrap's /dev is a writable tmpfs without a limit: its /dev/shm becomes ours, the rest read-only.
			"--bind", inside.Root + shmStore, "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/",
		},
	}
}

// shmStore is where /dev/shm is kept until bubblewrap has made /dev.
const shmStore = "/run/shm"

// tree lists the nodes of the sandbox's file tree but for /proc and /dev, which bubblewrap makes.
func (p *Plan) tree() []inside.Node {
	nodes := []inside.Node{{Path: "/proc", Kind: inside.Dir, Mode: 0o755}, {Path: "/dev", Kind: inside.Dir, Mode: 0o755}}
	for _, m := range p.Mounts {
		if m.Kind != MountProc && m.Kind != MountDev {
			nodes = append(nodes, m.node())
		}
	}
	return nodes
}

func (m Mount) node() inside.Node {
	n := inside.Node{Path: m.Target, Writable: m.Writable}
	switch m.Kind {
	case MountSystem:
		n.Kind, n.Source = inside.Bind, &inside.Source{Path: m.Source.Path, FD: -1, Dir: m.Source.Dir}
	case MountBind:
		n.Kind, n.Source = inside.Bind, m.Source.source()
	case MountOverlay:
		n.Kind, n.Source = inside.Overlay, m.Source.source()
	case MountMask:
		n.Kind, n.Source = inside.Mask, m.Source.source()
	case MountSymlink:
		n.Kind, n.Data = inside.Link, []byte(m.Text)
	case MountFile:
		n.Kind, n.Mode, n.Data = inside.File, 0o444, []byte(m.Text)
		if strings.HasPrefix(m.Target, HomeDir+"/") {
			n.Kind = inside.Sealed
		}
	case MountScratch:
		n.Kind, n.Mode, n.Writable = inside.Empty, m.mode(), true
		if m.Target == "/dev/shm" {
			n.Path = shmStore
		}
	default:
		panic(fmt.Sprintf("BUG: mount of kind %q", m.Kind))
	}
	return n
}

func (m Mount) mode() uint32 {
	mode, err := strconv.ParseUint(m.Text, 8, 12)
	if err != nil {
		panic("BUG: mode of scratch mount " + m.Target + ": " + m.Text)
	}
	return uint32(mode)
}

func (o Object) source() *inside.Source {
	return &inside.Source{Path: o.Path, FD: -1, Dev: o.Dev, Ino: o.Ino, Dir: o.Dir}
}

// initOrders is what init has to start under this plan.
func (p *Plan) initOrders(c Command) inside.Orders {
	o := inside.Orders{Args: c.Args, Env: slices.Clone(p.Env), Dir: p.Dir, UID: insideUID, Rlimits: p.rlimits()}
	if c.Terminal != nil {
		o.Terminal, o.Columns, o.Rows = true, c.Terminal.Columns, c.Terminal.Rows
	}
	return o
}

// rlimits are set in the sandbox's user namespace, where RLIMIT_NPROC counts per sandbox (Linux 5.14).
func (p *Plan) rlimits() []inside.Rlimit {
	return []inside.Rlimit{
		{Resource: inside.RlimitCore, Value: 0},
		{Resource: inside.RlimitOpenFiles, Value: uint64(p.Limits.OpenFiles)},
		{Resource: inside.RlimitProcesses, Value: uint64(p.Limits.PIDs)},
	}
}
