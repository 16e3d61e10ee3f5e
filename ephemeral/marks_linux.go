package ephemeral

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// isOpaque reports whether nothing of the lower shows through a directory. The value "x" does not say so: it announces
// whiteouts that are files. See Documentation/filesystems/overlayfs.rst, "Whiteouts and opaque directories".
func isOpaque(dir *os.File) bool {
	var value [1]byte
	n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// isWhiteout reports whether a name of the upper says that there is no such file.
func isWhiteout(dir *os.File, name string, st *unix.Stat_t) bool {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		return st.Rdev == 0
	case unix.S_IFREG:
		return st.Size == 0 && hasMark(dir, name, "user.overlay.whiteout")
	}
	return false
}

// checkMarks refuses what only mounts with redirect_dir or metacopy make: directories that continue another one of the
// lower, and files whose bytes are still there. Taken for what they look like they would be wrong.
func checkMarks(dir *os.File, name string, st *unix.Stat_t) error {
	mark := ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mark = "user.overlay.redirect"
	case unix.S_IFREG:
		mark = "user.overlay.metacopy"
	}
	if mark != "" && hasMark(dir, name, mark) {
		return fmt.Errorf("%q carries %s: the overlay was mounted with redirect_dir or metacopy", name, mark)
	}
	return nil
}

func hasMark(dir *os.File, name, mark string) bool {
	_, err := unix.Lgetxattr("/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/"+name, mark, nil)
	return err == nil
}
