package inside

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeZero is stage zero from its first to its last instruction: wait for orders, prepare, hand out, become bubblewrap.
func becomeZero() {
	syscall.CloseOnExec(ZeroControl)
	z := &zero{control: NewControl(ZeroControl), trees: map[*Source]int{}}
	z.step("close inherited descriptors", closeInherited)
	z.step("receive orders", z.receive)
	z.step("bring up loopback", loopbackUp)
	z.step("open sockets", z.listen)
	z.step("open granted paths", z.openSources)
	z.step("mount scratch", z.mountScratch)
	z.step("build file tree", z.build)
	z.step("hand out descriptors", z.handOut)
	z.step("start bubblewrap "+z.orders.Bubblewrap, z.exec)
}

// zero is what stage zero knows between its steps.
type zero struct {
	control   *Control
	orders    ZeroOrders
	given     []*os.File      // detached mounts that came with the orders
	trees     map[*Source]int // one detached mount a source
	listeners []int
	uppers    []int
}

func (z *zero) step(name string, do func() error) {
	if err := do(); err != nil {
		fail(z.control, "stage zero", name, err)
	}
}

// closeInherited makes execve close what the runner's own parent left open to it: a descriptor of a directory outside
// would be a way out. close_range(2), Linux 5.11.
func closeInherited() error {
	return unix.CloseRange(CommandErr+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

func (z *zero) receive() error {
	m, files, err := z.control.Receive()
	if err != nil {
		return err
	}
	if !m.Orders || len(files) == 0 {
		return errors.New("no orders in the first message")
	}
	z.given = files[1:]
	return readOrders(files[0], &z.orders)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

func (z *zero) listen() error {
	for _, port := range z.orders.Listen {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return fmt.Errorf("bind port %d: %w", port, err)
		}
		if err := unix.Listen(fd, 4096); err != nil {
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
		z.listeners = append(z.listeners, fd)
	}
	return nil
}

// openSources turns every source into a detached mount before the scratch hides what lies below it.
func (z *zero) openSources() error {
	for _, n := range z.orders.Tree {
		for _, s := range []*Source{n.Source, n.Upper} {
			if s == nil || n.Kind == Mask {
				continue
			}
			tree, err := z.openSource(s)
			if err == nil {
				err = restrict(tree, n.Writable || s == n.Upper, n.Kind == Device)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.Path, err)
			}
			z.trees[s] = tree
		}
	}
	return nil
}

func (z *zero) openSource(s *Source) (int, error) {
	if s.FD >= 0 {
		if s.FD >= len(z.given) {
			return 0, fmt.Errorf("mount %d of %d was not given", s.FD, len(z.given))
		}
		return int(z.given[s.FD].Fd()), nil
	}
	flags := unix.O_PATH | unix.O_CLOEXEC
	if s.Ino != 0 {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(s.Path, flags, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if s.Ino != 0 && !s.Is(&st) {
		return 0, errors.New("is not what it was when the plan was made")
	}
	return CloneMount(fd)
}

// Is reports whether st is of the object that the source stands for.
func (s *Source) Is(st *unix.Stat_t) bool {
	return st.Dev == s.Dev && st.Ino == s.Ino && (st.Mode&unix.S_IFMT == unix.S_IFDIR) == s.Dir
}

// CloneMount returns a detached copy of the mounts at and below the O_PATH descriptor fd; open_tree(2), Linux 5.2. It
// is recursive, as the kernel refuses to leave out mounts that a less privileged namespace must not look under.
func CloneMount(fd int) (int, error) {
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
}

// restrict takes away what no mount of a sandbox has: device nodes, set-user-ID, and writing unless it was granted;
// mount_setattr(2), Linux 5.12. Bubblewrap's user namespace below can put none of it back.
func restrict(tree int, writable, device bool) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !device {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if !writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

func (z *zero) mountScratch() error {
	options := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", z.orders.ScratchBytes, z.orders.ScratchInodes)
	if err := unix.Mount("sandbox", Scratch, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return err
	}
	return os.Mkdir(Root, 0o755)
}

func (z *zero) handOut() error {
	m := Message{Listeners: len(z.listeners), Uppers: len(z.uppers)}
	return z.control.Send(m, append(z.listeners, z.uppers...)...)
}

// exec becomes bubblewrap. Of the descriptors only init's stay open, and the arguments, which bubblewrap closes.
func (z *zero) exec() error {
	fd, err := unix.MemfdCreate("bubblewrap-args", 0)
	if err != nil {
		return err
	}
	for _, a := range z.orders.Args {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("NUL in bubblewrap argument %q", a)
		}
	}
	if _, err := unix.Pwrite(fd, []byte(strings.Join(z.orders.Args, "\x00")+"\x00"), 0); err != nil {
		return err
	}
	argv := []string{"bwrap", "--args", fmt.Sprint(fd), "--", InitPath}
	return unix.Exec(z.orders.Bubblewrap, argv, []string{})
}
