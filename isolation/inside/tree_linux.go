package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// build makes the tree in Root, node by node.
func (z *zero) build() error {
	unix.Umask(0)
	defer unix.Umask(0o022)
	for i, n := range z.orders.Tree {
		if err := z.place(fmt.Sprintf("%s/%d", Scratch, i), Root+n.Path, n); err != nil {
			return fmt.Errorf("%s: %w", n.Path, err)
		}
	}
	return nil
}

// place makes one node at path. What it needs outside the tree is called own, in the scratch.
func (z *zero) place(own, path string, n Node) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch n.Kind {
	case Dir:
		return os.MkdirAll(path, fileMode(n.Mode))
	case File:
		return os.WriteFile(path, n.Data, fileMode(n.Mode))
	case Link:
		return os.Symlink(string(n.Data), path)
	case Empty:
		return attachNew(own, path, n, os.Mkdir(own, fileMode(n.Mode)))
	case Sealed:
		return attachNew(own, path, n, os.WriteFile(own, n.Data, 0o444))
	case Mask:
		return attachMask(own, path, n)
	case Terminals:
		return errors.Join(os.Mkdir(path, 0o755), mountTerminals(path))
	case Bind, Device:
		return attach(z.trees[n.Source], path, n.Source.Dir)
	case Overlay:
		return z.mountOverlay(own, path, n)
	}
	return fmt.Errorf("unknown kind %q", n.Kind)
}

func fileMode(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	if mode&unix.S_ISVTX != 0 {
		m |= os.ModeSticky
	}
	return m
}

// mountTerminals mounts a devpts without the terminals of the host; see Documentation/filesystems/devpts.rst.
func mountTerminals(path string) error {
	return unix.Mount("devpts", path, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
}

// attach mounts a detached tree at path, which it makes where it is not there.
func attach(tree int, path string, dir bool) error {
	var err error
	if dir {
		err = os.MkdirAll(path, 0o755)
	} else if _, err = os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// attachNew mounts what was just made in the scratch, unless making it ended in err.
func attachNew(own, path string, n Node, err error) error {
	if err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, own, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	if err := restrict(tree, n.Writable, false); err != nil {
		return err
	}
	return attach(tree, path, n.Kind == Empty || n.Source != nil && n.Source.Dir)
}

// attachMask covers path by something empty that can be neither read nor listed, nor, being read-only, be given back its
// permissions.
func attachMask(own, path string, n Node) error {
	if n.Source.Dir {
		return attachNew(own, path, n, os.Mkdir(own, 0))
	}
	return attachNew(own, path, n, os.WriteFile(own, nil, 0))
}

// mountOverlay shows the lower directory through an upper one.
func (z *zero) mountOverlay(own, path string, n Node) error {
	lower, store := own+"-lower", own
	if err := attach(z.trees[n.Source], lower, true); err != nil {
		return err
	}
	if n.Upper == nil {
		if err := os.Mkdir(store, 0o700); err != nil {
			return err
		}
	} else if err := attach(z.trees[n.Upper], store, true); err != nil {
		return err
	}
	upper, err := makeUpper(lower, store)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s/work,userxattr", lower, upper, store)
	// MS_NODEV, MS_NOSUID: a device node or set-user-ID file of the workspace must not work; see mount(2).
	if err := unix.Mount("overlay", path, "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	fd, err := unix.Open(upper, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	z.uppers = append(z.uppers, fd)
	return err
}

// makeUpper makes upper and work directory in store. The root of the view takes its mode from the upper directory.
func makeUpper(lower, store string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		return "", err
	}
	upper := store + "/upper"
	if err := os.Mkdir(store+"/work", 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(upper, fileMode(st.Mode)); err != nil {
		return "", err
	}
	if err := unix.Setxattr(upper, "user.sandboxrun", []byte("1"), 0); errors.Is(err, unix.ENOTSUP) {
		return "", errors.New(ErrNoUserXattr)
	}
	return upper, nil
}
