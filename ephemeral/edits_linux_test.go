package ephemeral

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// overlayEdits are what tests do through the merged view, by name, because a child does it.
var overlayEdits = map[string]func(dir string) error{
	"nothing": func(string) error { return nil },
	"every kind": func(dir string) error {
		return errors.Join(
			os.WriteFile(dir+"/created", []byte("new\n"), 0o644),
			os.Mkdir(dir+"/created-dir", 0o750),
			os.WriteFile(dir+"/modified", []byte("one\n2\nthree\n"), 0o644),
			os.Remove(dir+"/deleted"),
			os.RemoveAll(dir+"/deleted-dir"),
			os.Chmod(dir+"/mode", 0o755),
			os.Symlink("modified", dir+"/link-new"),
			os.Remove(dir+"/link"), os.Symlink("there", dir+"/link"),
			os.RemoveAll(dir+"/to-file"), os.WriteFile(dir+"/to-file", []byte("file\n"), 0o644),
			os.Remove(dir+"/to-dir"), os.Mkdir(dir+"/to-dir", 0o755), os.WriteFile(dir+"/to-dir/x", []byte("x\n"), 0o644),
			os.RemoveAll(dir+"/to-link"), os.Symlink("modified", dir+"/to-link"),
			os.RemoveAll(dir+"/again"), os.Mkdir(dir+"/again", 0o755), os.WriteFile(dir+"/again/same", []byte("same\n"), 0o644),
			os.WriteFile(dir+"/copied-up", []byte("same\n"), 0o644),
			os.Chtimes(dir+"/touched", unixEpoch, unixEpoch),
			unix.Mkfifo(dir+"/fifo", 0o600),
		)
	},
	"three": func(dir string) error {
		return errors.Join(
			os.WriteFile(dir+"/50/50", []byte("changed\n"), 0o644),
			os.WriteFile(dir+"/new", []byte("new\n"), 0o644),
			os.Remove(dir+"/20/20"),
		)
	},
	"locked": func(dir string) error {
		return errors.Join(
			os.WriteFile(dir+"/file", []byte("secret\n"), 0o644), os.Chmod(dir+"/file", 0),
			os.MkdirAll(dir+"/d/e", 0o755), os.WriteFile(dir+"/d/e/f", []byte("deep\n"), 0o600),
			os.Chmod(dir+"/d/e/f", 0), os.Chmod(dir+"/d/e", 0), os.Chmod(dir+"/d", 0),
			os.WriteFile(dir+"/host/new", []byte("new\n"), 0o644), os.Chmod(dir+"/host", 0),
		)
	},
	"text": func(dir string) error {
		return errors.Join(
			os.WriteFile(dir+"/1 space", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n11\n12\n"), 0o755),
			os.Remove(dir+"/2-crlf"), os.WriteFile(dir+"/2-crlf", []byte("1\r\n2\r\nthree\r\n"), 0o644),
			os.WriteFile(dir+"/3-noeol", []byte("1\n2"), 0o644),
			os.Remove(dir+"/4-gone"),
			os.WriteFile(dir+"/5-empty", nil, 0o644),
			os.Symlink("a\nb", dir+"/6-link"),
			os.WriteFile(dir+"/7-\"q\"\xff\n", []byte("1\n"), 0o644),
			os.Chmod(dir+"/8-mode", 0o755),
			os.Remove(dir+"/9-type"), os.Symlink("8-mode", dir+"/9-type"),
		)
	},
}

// setFlags sets the ext2 flags of a file, of which one makes it immutable. See ioctl_iflags(2).
func setFlags(path string, flags uint32) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
}
