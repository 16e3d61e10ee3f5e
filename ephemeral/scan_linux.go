package ephemeral

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Changes compares the layers. It visits what is in the upper, and of the lower only the counterparts and what is below
// directories that the run removed; a file copied up without a difference in bytes or mode is no change. The root itself is
// not looked at.
func (l Layers) Changes() (*Changes, error) {
	s := scan{lower: tree{root: l.Lower}, upper: tree{root: l.Upper, lift: true}, since: l.Since}
	if err := s.dir(branch{merged: true}); err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	for len(s.gone) > 0 {
		dir := s.gone[len(s.gone)-1]
		s.gone = s.gone[:len(s.gone)-1]
		if err := s.below(dir); err != nil {
			return nil, fmt.Errorf("read changes: %w", err)
		}
	}
	slices.SortFunc(s.list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	flagRisks(s.list)
	return &Changes{List: s.list, layers: l}, nil
}

func (l Layers) openUpper(path string) (*os.File, error) {
	return tree{root: l.Upper, lift: true}.openFile(path)
}

func (l Layers) openLower(path string) (*os.File, error) {
	return tree{root: l.Lower}.openFile(path)
}

// scan is one run of Layers.Changes.
type scan struct {
	lower, upper tree
	since        time.Time
	list         []Change
	gone         []string // directories of the lower whose contents are still to be recorded as deleted
}

// branch is a directory of the upper that is still to be read.
type branch struct {
	path   string
	merged bool // the lower has a directory of this name to compare with
	opaque bool // of which nothing shows through
}

// level is a branch while it is open.
type level struct {
	branch
	up  *os.File
	low *os.File // nil unless merged
}

// dir compares a branch. Its descriptors are closed before it descends, so that depth costs none.
func (s *scan) dir(b branch) error {
	up, restore, err := s.upper.openDir(b.path)
	if err != nil {
		return err
	}
	defer restore()
	below, err := s.level(level{branch: b, up: up})
	up.Close()
	if err != nil {
		return err
	}
	for _, sub := range below {
		if err := s.dir(sub); err != nil {
			return err
		}
	}
	return nil
}

// level compares the entries of one directory and returns the directories among them.
func (s *scan) level(lv level) ([]branch, error) {
	lv.opaque = lv.opaque || isOpaque(lv.up)
	if lv.merged {
		low, err := s.openLower(lv.path)
		if err != nil {
			return nil, err
		}
		if low != nil {
			defer low.Close()
			lv.low = low
		}
	}
	names, err := sortedNames(lv.up)
	if err != nil {
		return nil, err
	}
	var below []branch
	for _, name := range names {
		sub, err := s.entry(lv, name)
		if err != nil {
			return nil, err
		}
		if sub != nil {
			below = append(below, *sub)
		}
	}
	if lv.opaque && lv.low != nil {
		return below, s.hidden(lv.path, lv.low, names)
	}
	return below, nil
}

// openLower opens a directory of the lower. A mount point on the host is not what the overlay saw beneath it: nil.
func (s *scan) openLower(path string) (*os.File, error) {
	low, _, err := s.lower.openDir(path)
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	return low, err
}

// entry compares one name of the upper with its counterpart.
func (s *scan) entry(lv level, name string) (*branch, error) {
	path := joinPath(lv.path, name)
	up, err := statIn(int(lv.up.Fd()), name)
	if err != nil || up == nil {
		return nil, err
	}
	if err := checkMarks(lv.up, name, up); err != nil {
		return nil, err
	}
	after, err := entryIn(int(lv.up.Fd()), name, up)
	if err != nil {
		return nil, err
	}
	if isWhiteout(lv.up, name, up) {
		after = nil
	}
	low, before, err := s.counterpart(lv.low, name)
	if err != nil {
		return nil, err
	}
	if len(path) > maxPath {
		if after != nil {
			s.add(Change{Path: path, Kind: Special, Old: before, New: after, was: stampOf(low)})
		}
		return nil, nil
	}
	if err := s.compare(path, before, after, low); err != nil {
		return nil, err
	}
	if !isDir(after) {
		return nil, nil
	}
	return &branch{path: path, merged: isDir(before), opaque: lv.opaque}, nil
}

func (s *scan) counterpart(dir *os.File, name string) (*unix.Stat_t, *Entry, error) {
	if dir == nil {
		return nil, nil, nil
	}
	st, err := statIn(int(dir.Fd()), name)
	if err != nil {
		return nil, nil, err
	}
	e, err := entryIn(int(dir.Fd()), name, st)
	return st, e, err
}

// compare records the change of one path, and all that is gone with a directory.
func (s *scan) compare(path string, before, after *Entry, low *unix.Stat_t) error {
	if before == nil && after == nil {
		return nil // a whiteout over nothing
	}
	kind, err := kindOf(before, after, func() (bool, error) { return s.sameBytes(path) })
	if err != nil {
		return err
	}
	if kind != "" {
		s.add(Change{Path: path, Kind: kind, Old: before, New: after, was: stampOf(low)})
	}
	if isDir(before) && !isDir(after) {
		s.gone = append(s.gone, path)
	}
	return nil
}

// below records everything in a directory of the lower as deleted. What cannot be listed is left to Apply to find.
func (s *scan) below(path string) error {
	low, err := s.openLower(path)
	if low == nil || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer low.Close()
	return s.hidden(path, low, nil)
}

// hidden records the entries of a lower directory that are not among the names as deleted.
func (s *scan) hidden(path string, low *os.File, names []string) error {
	all, err := sortedNames(low)
	if err != nil {
		return err
	}
	for _, name := range all {
		child := joinPath(path, name)
		if _, found := slices.BinarySearch(names, name); found || len(child) > maxPath {
			continue
		}
		st, before, err := s.counterpart(low, name)
		if err != nil {
			return err
		}
		if err := s.compare(child, before, nil, st); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) add(c Change) {
	// A directory's times change with its entries, which are looked at themselves.
	if c.Old != nil && !isDir(c.Old) && !s.since.IsZero() {
		c.HostChanged = c.was.ctime > s.since.UnixNano()
	}
	s.list = append(s.list, c)
}

func (s *scan) sameBytes(path string) (bool, error) {
	up, err := s.upper.openFile(path)
	if err != nil {
		return false, err
	}
	defer up.Close()
	low, err := s.lower.openFile(path)
	if errors.Is(err, unix.EACCES) || errors.Is(err, errNotRegular) {
		return false, nil // the run could not read it either, so it wrote another
	}
	if err != nil {
		return false, err
	}
	defer low.Close()
	return sameContent(up, low)
}

// sameContent reads two streams as far as they agree.
func sameContent(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if n != m || string(bufA[:n]) != string(bufB[:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if errA != nil {
			return true, nil
		}
	}
}
