package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Home is an agent's home directory as a value: its files, in the order of being made.
type Home []HomeFile

// HomeFile is one file of a Home.
type HomeFile struct {
	// Path is relative and slash-separated. Directories on the way are made with mode 0700.
	Path string
	// Mode holds permission bits; 0 is 0600, for a directory 0700. With fs.ModeDir it is a directory, and Data is empty.
	Mode fs.FileMode
	Data []byte
}

// Create makes a directory "claude-agent-…" with mode 0700 in parent, "" being the temp directory, and the files in it. It
// is for platforms without namespaces; elsewhere a run makes the same files in a memory of its own. cleanup removes the
// directory whatever became of it, and may be called again. After an error nothing is left, and cleanup is nil.
func (h Home) Create(parent string) (dir string, cleanup func() error, err error) {
	dir, err = os.MkdirTemp(parent, "claude-agent-")
	if err != nil {
		return "", nil, fmt.Errorf("create home: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, fmt.Errorf("create home: %w", err)
	}
	cleanup = removeOnce(dir)
	if err := h.fill(dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("create home: %w", err), cleanup())
	}
	return dir, cleanup, nil
}

// removeOnce returns a function that removes a directory until that has succeeded.
func removeOnce(dir string) func() error {
	var mu sync.Mutex
	removed := false
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if removed {
			return nil
		}
		parent, err := os.OpenRoot(filepath.Dir(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove home: %w", err)
		}
		defer parent.Close()
		if err := removeTree(parent, filepath.Base(dir)); err != nil {
			return fmt.Errorf("remove home: %w", err)
		}
		removed = true
		return nil
	}
}

func (h Home) fill(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range h {
		if !validPath(f.Path) || strings.Contains(f.Path, `\`) || f.Mode&^(fs.ModeDir|fs.ModePerm) != 0 {
			return fmt.Errorf("file %q with mode %v is nothing that a home can hold", f.Path, f.Mode)
		}
		if err := f.create(root); err != nil {
			return err
		}
	}
	return nil
}

func (f HomeFile) create(root *os.Root) error {
	perm := f.Mode.Perm()
	if dir, _ := splitPath(f.Path); dir != "" {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if f.Mode.IsDir() {
		if perm == 0 {
			perm = 0o700
		}
		if err := root.MkdirAll(f.Path, 0o700); err != nil {
			return err
		}
		return root.Chmod(f.Path, perm)
	}
	if perm == 0 {
		perm = 0o600
	}
	file, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	return errors.Join(err, file.Chmod(perm), file.Close()) // Chmod, because the umask must not decide
}
