//go:build !linux

package ephemeral

import (
	"errors"
	"fmt"
	"os"
)

var errNoOverlay = fmt.Errorf("overlay workspace: %w", errors.ErrUnsupported)

// Changes is for Linux, which has overlayfs; elsewhere it is an error that wraps errors.ErrUnsupported.
func (l Layers) Changes() (*Changes, error) { return nil, errNoOverlay }

func (l Layers) openUpper(string) (*os.File, error) { return nil, errNoOverlay }

func (l Layers) openLower(string) (*os.File, error) { return nil, errNoOverlay }

// Apply is for Linux; elsewhere it is an error that wraps errors.ErrUnsupported.
func (c *Changes) Apply(*os.File, ApplyOptions) (*Applied, error) { return nil, errNoOverlay }
