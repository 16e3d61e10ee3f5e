package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPath is the longest path that one system call takes: PATH_MAX with its NUL.
const maxPath = unix.PathMax - 1

var errNotRegular = errors.New("not a regular file")

// tree is a directory reached through a descriptor. Nothing in it is reached by following a link or crossing a mount.
type tree struct {
	root *os.File
	lift bool // missing owner permissions are added for a moment: in the upper, never in the host's directory
}

// handle is an O_PATH descriptor. It names a file without opening it: a FIFO cannot block, a device does nothing.
type handle int

func (h handle) close() { unix.Close(int(h)) }

// proc is the path by which a handle is opened or has its mode changed. Unlike its name it cannot come to mean another file.
func (h handle) proc() string { return "/proc/self/fd/" + strconv.Itoa(int(h)) }

func (h handle) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(h), &st)
	return st, err
}

// lookup finds a path below the tree's root; "" is the root.
func (t tree) lookup(path string) (handle, error) {
	h, err := t.resolve(path)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return h, nil
}

func (t tree) resolve(path string) (handle, error) {
	if path == "" {
		path = "."
	}
	fd, err := unix.Openat2(int(t.root.Fd()), path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	switch {
	case err == unix.ENOSYS, err == unix.EPERM: // before Linux 5.6, or a container's filter of that age
		return t.walk(path)
	case err == unix.EACCES && t.lift:
		return t.walk(path)
	}
	return handle(fd), err
}

// walk is resolve step by step.
func (t tree) walk(path string) (handle, error) {
	dir, err := t.step(handle(t.root.Fd()), ".")
	if err != nil || path == "." {
		return dir, err
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == ".." {
			dir.close()
			return -1, unix.EXDEV // what RESOLVE_BENEATH says
		}
		next, err := t.step(dir, name)
		dir.close()
		if err != nil {
			return -1, err
		}
		dir = next
	}
	return dir, nil
}

// step finds one name in a directory. A link comes back as itself, and with it as dir the next step is ENOTDIR.
func (t tree) step(dir handle, name string) (handle, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir), name, flags, 0)
	if err == unix.EACCES && t.lift {
		restore, lifted := dir.permit(0o100)
		if lifted != nil {
			return -1, err
		}
		fd, err = unix.Openat(int(dir), name, flags, 0)
		restore()
	}
	return handle(fd), err
}

// permit adds permission bits for the time until restore is called.
func (h handle) permit(bits uint32) (restore func(), err error) {
	st, err := h.stat()
	if err != nil {
		return nil, err
	}
	mode := st.Mode & 0o7777
	if err := unix.Chmod(h.proc(), mode|bits); err != nil {
		return nil, err
	}
	return func() { unix.Chmod(h.proc(), mode) }, nil
}

// openFile opens a regular file for reading.
func (t tree) openFile(path string) (*os.File, error) {
	h, err := t.lookup(path)
	if err != nil {
		return nil, err
	}
	defer h.close()
	st, err := h.stat()
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	fd, err := t.reopen(h, unix.O_RDONLY, 0o400)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (t tree) reopen(h handle, flags int, bits uint32) (int, error) {
	fd, err := unix.Open(h.proc(), flags|unix.O_CLOEXEC, 0)
	if err != unix.EACCES || !t.lift {
		return fd, err
	}
	restore, err := h.permit(bits)
	if err != nil {
		return -1, unix.EACCES
	}
	defer restore()
	return unix.Open(h.proc(), flags|unix.O_CLOEXEC, 0)
}

// openDir opens a directory for reading and for lookups in it. In a tree with lift it stays open to its owner until
// restore is called.
func (t tree) openDir(path string) (dir *os.File, restore func(), err error) {
	h, err := t.lookup(path)
	if err != nil {
		return nil, nil, err
	}
	defer h.close()
	restore = func() {}
	if st, err := h.stat(); err == nil && t.lift && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o500 != 0o500 {
		if err := unix.Chmod(h.proc(), st.Mode&0o7777|0o500); err != nil {
			return nil, nil, fmt.Errorf("make %q readable: %w", path, err)
		}
		restore = func() { t.chmod(path, st.Mode&0o7777) }
	}
	fd, err := unix.Open(h.proc(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		restore()
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), restore, nil
}

// chmod sets the mode of a file that is not a link.
func (t tree) chmod(path string, mode uint32) error {
	h, err := t.lookup(path)
	if err != nil {
		return err
	}
	defer h.close()
	if err := unix.Chmod(h.proc(), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// sortedNames lists a directory.
func sortedNames(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// statIn is lstat of a name in a directory; nil when there is nothing.
func statIn(dir int, name string) (*unix.Stat_t, error) {
	st := new(unix.Stat_t)
	err := unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return st, nil
}

// entryIn describes what statIn found; nil for nil.
func entryIn(dir int, name string, st *unix.Stat_t) (*Entry, error) {
	if st == nil {
		return nil, nil
	}
	e := &Entry{Mode: fileMode(st.Mode)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Size = st.Size
	case unix.S_IFLNK:
		buf := make([]byte, maxPath+1)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return nil, &fs.PathError{Op: "readlink", Path: name, Err: err}
		}
		e.Target = string(buf[:n])
	}
	return e, nil
}

func stampOf(st *unix.Stat_t) stamp {
	if st == nil {
		return stamp{}
	}
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, mode: st.Mode, size: st.Size,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
}

// fileMode translates st_mode.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for _, bit := range []struct {
		sys uint32
		std fs.FileMode
	}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}} {
		if mode&bit.sys != 0 {
			m |= bit.std
		}
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	default:
		m |= fs.ModeDevice
	}
	return m
}
