package isolation

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sandboxrun/sandboxrun/isolation/inside"
)

// orders translates the plan for stage zero: what to make in its scratch, and bubblewrap's arguments, which place it.
// Pure; sources come out in the order of the plan's Bind, Overlay and Disk mounts.
func (p *Plan) orders() inside.ZeroOrders {
	b := builder{plan: p}
	b.orders = inside.ZeroOrders{
		ScratchBytes:  int64(p.Limits.Disk),
		ScratchInodes: max(int64(p.Limits.Disk)/4096, 1<<16),
		Listen:        []inside.Listener{{Port: proxyPort}},
		Bubblewrap:    p.Bubblewrap,
	}
	b.arg("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup")
	b.arg("--uid", strconv.Itoa(insideUID), "--gid", strconv.Itoa(insideUID), "--hostname", hostname)
	b.arg("--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL")
	for _, m := range p.Mounts {
		b.mount(m)
	}
	b.arg("--remount-ro", "/")
	b.orders.Args = b.args
	return b.orders
}

// builder collects stage zero's orders; names in the scratch are counted: s0, s1, …
type builder struct {
	plan   *Plan
	orders inside.ZeroOrders
	args   []string
	n      int
}

func (b *builder) arg(args ...string) { b.args = append(b.args, args...) }

// name returns a fresh name in the scratch.
func (b *builder) name(kind string) string {
	b.n++
	return fmt.Sprintf("%s%d", kind, b.n-1)
}

func (b *builder) mount(m Mount) {
	switch m.Kind {
	case MountSystem:
		b.arg("--ro-bind", m.Source.Path, m.Target)
	case MountSymlink:
		b.arg("--symlink", m.Text, m.Target)
	case MountProc:
		b.arg("--proc", m.Target)
	case MountDev:
		b.arg("--dev", m.Target)
	case MountScratch:
		b.scratch(m)
	case MountFile:
		b.file(m, m.Text, 0o444)
	case MountBind:
		b.bind(m, b.source("s", m.Source))
	case MountOverlay, MountDisk:
		b.overlay(m)
	case MountMask:
		b.mask(m)
	}
}

func (b *builder) bind(m Mount, name string) {
	flag := "--ro-bind"
	if m.Writable {
		flag = "--bind"
	}
	b.arg(flag, inside.Scratch+"/"+name, m.Target)
}

func (b *builder) source(kind string, o Object) string {
	name := b.name(kind)
	b.orders.Sources = append(b.orders.Sources, inside.Source{Name: name, Path: o.Path, FD: -1, Dev: o.Dev, Ino: o.Ino, Dir: o.Dir})
	return name
}

func (b *builder) scratch(m Mount) {
	mode, err := strconv.ParseUint(m.Text, 8, 12)
	if err != nil {
		panic("BUG: mode of scratch mount " + m.Target + ": " + m.Text)
	}
	name := b.dir(uint32(mode))
	b.bind(Mount{Target: m.Target, Writable: true}, name)
	if m.Target == "/dev/shm" {
		b.arg("--remount-ro", "/dev") // bubblewrap's /dev is a writable tmpfs without a limit
	}
}

func (b *builder) dir(mode uint32) string {
	name := b.name("d")
	b.orders.Dirs = append(b.orders.Dirs, inside.Dir{Name: name, Mode: mode})
	return name
}

func (b *builder) file(m Mount, text string, mode uint32) {
	name := b.name("f")
	b.orders.Files = append(b.orders.Files, inside.File{Name: name, Mode: mode, Data: []byte(text)})
	b.bind(Mount{Target: m.Target}, name)
}

// overlay shows a lower directory through an upper one in the scratch. A Disk upper is a source that [Plan.Start] adds
// last, when the run's directory exists.
func (b *builder) overlay(m Mount) {
	lower, name := b.source("s", m.Source), b.name("o")
	upper := name + "u"
	if m.Kind == MountOverlay {
		b.orders.Dirs = append(b.orders.Dirs, inside.Dir{Name: upper, Mode: 0o700})
	}
	b.orders.Overlays = append(b.orders.Overlays, inside.Overlay{Name: name, Lower: lower, Upper: upper})
	b.bind(Mount{Target: m.Target, Writable: true}, name)
}

// mask covers a hidden path by something empty that cannot be read, written or listed.
func (b *builder) mask(m Mount) {
	if m.Source.Dir {
		b.bind(m, b.dir(0))
		return
	}
	b.file(m, "", 0)
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
