package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sandboxrun/sandboxrun/isolation"
)

// Finding is what one layer of the isolation can do on this host.
type Finding struct {
	Layer    string
	Required bool // without it nothing runs
	Off      bool // this release does not use it
	Found    string
	Err      error // nil: it is there and works
}

// Detail says what was found, or what is missing.
func (f Finding) Detail() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	return f.Found
}

// Examine tries what this host can enforce. It runs a command in a real sandbox rather than to look at settings: whether
// namespaces, overlays and mounts work together only the kernel knows.
func Examine(ctx context.Context) []Finding {
	findings := []Finding{examineBubblewrap(ctx)}
	works, layers := examineSandbox(ctx, "memory")
	findings = append(findings, works)
	for _, l := range layers {
		findings = append(findings, Finding{Layer: "  " + l.Name, Off: l.State == "off", Found: l.Detail})
	}
	disk, _ := examineSandbox(ctx, "disk")
	return append(append(findings, disk), examineTools(ctx)...)
}

func examineBubblewrap(ctx context.Context) Finding {
	f := Finding{Layer: "bubblewrap", Required: true}
	host, err := isolation.ProbeHost(&isolation.Config{}, "", "")
	if err == nil && host.Bubblewrap == "" {
		err = isolation.ErrNoBubblewrap
	}
	if err != nil {
		f.Err = err
		return f
	}
	f.Found, f.Err = firstLine(ctx, host.Bubblewrap, "--version")
	f.Found += " at " + host.Bubblewrap
	return f
}

// sandboxScript must see an empty network, its own processes only, and a workspace that takes writes.
const sandboxScript = `set -e
[ "$(id -u)" = 1000 ]
[ "$(ls /sys 2>/dev/null | wc -l)" = 0 ]
[ "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')" = lo ]
echo changed > canary
echo works`

// examineSandbox runs a script in a sandbox with an overlay, looks at what came out, and returns the layers of the run.
func examineSandbox(ctx context.Context, storage string) (Finding, []isolation.Ring) {
	f := Finding{Layer: "sandbox", Required: storage == "memory", Found: "namespaces, overlay in memory and gateway work"}
	if storage == "disk" {
		f.Layer, f.Found = "disk overlay", "workspace.storage = \"disk\" works"
	}
	layers, err := trySandbox(ctx, storage)
	f.Err = err
	return f, layers
}

func trySandbox(ctx context.Context, storage string) ([]isolation.Ring, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "sandboxrun-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cfg, err := isolation.LoadWith("no-network", fmt.Sprintf("workspace.storage=%q", storage))
	if err != nil {
		return nil, err
	}
	var out, stderr bytes.Buffer
	res, err := Exec(ctx, cfg, ExecTask{Args: []string{"sh", "-c", sandboxScript}, Workspace: dir, Stdout: &out, Stderr: &stderr})
	if res != nil {
		defer res.Close()
	}
	switch {
	case err != nil:
		return nil, err
	case res.Exit.Status() != 0 || out.String() != "works\n":
		return nil, fmt.Errorf("a check inside the sandbox did not hold: %s %s", res.Exit, strings.TrimSpace(stderr.String()))
	case res.Changes == nil || len(res.Changes.List) != 1:
		return nil, errors.New("the overlay did not show the one change that was made")
	}
	return res.Plan.Layers, nil
}

// examineTools looks for what the agent and its work need.
func examineTools(ctx context.Context) []Finding {
	cli := Finding{Layer: "claude code"}
	cli.Found, cli.Err = findCLI("")
	git := Finding{Layer: "git"}
	git.Found, git.Err = firstLine(ctx, "git", "--version")
	return []Finding{cli, git}
}

func firstLine(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}
