package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// checker decides, before anything is written, which changes can be applied.
type checker struct {
	layers  Layers
	target  tree
	inPlace bool // the target is the lower directory itself
	guard   *guard

	kept    map[string]string // paths that stay what they are, and why
	newDirs map[string]bool   // directories that will be there
	removed map[string]bool   // paths that will not
	steps   []step
	skipped []Skip
}

func newChecker(c *Changes, target *os.File, opts ApplyOptions) (*checker, error) {
	guard, err := newGuard(opts)
	if err != nil {
		return nil, err
	}
	here, err := target.Stat()
	if err != nil {
		return nil, err
	}
	lower, err := c.layers.Lower.Stat()
	if err != nil {
		return nil, err
	}
	return &checker{
		layers: c.layers, target: tree{root: target}, inPlace: os.SameFile(here, lower),
		guard: guard,
		kept:  make(map[string]string), newDirs: make(map[string]bool), removed: make(map[string]bool),
	}, nil
}

// check fills steps and skipped. It fails on what cannot be a result of Layers.Changes.
func (k *checker) check(list []Change) error {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	for _, c := range list {
		if !validPath(c.Path) {
			return fmt.Errorf("path %q does not stay in the directory", c.Path)
		}
		if err := k.one(c); err != nil {
			return err
		}
	}
	return k.removals()
}

func (k *checker) one(c Change) error {
	if reason := k.unwanted(c); reason != "" {
		k.skip(Skip{Change: c, Reason: reason})
		return nil
	}
	at, conflict, err := k.host(c)
	if err != nil {
		return err
	}
	if conflict != "" {
		k.skip(Skip{Change: c, Reason: conflict, Conflict: true})
		return nil
	}
	k.newDirs[c.Path] = isDir(c.New)
	k.removed[c.Path] = c.New == nil
	k.steps = append(k.steps, step{Change: c, at: at})
	return nil
}

func (k *checker) skip(s Skip) {
	if s.Kind != ModeChanged {
		k.kept[s.Path] = s.Reason
	}
	k.skipped = append(k.skipped, s)
}

// unwanted returns why a change is not to be applied, whatever the host looks like.
func (k *checker) unwanted(c Change) string {
	if c.Kind == Special {
		return "special file"
	}
	if reason := k.guard.protects(c); reason != "" {
		return reason
	}
	for dir, _ := splitPath(c.Path); dir != ""; dir, _ = splitPath(dir) {
		if reason, ok := k.kept[dir]; ok {
			return fmt.Sprintf("%s is not applied: %s", quoteName(dir), reason)
		}
	}
	return ""
}

// host compares the host's entry with the one that the run started from.
func (k *checker) host(c Change) (at stamp, conflict string, err error) {
	if c.HostChanged {
		return stamp{}, "the host changed it during the run", nil
	}
	dir, name := splitPath(c.Path)
	parent, err := k.target.lookup(dir)
	if err != nil {
		return k.noParent(c, dir, err)
	}
	defer parent.close()
	st, err := statIn(int(parent), name)
	if err != nil {
		return stamp{}, "", err
	}
	at = stampOf(st)
	switch {
	case st == nil && c.Old == nil:
		if up, err := parent.stat(); err != nil || up.Mode&unix.S_IFMT != unix.S_IFDIR && !k.newDirs[dir] {
			return at, "its directory is no directory any more", err
		}
		return at, "", nil
	case st == nil:
		return at, "the host removed it", nil
	case c.Old == nil:
		return at, "the host made one too", nil
	}
	same, err := k.unchanged(c, int(parent), name, st)
	if err == nil && !same {
		conflict = "the host changed it since"
	}
	return at, conflict, err
}

// noParent decides about a change in a directory that the host does not have, or that a link or mount stands for.
func (k *checker) noParent(c Change, dir string, err error) (stamp, string, error) {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV} {
		if !errors.Is(err, gone) {
			continue
		}
		if c.Old == nil && k.newDirs[dir] && gone != unix.EXDEV {
			return stamp{}, "", nil
		}
		return stamp{}, "its directory is no directory of the host any more", nil
	}
	return stamp{}, "", err
}

// unchanged compares with the recorded state of the same file or, in another directory, with the lower's content.
func (k *checker) unchanged(c Change, dir int, name string, st *unix.Stat_t) (bool, error) {
	if k.inPlace {
		return c.was.same(stampOf(st)), nil
	}
	e, err := entryIn(dir, name, st)
	if err != nil {
		return false, err
	}
	kind, err := kindOf(c.Old, e, func() (bool, error) {
		theirs, err := k.target.openFile(c.Path)
		if err != nil {
			return false, err
		}
		defer theirs.Close()
		ours, err := k.layers.openLower(c.Path)
		if err != nil {
			return false, err
		}
		defer ours.Close()
		return sameContent(theirs, ours)
	})
	return kind == "", err
}

// removals makes sure that every directory to be removed will be empty, deepest first.
func (k *checker) removals() error {
	var steps []step
	for _, s := range slices.Backward(k.steps) {
		skip, err := k.removal(s)
		if err != nil {
			return err
		}
		if skip == nil {
			steps = append(steps, s)
			continue
		}
		delete(k.removed, s.Path)
		k.skip(*skip)
	}
	slices.Reverse(steps)
	k.steps = steps
	slices.SortFunc(k.skipped, func(a, b Skip) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// removal returns why a directory has to stay; nil when it need not.
func (k *checker) removal(s step) (*Skip, error) {
	if !isDir(s.Old) || isDir(s.New) {
		return nil, nil
	}
	dir, _, err := k.target.openDir(s.Path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := sortedNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		child := joinPath(s.Path, name)
		if k.removed[child] {
			continue
		}
		if reason, ok := k.kept[child]; ok {
			return &Skip{Change: s.Change, Reason: fmt.Sprintf("%s stays: %s", quoteName(child), reason)}, nil
		}
		return &Skip{Change: s.Change, Reason: fmt.Sprintf("the host added %s", quoteName(child)), Conflict: true}, nil
	}
	return nil, nil
}
