package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release; builds of a commit say which.
const version = "0.1.0-dev"

func runVersion(args []string, std stdio) int {
	fmt.Fprintf(std.out, "sandboxrun %s%s %s %s/%s\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	return ""
}
