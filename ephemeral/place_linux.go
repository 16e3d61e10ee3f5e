package ephemeral

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// tempPrefix starts the names of files that Apply has not renamed yet. Only a killed Apply leaves one.
const tempPrefix = ".sandboxrun-"

var errChanged = errors.New("the host changed it just now")

// place is where a step is carried out: a name in an open directory.
type place struct {
	*applier
	dir  handle
	name string
	step
}

// recheck compares the host's entry with the checked one.
func (p place) recheck() (*unix.Stat_t, error) {
	st, err := statIn(int(p.dir), p.name)
	if err == nil && !stampOf(st).sameUnderway(p.at) {
		err = errChanged
	}
	return st, err
}

func (p place) remove(dir bool) error {
	if _, err := p.recheck(); err != nil {
		return err
	}
	flags := 0
	if dir {
		flags = unix.AT_REMOVEDIR
	}
	if err := unix.Unlinkat(int(p.dir), p.name, flags); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	delete(p.modes, p.Path)
	return nil
}

func (p place) chmod() error {
	if isDir(p.New) {
		_, err := p.recheck()
		p.modes[p.Path] = sysMode(p.hostMode())
		return err
	}
	h, err := tree{}.step(p.dir, p.name)
	if err != nil {
		return err
	}
	defer h.close()
	st, err := h.stat()
	if err == nil && !stampOf(&st).sameUnderway(p.at) {
		err = errChanged
	}
	if err != nil {
		return err
	}
	if err := unix.Chmod(h.proc(), sysMode(p.hostMode())); err != nil {
		return fmt.Errorf("chmod: %w", err)
	}
	return nil
}

// makeDir makes a directory that only the caller may use until setModes.
func (p place) makeDir() error {
	old, err := p.recheck()
	if err != nil {
		return err
	}
	if old != nil {
		if err := p.remove(false); err != nil {
			return err
		}
	}
	if err := unix.Mkdirat(int(p.dir), p.name, 0o700); err != nil {
		return fmt.Errorf("mkdir: %w", err)
	}
	made, err := statIn(int(p.dir), p.name)
	if err != nil || made == nil {
		return errors.Join(err, errChanged)
	}
	p.modes[p.Path] = sysMode(p.hostMode()) | made.Mode&unix.S_ISGID // as the host's directory hands it down
	return p.own(p.name, old)
}

func (p place) makeLink() error {
	temp := tempName()
	if err := unix.Symlinkat(p.New.Target, int(p.dir), temp); err != nil {
		return fmt.Errorf("symlink: %w", err)
	}
	return p.settle(temp, func() error { return nil })
}

func (p place) makeFile() error {
	src, err := p.layers.openUpper(p.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	temp := tempName()
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(p.dir), temp, flags, 0o600)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	dst := os.NewFile(uintptr(fd), temp)
	defer dst.Close()
	return p.settle(temp, func() error { return p.fill(dst, src) })
}

// fill writes a new file. Its mode comes after its owner, because a change of owner takes bits away.
func (p place) fill(dst, src *os.File) error {
	if err := copySparse(dst, src, p.New.Size); err != nil {
		return err
	}
	if err := unix.Fchmod(int(dst.Fd()), sysMode(p.hostMode())); err != nil {
		return err
	}
	if p.sync {
		if err := dst.Sync(); err != nil {
			return err
		}
	}
	return dst.Close()
}

// settle owns and fills a temporary file and gives it its name, or removes it.
func (p place) settle(temp string, fill func() error) (err error) {
	defer func() {
		if err != nil {
			unix.Unlinkat(int(p.dir), temp, 0)
		}
	}()
	old, err := p.recheck()
	if err != nil {
		return err
	}
	if err := p.own(temp, old); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	if _, err := p.recheck(); err != nil {
		return err
	}
	return p.rename(temp, old != nil)
}

// rename replaces what recheck saw. Where there was nothing the kernel sees to it that there still is nothing, on file
// systems that can.
func (p place) rename(temp string, replace bool) error {
	if !replace {
		err := unix.Renameat2(int(p.dir), temp, int(p.dir), p.name, unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			return errChanged
		}
		if err != unix.EINVAL && err != unix.ENOSYS {
			return err
		}
	}
	return unix.Renameat(int(p.dir), temp, int(p.dir), p.name)
}

// own gives a new file its owner: that of the file that it replaces, else that of its directory. A caller who is not root
// keeps the group where it may.
func (p place) own(name string, old *unix.Stat_t) error {
	owner := old
	if owner == nil {
		st, err := p.dir.stat()
		if err != nil {
			return err
		}
		owner = &st
	}
	h, err := tree{}.step(p.dir, name)
	if err != nil {
		return err
	}
	defer h.close()
	if os.Geteuid() != 0 {
		if old != nil {
			_ = unix.Fchownat(int(h), "", -1, int(owner.Gid), unix.AT_EMPTY_PATH)
		}
		return nil
	}
	// The directory's owner could have put a hard link to a file of root's under the name.
	st, err := h.stat()
	if err != nil {
		return err
	}
	if st.Uid != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink != 1 {
		return errChanged
	}
	if err := unix.Fchownat(int(h), "", int(owner.Uid), int(owner.Gid), unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("chown: %w", err)
	}
	return nil
}

// copySparse copies a file and leaves its holes holes, so that a file of terabytes that takes no room takes none.
func copySparse(dst, src *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := src.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole is left
		}
		if err != nil {
			return err
		}
		end, err := src.Seek(start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if at, err = end, copyRange(dst, src, start, end); err != nil {
			return err
		}
	}
	return dst.Truncate(size)
}

func copyRange(dst, src *os.File, start, end int64) error {
	if _, err := src.Seek(start, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Seek(start, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(dst, src, end-start)
	return err
}

func tempName() string { return tempPrefix + rand.Text() }

// sysMode is the inverse of fileMode for permissions.
func sysMode(mode fs.FileMode) uint32 {
	sys := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		sys |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		sys |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		sys |= unix.S_ISVTX
	}
	return sys
}
