package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows are the imports between the packages of this module that the design allows: data flows from policy to result, and nothing later asks anything earlier. A package that
// is not here may not exist.
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
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "../../...").Output()
	require.NoError(t, err)
	seen := 0
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		name := strings.TrimPrefix(pkg.ImportPath, module)
		allowed, known := arrows[name]
		require.True(t, known, "package %s is not in the design", name)
		for _, path := range pkg.Imports {
			if to, own := strings.CutPrefix(path, module); own {
				require.True(t, slices.Contains(allowed, to), "%s imports %s", name, to)
			}
		}
	}
	require.Equal(t, len(arrows), seen)
}
