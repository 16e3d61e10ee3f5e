package ephemeral

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var randomNames = []string{
	"a", "b", "c", "dir", "with space", " lead", "trail ", "quo\"te", "new\nline", "tab\t", "ünïcode", "\xff\xfe", "-dash",
	"back\\slash", "x b", "'", "UPPER", "upper", ".hidden", "a-b", "a.b", "\x01\x7f", "日本", "b\r", "...", "~", "$HOME", "*",
}

// randomContent is text in several manners, or binary.
func randomContent(r *rand.Rand) []byte {
	switch r.IntN(10) {
	case 0:
		return nil
	case 1:
		data := make([]byte, r.IntN(3000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return append(data, 0)
	case 2:
		return append(bytes.Repeat([]byte("x"), 8000), 0, '\n') // a NUL byte too late to be binary
	}
	end := []string{"\n", "\r\n", "\n", "\n"}[r.IntN(4)]
	var b strings.Builder
	for range r.IntN(30) {
		fmt.Fprintf(&b, "%s%s", []string{"line", "", "-minus", "+plus", " space ", "@@ -1 +1 @@", "\xff", "diff --git a/x b/x", "end\r"}[r.IntN(9)], end)
	}
	if r.IntN(3) == 0 {
		b.WriteString("last without newline")
	}
	return []byte(b.String())
}

// randomTree fills a directory.
func randomTree(r *rand.Rand, dir string, depth int) error {
	for _, i := range r.Perm(len(randomNames))[:2+r.IntN(6)] {
		path := dir + "/" + randomNames[i]
		var err error
		switch kind := r.IntN(12); {
		case kind < 4 && depth > 0:
			if err = os.Mkdir(path, 0o755); err == nil && r.IntN(6) > 0 {
				err = randomTree(r, path, depth-1)
			}
			if err == nil && r.IntN(5) == 0 {
				err = os.Chmod(path, []fs.FileMode{0o700, 0o555, 0o775}[r.IntN(3)])
			}
		case kind < 6:
			err = os.Symlink(randomTarget(r), path)
		case kind == 6 && r.IntN(4) == 0:
			err = unix.Mkfifo(path, 0o644)
		default:
			err = writeMode(path, randomContent(r), randomMode(r))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func randomMode(r *rand.Rand) fs.FileMode {
	return []fs.FileMode{0o644, 0o644, 0o755, 0o600, 0o444, 0o640}[r.IntN(6)]
}

func randomTarget(r *rand.Rand) string {
	name := randomNames[r.IntN(len(randomNames))]
	return []string{name, "../" + name, "/etc/passwd", "dir/" + name, ".", "../..", "loop"}[r.IntN(7)]
}

func writeMode(path string, data []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// randomEdits changes a tree in some places. Errors that an edit may meet, such as ENOTDIR after another edit, are part of it.
func randomEdits(r *rand.Rand, dir string) error {
	for range 1 + r.IntN(12) {
		path, info := randomPath(r, dir)
		if err := randomEdit(r, path, info); err != nil && !ordinary(err) {
			return err
		}
	}
	if r.IntN(4) == 0 {
		path, info := randomPath(r, dir)
		if info != nil && (info.IsDir() || info.Mode().IsRegular()) {
			return os.Chmod(path, 0)
		}
	}
	return nil
}

func ordinary(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrExist, unix.ENOTDIR, unix.EISDIR, unix.EXDEV, unix.ENOTEMPTY, unix.ELOOP, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// randomPath picks what is there, or a name for something new.
func randomPath(r *rand.Rand, dir string) (string, fs.FileInfo) {
	var all, dirs []string
	dirs = append(dirs, dir)
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != dir {
			all = append(all, path)
			if d.IsDir() {
				dirs = append(dirs, path)
			}
		}
		return nil
	})
	slices.Sort(all)
	slices.Sort(dirs)
	if len(all) == 0 || r.IntN(3) == 0 {
		path := dirs[r.IntN(len(dirs))] + "/" + randomNames[r.IntN(len(randomNames))]
		info, _ := os.Lstat(path)
		return path, info
	}
	path := all[r.IntN(len(all))]
	info, _ := os.Lstat(path)
	return path, info
}

func randomEdit(r *rand.Rand, path string, info fs.FileInfo) error {
	if info != nil && !info.Mode().IsRegular() || r.IntN(4) == 0 {
		return randomReplace(r, path, info)
	}
	if info == nil {
		return writeMode(path, randomContent(r), randomMode(r))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch r.IntN(6) {
	case 0: // copied up, and the same in the end
		return writeMode(path, data, info.Mode())
	case 1:
		return os.Chmod(path, randomMode(r))
	case 2:
		lines := bytes.SplitAfter(data, []byte("\n"))
		lines[r.IntN(len(lines))] = []byte("edited\n")
		return writeMode(path, bytes.Join(lines, nil), info.Mode())
	case 3:
		return writeMode(path, append(data, "appended"...), info.Mode())
	case 4:
		return errors.Join(os.Remove(path), writeMode(path, data, info.Mode()))
	}
	return os.Truncate(path, info.Size()/2)
}

// randomReplace removes, moves, or makes something else of a path.
func randomReplace(r *rand.Rand, path string, info fs.FileInfo) error {
	switch r.IntN(9) {
	case 0:
		return os.RemoveAll(path)
	case 1:
		return os.Rename(path, filepath.Dir(path)+"/"+randomNames[r.IntN(len(randomNames))])
	case 2:
		var epoch [2]unix.Timespec // not by os.Chtimes, which follows links, to /etc/passwd among others
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, epoch[:], unix.AT_SYMLINK_NOFOLLOW)
	case 3:
		if info != nil && info.IsDir() {
			return os.Chmod(path, []fs.FileMode{0o755, 0o700, 0o555}[r.IntN(3)])
		}
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	switch r.IntN(8) {
	case 0:
		return unix.Mkfifo(path, 0o644)
	case 1, 2:
		return os.Symlink(randomTarget(r), path)
	case 3, 4:
		return writeMode(path, randomContent(r), randomMode(r))
	case 5:
		return os.Mkdir(path, 0o755)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return randomTree(r, path, 1)
}
