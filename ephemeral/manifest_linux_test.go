package ephemeral

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// manifest is a tree as plain data. Paths are keys and bytes, so JSON carries them quoted.
type manifest map[string]item

type item struct {
	Mode   fs.FileMode
	Target string // of a link, quoted
	Sum    string // of a file
}

func (m manifest) MarshalJSON() ([]byte, error) {
	quoted := make(map[string]item, len(m))
	for path, it := range m {
		it.Target = fmt.Sprintf("%x", it.Target)
		quoted[fmt.Sprintf("%x", path)] = it
	}
	return json.Marshal(quoted)
}

func (m *manifest) UnmarshalJSON(data []byte) error {
	quoted := make(map[string]item)
	if err := json.Unmarshal(data, &quoted); err != nil {
		return err
	}
	*m = make(manifest, len(quoted))
	for path, it := range quoted {
		var p, target []byte
		fmt.Sscanf(path, "%x", &p)
		fmt.Sscanf(it.Target, "%x", &target)
		it.Target = string(target)
		(*m)[string(p)] = it
	}
	return nil
}

func mustManifest(t testing.TB, dir string) manifest {
	t.Helper()
	m, err := manifestOf(dir)
	require.NoError(t, err)
	return m
}

// manifestOf describes a tree. What its owner may not read is made readable for that long.
func manifestOf(dir string) (manifest, error) {
	m := make(manifest)
	return m, m.read(dir, "")
}

func (m manifest) read(top, rel string) error {
	entries, err := os.ReadDir(filepath.Join(top, rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		child := joinPath(rel, e.Name())
		full := top + "/" + child
		info, err := os.Lstat(full)
		if err != nil {
			return err
		}
		it := item{Mode: info.Mode()}
		locked := info.Mode().IsRegular() && info.Mode()&0o400 == 0 || info.IsDir() && info.Mode()&0o500 != 0o500
		if locked {
			if err := os.Chmod(full, info.Mode()|0o500); err != nil {
				return err
			}
		}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(full)
			if err != nil {
				return err
			}
			it.Sum = fmt.Sprintf("%x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			if it.Target, err = os.Readlink(full); err != nil {
				return err
			}
		case info.IsDir():
			if err := m.read(top, child); err != nil {
				return err
			}
		}
		if locked {
			if err := os.Chmod(full, info.Mode()); err != nil {
				return err
			}
		}
		m[child] = it
	}
	return nil
}

// expectedKinds compares two manifests.
func expectedKinds(before, after manifest) map[string]Kind {
	kinds := make(map[string]Kind)
	for path, old := range before {
		now, ok := after[path]
		switch {
		case !ok:
			kinds[path] = Deleted
		case isSpecial(now.Mode):
			if now.Mode != old.Mode {
				kinds[path] = Special
			}
		case now.Mode.Type() != old.Mode.Type():
			kinds[path] = Retyped
		case now.Target != old.Target:
			kinds[path] = Linked
		case now.Sum != old.Sum:
			kinds[path] = Modified
		case now.Mode != old.Mode:
			kinds[path] = ModeChanged
		}
	}
	for path, now := range after {
		_, ok := before[path]
		switch {
		case ok:
		case isSpecial(now.Mode):
			kinds[path] = Special
		case now.Mode.Type() == fs.ModeSymlink:
			kinds[path] = Linked
		default:
			kinds[path] = Created
		}
	}
	return kinds
}

// applicable is the tree that is to be reached: the merged one, with special files as they were.
func applicable(before, merged manifest) manifest {
	want := make(manifest)
	for path, it := range merged {
		if isSpecial(it.Mode) {
			old, ok := before[path]
			if !ok {
				continue
			}
			it = old
			for below, old := range before {
				if strings.HasPrefix(below, path+"/") {
					want[below] = old
				}
			}
		}
		want[path] = it
	}
	return want
}

// tracked is what git has of a tree: files and links, with one bit of their mode.
func (m manifest) tracked() manifest {
	files := make(manifest)
	for path, it := range m {
		switch mode := gitMode(&Entry{Mode: it.Mode}); mode {
		case "":
			continue
		case "100755":
			it.Mode = 0o755
		case "100644":
			it.Mode = 0o644
		}
		files[path] = it
	}
	return files
}

// copyTree copies files, links and FIFOs, in directories that can be written to.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	for path, it := range mustManifest(t, from) {
		if it.Mode.IsDir() {
			require.NoError(t, os.MkdirAll(to+"/"+path, 0o755))
		}
	}
	for path, it := range mustManifest(t, from) {
		dst := to + "/" + path
		switch {
		case it.Mode.IsRegular():
			data, err := os.ReadFile(from + "/" + path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(dst, data, 0o600))
			require.NoError(t, os.Chmod(dst, it.Mode))
		case it.Mode&fs.ModeSymlink != 0:
			require.NoError(t, os.Symlink(it.Target, dst))
		case it.Mode&fs.ModeNamedPipe != 0:
			require.NoError(t, unix.Mkfifo(dst, 0o644))
		}
	}
}
