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
			"--dev-bind", inside.Root, "/", "--proc", "/proc", "--remount-ro", "/",
		},
	}
}

// tree lists the nodes of the sandbox's file tree. Of /proc it has the mount point only: the mount needs the PID
// namespace, which bubblewrap makes.
func (p *Plan) tree() []inside.Node {
	var nodes []inside.Node
	for _, m := range p.Mounts {
		if m.Kind == MountDev {
			nodes = append(nodes, devNodes...)
			continue
		}
		nodes = append(nodes, m.node())
	}
	return nodes
}

// devNodes are a minimal /dev: no device of the host but those that give and take bytes, and terminals of its own.
var devNodes = []inside.Node{
	device("null"), device("zero"), device("full"), device("random"), device("urandom"), device("tty"),
	{Path: "/dev/pts", Kind: inside.Terminals},
	devLink("ptmx", "pts/ptmx"), devLink("fd", "/proc/self/fd"), devLink("stdin", "/proc/self/fd/0"),
	devLink("stdout", "/proc/self/fd/1"), devLink("stderr", "/proc/self/fd/2"),
}

func device(name string) inside.Node {
	return inside.Node{Path: "/dev/" + name, Kind: inside.Device, Writable: true, Source: &inside.Source{Path: "/dev/" + name, FD: -1}}
}

func devLink(name, target string) inside.Node {
	return inside.Node{Path: "/dev/" + name, Kind: inside.Link, Data: []byte(target)}
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
	case MountProc:
		n.Kind, n.Mode = inside.Dir, 0o755
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
