package ephemeral

import (
	"fmt"
)

// ApplyOptions say what Apply may do. The zero value is the most careful.
type ApplyOptions struct {
	// Protected are patterns, as in ParsePatterns, of paths to leave alone. nil is {"default"}; empty but not nil, nothing.
	Protected []string
	// Named are patterns of protected paths to apply all the same.
	Named []string
	// Partial applies what it can when the host changed some of the files; without it nothing is applied then.
	Partial bool
	// Sync waits for the disk after each file.
	Sync bool
}

// Applied is what became of the changes.
type Applied struct {
	Done    []Change // in the order of being done
	Skipped []Skip   // by path
	// Stripped are the paths, among those of Done, whose setuid, setgid or sticky bits were not given to the host's file.
	Stripped []string
}

// Skip is a change that was not applied.
type Skip struct {
	Change
	Reason string
	// Conflict says that the host changed the file, so that applying would have lost that.
	Conflict bool
}

// ConflictError is Apply's error when the host changed files that the run changed too, and ApplyOptions.Partial is not set.
// Nothing has been written then.
type ConflictError struct {
	Conflicts []Skip
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	if n := len(e.Conflicts) - 1; n > 0 {
		return fmt.Sprintf("apply changes: %q: %s (and %d more)", first.Path, first.Reason, n)
	}
	return fmt.Sprintf("apply changes: %q: %s", first.Path, first.Reason)
}

// step is a change that passed every check, with the host's entry as it was then.
type step struct {
	Change
	at stamp
}

const (
	typeBits = 0o170000 // S_IFMT
	dirBits  = 0o040000 // S_IFDIR
)

func (a stamp) isDir() bool { return a.mode&typeBits == dirBits }

// same compares two states of a host file. A directory's size and times change with its entries, and do not count.
func (a stamp) same(b stamp) bool {
	if a.isDir() && b.isDir() {
		return a.dev == b.dev && a.ino == b.ino && a.mode == b.mode
	}
	return a == b
}

// sameUnderway is same as far as Apply's own work leaves things alone: with another name of the same file replaced, ctime
// moves, and a directory that forbids changes allows them for a while.
func (a stamp) sameUnderway(b stamp) bool {
	a.ctime, b.ctime = 0, 0
	if a.isDir() && b.isDir() {
		a.mode, b.mode = dirBits, dirBits
	}
	return a.same(b)
}
