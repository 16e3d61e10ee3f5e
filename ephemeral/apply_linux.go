package ephemeral

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Apply writes the changes into a directory of the host: the lower, or another directory that still looks like it. All is
// checked before anything is written. The directory is left neither through links nor through mounts. A file is replaced
// whole, by a rename. Skipped are special files and protected paths; and, as conflicts, entries that are not what they
// were when the changes were computed: the same file with the same times in the lower itself, the same type, mode and
// bytes elsewhere. The check is repeated just before a file is replaced; a write by the host within the same microseconds is lost.
//
// Deletions come last, deepest first. Modes lose setuid, setgid and sticky bits that the host's file did not have; a file
// with new bytes loses them always. Replaced files keep their group, and their owner when the caller is root, whose new
// files belong to the owner of their directory. ACLs, other extended attributes, and hard links between replaced files are
// not kept.
//
// On an error, and there may be one half-way, Applied says what was done; no temporary file remains. The caller must not
// run two at once on a directory.
func (c *Changes) Apply(target *os.File, opts ApplyOptions) (*Applied, error) {
	k, err := newChecker(c, target, opts)
	if err != nil {
		return nil, fmt.Errorf("apply changes: %w", err)
	}
	if err := k.check(c.List); err != nil {
		return nil, fmt.Errorf("apply changes: %w", err)
	}
	out := &Applied{Skipped: k.skipped}
	if conflicts := conflictsIn(k.skipped); len(conflicts) > 0 && !opts.Partial {
		return out, &ConflictError{Conflicts: conflicts}
	}
	a := applier{target: k.target, layers: c.layers, sync: opts.Sync, out: out, modes: make(map[string]uint32)}
	err = errors.Join(a.all(k.steps), a.setModes())
	if err != nil {
		return out, fmt.Errorf("apply changes: %w", err)
	}
	return out, nil
}

func conflictsIn(skipped []Skip) []Skip {
	var list []Skip
	for _, s := range skipped {
		if s.Conflict {
			list = append(list, s)
		}
	}
	return list
}

// applier carries out checked steps.
type applier struct {
	target tree
	layers Layers
	sync   bool
	out    *Applied
	modes  map[string]uint32 // of directories, to be set when nothing is to be written into them any more
}

// all does what makes things first, then what removes, then what takes the place of removed directories.
func (a *applier) all(steps []step) error {
	var makes, removes, replaces []step
	for _, s := range steps {
		switch {
		case s.New == nil:
			removes = append(removes, s)
		case isDir(s.Old) && !isDir(s.New):
			replaces = append(replaces, s)
		default:
			makes = append(makes, s)
		}
	}
	slices.Reverse(removes)
	for _, s := range slices.Concat(makes, removes, replaces) {
		if err := a.step(s); err != nil {
			return fmt.Errorf("%q: %w", s.Path, err)
		}
		a.out.Done = append(a.out.Done, s.Change)
		if s.strips() {
			a.out.Stripped = append(a.out.Stripped, s.Path)
		}
	}
	return nil
}

const specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// strips reports whether hostMode takes something away. Setgid on a directory is the host's to hand down.
func (s step) strips() bool {
	if s.New == nil || isLink(s.New) {
		return false
	}
	lost := s.New.Mode &^ s.hostMode() & specialBits
	return lost != 0 && !(isDir(s.New) && lost == fs.ModeSetgid)
}

// hostMode is the mode that the host's entry gets: permission bits of the new one, and of the others those that the host's
// own already has, unless its bytes or type are new.
func (s step) hostMode() fs.FileMode {
	mode := s.New.Mode.Perm()
	if s.Old != nil && s.Kind == ModeChanged {
		mode |= s.New.Mode & s.Old.Mode & specialBits
	}
	return mode
}

// step carries out one change in its directory.
func (a *applier) step(s step) error {
	dir, name := splitPath(s.Path)
	parent, err := a.parent(dir)
	if err != nil {
		return err
	}
	defer parent.close()
	p := place{applier: a, dir: parent, name: name, step: s}
	switch {
	case s.New == nil:
		return p.remove(isDir(s.Old))
	case s.Kind == ModeChanged:
		return p.chmod()
	case isDir(s.New):
		return p.makeDir()
	}
	if isDir(s.Old) {
		if err := p.remove(true); err != nil {
			return err
		}
		p.at = stamp{}
	}
	if isLink(s.New) {
		return p.makeLink()
	}
	return p.makeFile()
}

// parent finds a directory to write into. One of the caller's own that forbids it allows it until setModes.
func (a *applier) parent(path string) (handle, error) {
	h, err := a.target.lookup(path)
	if err != nil {
		return -1, err
	}
	st, err := h.stat()
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err == nil && st.Mode&0o300 != 0o300 && os.Geteuid() != 0 && int(st.Uid) == os.Geteuid() {
		if _, ok := a.modes[path]; !ok {
			a.modes[path] = st.Mode & 0o7777
		}
		err = unix.Chmod(h.proc(), st.Mode&0o7777|0o300)
	}
	if err != nil {
		h.close()
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return h, nil
}

// setModes gives directories their modes, deepest first.
func (a *applier) setModes() error {
	var errs []error
	paths := slices.SortedFunc(maps.Keys(a.modes), func(x, y string) int { return cmp.Compare(y, x) })
	for _, path := range paths {
		if err := a.target.chmod(path, a.modes[path]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
