package ephemeral

import "os"

// overlayEdits are what tests do through the merged view, by name, because a child does it.
var overlayEdits = map[string]func(dir string) error{
	"nothing": func(string) error { return nil },
	"three": func(dir string) error {
		return os.WriteFile(dir+"/new", []byte("new\n"), 0o644)
	},
}

func runChild([]string) error { return nil }
