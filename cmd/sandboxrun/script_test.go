package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be sandboxrun in scripts, and a stage of it in sandboxes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sandboxrun": main})
}

// TestScripts runs the manual: every file in testdata/script is true of the product.
func TestScripts(t *testing.T) {
	server := serveHost(t)
	cli := claudeCLI(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PORT", fmt.Sprint(server))
			env.Setenv("CLAUDE_DIR", filepath.Dir(cli))
			env.Setenv("PATH", env.Getenv("PATH")+":"+filepath.Dir(cli))
			env.Setenv("TERM", "xterm")
			for _, name := range []string{"home", "work"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, name), 0o755); err != nil {
					return err
				}
			}
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			return nil
		},
	})
}

// serveHost is a server on this host's loopback interface that greets whoever gets through.
func serveHost(t *testing.T) (port int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from the host, %s\n", r.Host)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// claudeCLI finds the real CLI, which scripts/prepare installs.
func claudeCLI(t *testing.T) string {
	path := os.Getenv("SANDBOXRUN_CLAUDE")
	if path != "" {
		return path
	}
	if os.Getenv("SANDBOXRUN_TEST_REQUIRE") == "all" {
		t.Fatal("SANDBOXRUN_CLAUDE names no Claude Code CLI, and nothing may be skipped")
	}
	t.Skip("SANDBOXRUN_CLAUDE names no Claude Code CLI")
	return ""
}
