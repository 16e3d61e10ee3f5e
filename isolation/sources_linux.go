package isolation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/isolation/inside"
	"golang.org/x/sys/unix"
)

// source is a granted path of the host on its way into the sandbox.
type source struct {
	*inside.Source          // as it stands in the orders
	owner          int      // uid
	readOnly       bool     //
	lower          *os.File // of an overlay: the directory, to compare with afterwards
	tree           int      // a detached mount that goes along; -1: stage zero opens the path itself
}

func (s *source) closeTree() {
	if s.tree >= 0 {
		unix.Close(s.tree)
		s.tree = -1
	}
}

func (s *source) closeLower() {
	if s.lower != nil {
		s.lower.Close()
	}
}

// openSources opens every granted path and checks that it still is the object that the plan was made for. When the
// sandbox will be somebody else than its caller, detached mounts go along: stage zero could not reach their files.
func (s *start) openSources() error {
	for i := range s.orders.Tree {
		n := &s.orders.Tree[i]
		if n.Source == nil || n.Source.Ino == 0 || n.Kind == inside.Mask {
			continue
		}
		if err := s.openSource(n.Source, n.Kind == inside.Overlay, n.Kind == inside.Bind && !n.Writable); err != nil {
			return err
		}
		if n.Kind == inside.Overlay && s.plan.OnDisk {
			if err := s.addUpper(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *start) openSource(in *inside.Source, lower, readOnly bool) error {
	src := &source{Source: in, readOnly: readOnly, tree: -1}
	s.sources = append(s.sources, src)
	if err := src.open(lower, s.plan.MapOwner); err != nil {
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	return nil
}

// open checks the path and sets lower and tree, as wanted.
func (s *source) open(lower, tree bool) error {
	fd, err := unix.Open(s.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !s.Is(&st) {
		return errors.New("is not what it was when the plan was made")
	}
	s.owner = int(st.Uid)
	if lower {
		if s.lower, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
			return err
		}
	}
	if tree {
		s.tree, err = inside.CloneMount(fd)
	}
	return err
}

// addUpper gives an overlay on disk a directory below the run's own.
func (s *start) addUpper(n *inside.Node) error {
	if s.runDir == nil {
		run, err := ephemeral.NewRun("")
		if err != nil {
			return err
		}
		s.runDir = run
	}
	dir := fmt.Sprintf("%s/upper%d", s.runDir.Path(), len(s.sources))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if s.plan.MapOwner {
		if err := os.Chown(dir, s.plan.UID, s.plan.GID); err != nil {
			return err
		}
	}
	object, err := Lookup(dir)
	if err != nil {
		return err
	}
	n.Upper = object.source()
	return s.openSource(n.Upper, false, false)
}

// mapOwners makes root's files the sandbox's own, through its mounts only; mount_setattr(2) with MOUNT_ATTR_IDMAP,
// Linux 5.12. The map is that of stage zero's user namespace. Where a file system cannot do it, what is only read stays
// as readable as it is for everybody, and anything else is an error.
func (s *start) mapOwners() error {
	if !s.plan.MapOwner {
		return nil
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", s.cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer ns.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	for _, src := range s.sources {
		if src.tree < 0 || src.owner != 0 {
			continue
		}
		err := unix.MountSetattr(src.tree, "", unix.AT_EMPTY_PATH, &attr)
		if err != nil && !src.readOnly {
			return fmt.Errorf("%s: its file system has no idmapped mounts: %w", src.Path, err)
		}
	}
	return nil
}

func memfdJSON(name string, value any) (*os.File, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return inside.Memfd(name, data)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
