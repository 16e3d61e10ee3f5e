package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows are the imports between the packages of this module that the design allows: data flows from policy to result,
// and nothing later asks anything earlier. A package that is not here may not exist.
var arrows = map[string][]string{
	"adapter":          {"adapter/claude", "ephemeral", "isolation", "network", "network/model"},
	"adapter/claude":   {},
	"cmd/sandboxrun":   {"adapter", "adapter/claude", "ephemeral", "isolation", "isolation/inside", "network", "policies"},
	"ephemeral":        {},
	"isolation":        {"ephemeral", "isolation/inside", "network", "policies"},
	"isolation/inside": {},
	"network":          {},
	"network/model":    {},
	"policies":         {},
}

func TestImportsFollowTheArrows(t *testing.T) {
	const module = "github.com/sandboxrun/sandboxrun/"
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel("../..", filepath.Dir(path))
		require.NoError(t, err)
		allowed, known := arrows[name]
		require.True(t, known, "package %s is not in the design", name)
		seen[name] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if to, own := strings.CutPrefix(imported, module); own {
				require.True(t, slices.Contains(allowed, to), "%s imports %s", path, to)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, seen, len(arrows))
}
