package inside

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeZero is stage zero from its first to its last instruction: wait for orders, prepare, hand out, become bubblewrap.
func becomeZero() {
	syscall.CloseOnExec(ZeroControl)
	z := &zero{control: NewControl(ZeroControl)}
	z.step("close inherited descriptors", closeInherited)
	z.step("receive orders", z.receive)
	z.step("bring up loopback", loopbackUp)
	z.step("open sockets", z.listen)
	z.step("open granted paths", z.openSources)
	z.step("mount scratch", z.mountScratch)
	z.step("attach granted paths", z.attach)
	z.step("mount overlays", z.mountOverlays)
	z.step("hand out descriptors", z.handOut)
	z.step("start bubblewrap "+z.orders.Bubblewrap, z.exec)
}

// zero is what stage zero knows between its steps.
type zero struct {
	control   *Control
	orders    ZeroOrders
	given     []*os.File // detached mounts that came with the orders
	trees     []int      // one detached mount a source
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
	for _, l := range z.orders.Listen {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: l.Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return fmt.Errorf("bind port %d: %w", l.Port, err)
		}
		if err := unix.Listen(fd, 4096); err != nil {
			return fmt.Errorf("listen on port %d: %w", l.Port, err)
		}
		z.listeners = append(z.listeners, fd)
	}
	return nil
}

// openSources turns every source into a detached mount before the scratch hides what lies below it.
func (z *zero) openSources() error {
	for _, s := range z.orders.Sources {
		tree, err := z.openSource(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
		z.trees = append(z.trees, tree)
	}
	return nil
}

func (z *zero) openSource(s Source) (int, error) {
	if s.FD >= 0 {
		if s.FD >= len(z.given) {
			return 0, fmt.Errorf("mount %d of %d was not given", s.FD, len(z.given))
		}
		return int(z.given[s.FD].Fd()), nil
	}
	fd, err := unix.Open(s.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if st.Dev != s.Dev || st.Ino != s.Ino {
		return 0, errors.New("is not what it was when the plan was made")
	}
	return CloneMount(fd)
}

// CloneMount returns a detached copy of the mounts at and below the O_PATH descriptor fd; open_tree(2), Linux 5.2. It
// is recursive, as the kernel refuses to leave out mounts that a less privileged namespace must not look under.
func CloneMount(fd int) (int, error) {
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
}

func scratch(name string) string { return filepath.Join(Scratch, name) }

func (z *zero) mountScratch() error {
	// MS_NODEV, MS_NOSUID: home, temporary files and overlays live here; see mount(2).
	options := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", z.orders.ScratchBytes, z.orders.ScratchInodes)
	if err := unix.Mount("sandbox", Scratch, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return err
	}
	unix.Umask(0)
	for _, d := range z.orders.Dirs {
		if err := os.Mkdir(scratch(d.Name), os.FileMode(d.Mode&0o777)|sticky(d.Mode)); err != nil {
			return err
		}
	}
	for _, f := range z.orders.Files {
		if err := os.WriteFile(scratch(f.Name), f.Data, os.FileMode(f.Mode&0o777)); err != nil {
			return err
		}
	}
	unix.Umask(0o022)
	return nil
}

func sticky(mode uint32) os.FileMode {
	if mode&unix.S_ISVTX != 0 {
		return os.ModeSticky
	}
	return 0
}

func (z *zero) attach() error {
	for i, s := range z.orders.Sources {
		if err := mountPoint(scratch(s.Name), s.Dir); err != nil {
			return err
		}
		if err := unix.MoveMount(z.trees[i], "", unix.AT_FDCWD, scratch(s.Name), unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
		unix.Close(z.trees[i])
	}
	return nil
}

func mountPoint(path string, dir bool) error {
	if dir {
		return os.Mkdir(path, 0o755)
	}
	return os.WriteFile(path, nil, 0o644)
}

func (z *zero) mountOverlays() error {
	for _, o := range z.orders.Overlays {
		if err := z.mountOverlay(o); err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
	}
	return nil
}

func (z *zero) mountOverlay(o Overlay) error {
	upper, work := scratch(o.Upper)+"/upper", scratch(o.Upper)+"/work"
	var lower unix.Stat_t
	if err := unix.Stat(scratch(o.Lower), &lower); err != nil {
		return err
	}
	for _, dir := range []string{upper, work, scratch(o.Name)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	// The root of the view takes its mode from the upper directory.
	if err := unix.Chmod(upper, lower.Mode&0o777); err != nil {
		return err
	}
	if err := unix.Setxattr(upper, "user.sandboxrun", []byte("1"), 0); errors.Is(err, unix.ENOTSUP) {
		return errors.New(ErrNoUserXattr)
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", scratch(o.Lower), upper, work)
	// MS_NODEV, MS_NOSUID: a device node or set-user-ID file of the workspace must not work; see mount(2).
	if err := unix.Mount("overlay", scratch(o.Name), "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return err
	}
	fd, err := unix.Open(upper, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	z.uppers = append(z.uppers, fd)
	return err
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
