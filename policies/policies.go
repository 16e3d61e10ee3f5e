// Package policies holds the built-in policies, as the files that `sandboxrun policy show` prints.
package policies

import (
	"embed"
	"strings"
)

//go:embed *.toml
var files embed.FS

// Names returns the names of the policies, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}

// Read returns the text of a policy and whether there is one of that name.
func Read(name string) ([]byte, bool) {
	data, err := files.ReadFile(name + ".toml")
	return data, err == nil
}
