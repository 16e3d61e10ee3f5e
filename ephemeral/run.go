package ephemeral

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Run is the directory of one run, with mode 0700. While a Run is open the directory is locked, and Reap leaves it alone;
// the kernel drops the lock when the process ends, however it ends.
type Run struct {
	path     string
	registry *os.Root
	lock     *os.File

	mu     sync.Mutex
	closed bool
}

// NewRun makes <base>/sandboxrun/<id>, where id is random. base must be a directory of the caller's, no link, that nobody
// else may write to. In a sticky directory that others may write to, such as /tmp, the directory's name is
// sandboxrun-<uid>. "" is $XDG_RUNTIME_DIR when that is set and exists, else the temp directory.
func NewRun(base string) (*Run, error) {
	places, err := registryPaths(base)
	if err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	registry, err := openRegistry(places[0], true)
	if err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	for range 100 { // a Reap can take a directory before it is locked, and the next attempt has another name
		r, err := claim(registry, places[0])
		if r != nil {
			return r, nil
		}
		if err != nil {
			registry.Close()
			return nil, fmt.Errorf("make run directory: %w", err)
		}
	}
	registry.Close()
	return nil, errors.New("make run directory: each one was taken away before it could be locked")
}

// Path is the absolute path of the directory.
func (r *Run) Path() string { return r.path }

// ID is the name of the directory: 20 letters and digits.
func (r *Run) ID() string { return filepath.Base(r.path) }

// Close removes the directory and all in it, and gives up the lock. Files that cannot be removed are in the error, and
// stay for a later Reap. Further calls do nothing.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	err := errors.Join(removeTree(r.registry, r.ID()), r.lock.Close(), r.registry.Close())
	if err != nil {
		return fmt.Errorf("close run directory: %w", err)
	}
	return nil
}

// claim makes and locks one directory; nil without an error when somebody was faster.
func claim(registry *os.Root, path string) (*Run, error) {
	id := newID()
	if err := registry.Mkdir(id, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(registry, id)
	if lock == nil {
		return nil, err
	}
	return &Run{path: filepath.Join(path, id), registry: registry, lock: lock}, nil
}

// lockDir locks a directory of the registry and makes sure that its name still means it; nil without an error when
// somebody else has it, or removed it.
func lockDir(registry *os.Root, id string) (*os.File, error) {
	dir, err := registry.Open(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(dir)
	if err == nil && locked {
		locked, err = stillThere(registry, id, dir)
	}
	if err != nil || !locked {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func stillThere(registry *os.Root, id string, dir *os.File) (bool, error) {
	named, err := registry.Lstat(id)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := dir.Stat()
	return err == nil && os.SameFile(named, opened), err
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newID returns 96 random bits.
func newID() string {
	var bits [12]byte
	rand.Read(bits[:]) // never fails: see crypto/rand
	return strings.ToLower(idEncoding.EncodeToString(bits[:]))
}

func isID(name string) bool {
	return len(name) == 20 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// registryPaths are the directories that hold run directories; the first is the one for new runs.
func registryPaths(base string) ([]string, error) {
	if base != "" {
		path, err := registryPath(base)
		return []string{path}, err
	}
	temp, err := filepath.EvalSymlinks(os.TempDir()) // /tmp is a link on macOS
	if err != nil {
		return nil, err
	}
	fallback, err := registryPath(temp)
	if err != nil {
		return nil, err
	}
	session := os.Getenv("XDG_RUNTIME_DIR")
	if _, err := os.Lstat(session); session == "" || errors.Is(err, fs.ErrNotExist) {
		return []string{fallback}, nil
	}
	path, err := registryPath(session)
	return []string{path, fallback}, err
}

func registryPath(base string) (string, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	if info.IsDir() && info.Mode()&fs.ModeSticky != 0 && info.Mode()&0o022 != 0 {
		if !isOurs(info) && !isRoots(info) {
			return "", fmt.Errorf("%s belongs to another user, who can remove what we put there", base)
		}
		return filepath.Join(base, "sandboxrun-"+strconv.Itoa(os.Geteuid())), nil
	}
	return filepath.Join(base, "sandboxrun"), checkOurs(base, info)
}

// openRegistry opens a directory that is ours alone.
func openRegistry(path string, create bool) (*os.Root, error) {
	if create {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := os.Lstat(path)
	if err == nil {
		err = checkOurs(path, info)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		root.Close()
		return nil, errors.Join(err, fmt.Errorf("%s was replaced while it was opened", path))
	}
	return root, nil
}

// checkOurs refuses a directory in which somebody else could put, or has put, something in our place.
func checkOurs(path string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link", path)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case !isOurs(info):
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others: mode %04o", path, info.Mode().Perm())
	}
	return nil
}
