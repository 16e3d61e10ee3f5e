package ephemeral

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHome(t *testing.T) {
	parent := t.TempDir()
	home := Home{
		{Path: ".claude/settings.json", Data: []byte("{}\n")},
		{Path: ".claude/projects", Mode: fs.ModeDir},
		{Path: "bin/tool", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
	}
	dir, cleanup, err := home.Create(parent)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(filepath.Base(dir), "claude-agent-"))
	for path, want := range map[string]fs.FileMode{
		".": 0o700 | fs.ModeDir, ".claude": 0o700 | fs.ModeDir, ".claude/projects": 0o700 | fs.ModeDir,
		".claude/settings.json": 0o600, "bin/tool": 0o755,
	} {
		info, err := os.Lstat(filepath.Join(dir, path))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode(), path)
	}

	// What an agent leaves behind: links to elsewhere, directories that forbid everything.
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/keep", nil, 0o600))
	require.NoError(t, os.Symlink(outside, dir+"/out"))
	require.NoError(t, os.MkdirAll(dir+"/locked/in", 0o700))
	require.NoError(t, os.WriteFile(dir+"/locked/in/f", nil, 0o000))
	require.NoError(t, os.Chmod(dir+"/locked/in", 0))
	require.NoError(t, os.Chmod(dir+"/locked", 0))
	require.NoError(t, os.Chmod(dir, 0))
	require.NoError(t, cleanup())
	require.NoError(t, cleanup(), "again")
	assert.NoDirExists(t, dir)
	assert.FileExists(t, outside+"/keep")
}

func TestHomeRefuses(t *testing.T) {
	for _, bad := range []HomeFile{
		{Path: "../x"}, {Path: "/x"}, {Path: ""}, {Path: "a/../../x"}, {Path: `a\b`}, {Path: "x", Mode: 0o755 | fs.ModeSetuid},
		{Path: "x", Mode: fs.ModeSymlink}, {Path: "twice"}, {Path: "twice/below"},
	} {
		parent := t.TempDir()
		_, _, err := Home{{Path: "twice", Data: []byte("x")}, bad}.Create(parent)
		assert.Error(t, err, bad.Path)
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		assert.Empty(t, left, "nothing stays after an error")
	}
	_, _, err := Home{}.Create(t.TempDir() + "/none")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// A home that somebody else removed, or replaced by a link, is no reason to remove anything else.
func TestHomeCleanupFollowsNothing(t *testing.T) {
	dir, cleanup, err := Home{{Path: "f"}}.Create(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/keep", nil, 0o600))
	require.NoError(t, os.Symlink(outside, dir))
	require.NoError(t, cleanup())
	assert.FileExists(t, outside+"/keep")
	require.NoError(t, cleanup())
}
