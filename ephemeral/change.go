package ephemeral

import (
	"io/fs"
	"os"
	"strings"
	"time"
)

// Kind says what a run did to one path.
type Kind string

// The kinds of changes.
const (
	Created     Kind = "created"  // a file or directory that was not there
	Modified    Kind = "modified" // a file's bytes, and perhaps its mode
	Deleted     Kind = "deleted"  // anything that is gone
	ModeChanged Kind = "mode"     // permission bits alone
	Linked      Kind = "link"     // a symlink, new or with another target
	Retyped     Kind = "type"     // a directory became a file, a file a symlink, and so on
	Special     Kind = "special"  // a FIFO, socket or device, or a path longer than PATH_MAX; never applied, never in a patch
)

// Entry is a file as one layer has it. Its owner, times and extended attributes are not looked at.
type Entry struct {
	Mode   fs.FileMode // type, permission, setuid, setgid and sticky bits
	Size   int64       // of a regular file
	Target string      // of a symlink
}

// Change is one path that differs between the lower directory and the merged view.
type Change struct {
	// Path is relative and slash-separated. It is bytes: newlines and invalid UTF-8 happen.
	Path string
	Kind Kind
	// Old and New are the entry before and after the run; nil where there is none.
	Old, New *Entry
	// Risk says how the change can run code on the host later; "" when no rule knows a way.
	Risk string
	// HostChanged says that the host changed the lower entry after Layers.Since.
	HostChanged bool

	was stamp // the lower entry when Changes was computed
}

// stamp identifies one state of a host file. The zero stamp is that of a file which is not there.
type stamp struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime int64 // nanoseconds
}

// Layers are the two directories of an overlay mount after its run. All processes that could write to the upper must be
// gone. The mount need not exist any more: both directories are reached through the descriptors, which stay the caller's.
type Layers struct {
	Lower *os.File // the host's directory; only ever read
	Upper *os.File // overlayfs upper directory of a mount with userxattr; files in it that are unreadable are made readable for a moment
	// Since is when the run started. An entry of Lower that both the run and, later than this, the host changed is
	// marked HostChanged. Zero: what happens on the host between start and Changes goes unnoticed.
	Since time.Time
}

// Changes is what a run changed. WritePatch and Apply read file contents from the layers, which must still be open.
type Changes struct {
	// List is sorted by path, bytewise. A caller may remove elements; a directory's removal takes those below it along.
	List []Change

	layers Layers
}

// Open opens the new content of a regular file.
func (c *Changes) Open(change Change) (*os.File, error) {
	return c.layers.openUpper(change.Path)
}

// kindOf compares two entries; "" when they are the same. sameBytes is asked only for regular files of equal size.
func kindOf(before, after *Entry, sameBytes func() (bool, error)) (Kind, error) {
	switch {
	case after == nil:
		return Deleted, nil
	case isSpecial(after.Mode):
		if before != nil && before.Mode == after.Mode {
			return "", nil // a copied-up FIFO
		}
		return Special, nil
	case before == nil && after.Mode.Type() == fs.ModeSymlink:
		return Linked, nil
	case before == nil:
		return Created, nil
	case before.Mode.Type() != after.Mode.Type():
		return Retyped, nil
	}
	return kindWithin(before, after, sameBytes)
}

// kindWithin compares two entries of one type.
func kindWithin(before, after *Entry, sameBytes func() (bool, error)) (Kind, error) {
	switch after.Mode.Type() {
	case fs.ModeSymlink:
		if before.Target != after.Target {
			return Linked, nil
		}
		return "", nil // link modes mean nothing
	case 0:
		same, err := before.Size == after.Size, error(nil)
		if same {
			same, err = sameBytes()
		}
		if err != nil || !same {
			return Modified, err
		}
	}
	if before.Mode != after.Mode {
		return ModeChanged, nil
	}
	return "", nil
}

// isSpecial reports whether a mode is of anything but a regular file, directory or symlink.
func isSpecial(mode fs.FileMode) bool {
	return mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0
}

func isDir(e *Entry) bool { return e != nil && e.Mode.IsDir() }

func isLink(e *Entry) bool { return e != nil && e.Mode.Type() == fs.ModeSymlink }

// splitPath divides a relative path into its directory, "" for the top, and its name.
func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// joinPath is the inverse of splitPath.
func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// validPath reports whether a path stays below the directory that it is relative to, taken literally.
func validPath(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return false
		}
	}
	return true
}
