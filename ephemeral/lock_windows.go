package ephemeral

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// tryLock is an error: Windows has no sandbox, so it has no run directories.
func tryLock(*os.File) (bool, error) {
	return false, fmt.Errorf("run directory: %w", errors.ErrUnsupported)
}

// isOurs reports false, so that no directory is taken for one.
func isOurs(fs.FileInfo) bool { return false }

func isRoots(fs.FileInfo) bool { return false }
