package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Reap removes the directories of runs whose process is gone, and returns their paths. base is as for NewRun; with "" it
// looks at every place that NewRun can have used. It is safe beside runs that start, end or reap at the same time. What
// cannot be removed is in the error, and the others are removed all the same.
func Reap(base string) (removed []string, err error) {
	places, err := registryPaths(base)
	if err != nil {
		return nil, fmt.Errorf("reap run directories: %w", err)
	}
	var errs []error
	for _, place := range places {
		paths, err := reapRegistry(place)
		removed = append(removed, paths...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("reap run directories: %w", err)
	}
	return removed, nil
}

func reapRegistry(path string) (removed []string, err error) {
	registry, err := openRegistry(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	ids, err := runIDs(registry)
	errs := []error{err}
	for _, id := range ids {
		gone, err := reapOne(registry, id)
		if gone {
			removed = append(removed, filepath.Join(path, id))
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func runIDs(registry *os.Root) ([]string, error) {
	dir, err := registry.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	var ids []string
	for _, e := range entries {
		if isID(e.Name()) && e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// reapOne removes a directory that it could lock. Permission bits that keep it from opening it are set.
func reapOne(registry *os.Root, id string) (gone bool, err error) {
	lock, err := lockDir(registry, id)
	if errors.Is(err, fs.ErrPermission) {
		if err := registry.Chmod(id, 0o700); err != nil {
			return false, err
		}
		lock, err = lockDir(registry, id)
	}
	if lock == nil {
		return false, err
	}
	defer lock.Close()
	if err := removeTree(registry, id); err != nil {
		return false, err
	}
	return true, nil
}
