//go:build unix

package ephemeral

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// tryLock locks an open directory until the descriptor is closed; false when another descriptor has the lock. Go opens files
// with O_CLOEXEC, so that no program that the process starts keeps the lock. See flock(2).
func tryLock(dir *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &fs.PathError{Op: "flock", Path: dir.Name(), Err: err}
		}
	}
}

// isOurs reports whether the caller's user owns a file.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// isRoots reports whether root owns a file.
func isRoots(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
