package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// maxRemoveErrors is how many of the files that could not be removed an error names.
const maxRemoveErrors = 8

// removeTree removes what is in the directory name of root, and the directory. Links are removed, not followed; a
// directory without permission bits is given them; depth costs neither stack nor descriptors, because directories are
// moved up to the top before they are emptied, so that no path is longer than two names. What cannot be removed, an
// immutable file or a mount point, stays and is named in the error.
func removeTree(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return root.Remove(name)
	}
	top, err := openTop(root, name, info)
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: top}
	r.empty(".")
	for len(r.queue) > 0 {
		dir := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		r.empty(dir)
		r.note(top.Remove(dir))
	}
	if len(r.errs) > 0 {
		return fmt.Errorf("remove %s: %d left: %w", name, r.failed, errors.Join(r.errs...))
	}
	return root.Remove(name)
}

// openTop opens a directory and makes sure that it is the one that info is about, and no link's target.
func openTop(root *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	if info.Mode()&0o700 != 0o700 {
		if err := root.Chmod(name, 0o700); err != nil {
			return nil, err
		}
	}
	top, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := top.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("remove %s: it is another directory now", name)
	}
	if err != nil {
		top.Close()
		return nil, err
	}
	return top, nil
}

// remover is one run of removeTree.
type remover struct {
	top    *os.Root
	queue  []string // directories in top that are still to be emptied
	moved  int
	errs   []error
	failed int
}

// empty removes the files of a directory and moves its directories to the top. In the top itself they are there already.
func (r *remover) empty(dir string) {
	f, err := r.open(dir)
	if err != nil {
		r.note(err)
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	r.note(err)
	for _, e := range entries {
		if e.IsDir() {
			r.lift(dir, e.Name())
		} else {
			r.note(r.top.Remove(dir + "/" + e.Name()))
		}
	}
}

// open opens a directory, and first permits that.
func (r *remover) open(dir string) (*os.File, error) {
	if info, err := r.top.Lstat(dir); err == nil && info.Mode()&0o700 != 0o700 {
		if err := r.top.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return r.top.Open(dir)
}

// lift moves a directory to the top, under a name that is free.
func (r *remover) lift(dir, name string) {
	if dir == "." {
		r.queue = append(r.queue, name)
		return
	}
	from := dir + "/" + name
	// Moving a directory writes its ".." entry: rename(2) wants write permission on it.
	if info, err := r.top.Lstat(from); err == nil && info.Mode()&0o700 != 0o700 {
		r.note(r.top.Chmod(from, 0o700))
	}
	for {
		to := "sandboxrun-" + strconv.Itoa(r.moved)
		r.moved++
		if _, err := r.top.Lstat(to); err == nil {
			continue
		}
		if err := r.top.Rename(from, to); err != nil {
			r.note(err)
			return
		}
		r.queue = append(r.queue, to)
		return
	}
}

func (r *remover) note(err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.failed++
	if len(r.errs) < maxRemoveErrors {
		r.errs = append(r.errs, err)
	}
}
