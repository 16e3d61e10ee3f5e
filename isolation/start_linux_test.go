package isolation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxrun/sandboxrun/isolation/inside"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// planHere plans for this host and an empty workspace.
func planHere(t *testing.T, c *Config) *Plan {
	host, err := ProbeHost(c, t.TempDir(), "")
	require.NoError(t, err)
	plan, err := c.Plan(host)
	require.NoError(t, err)
	return plan
}

func command(script string) Command { return Command{Args: []string{"sh", "-c", script}} }

// Init trusts nothing that came before it: with any one of these layers taken out, the command does not start.
func TestInitRefusesAMissingLayer(t *testing.T) {
	for _, tt := range []struct {
		name string
		drop []string
		want string
	}{
		{"nothing", nil, ""},
		{"PID namespace", []string{"--unshare-pid", "--as-pid-1"}, "no PID namespace"},
		{"dropping of capabilities", []string{"--cap-drop", "ALL"}, "capabilit"},
		{"uid", []string{"--uid", "1000"}, "runs as uid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := planHere(t, &Config{})
			s := &start{plan: plan, command: command("true"), orders: plan.orders(), since: time.Now()}
			s.orders.Args = slices.DeleteFunc(s.orders.Args, func(arg string) bool { return slices.Contains(tt.drop, arg) })
			if tt.name == "uid" {
				s.orders.Args = append([]string{"--uid", "0"}, s.orders.Args...)
				s.orders.Args = slices.DeleteFunc(s.orders.Args, func(arg string) bool { return arg == "--gid" })
			}
			p, err := s.start(t.Context())
			if tt.want == "" {
				require.NoError(t, err)
				exit, err := p.Wait()
				require.NoError(t, err)
				assert.Equal(t, 0, exit.Status())
				require.NoError(t, p.Close())
				return
			}
			require.ErrorContains(t, err, tt.want)
			var setup *SetupError
			assert.ErrorAs(t, err, &setup)
		})
	}
}

// What was judged is what is mounted: a path that became another object between plan and start is refused.
func TestStartRefusesAnExchangedPath(t *testing.T) {
	granted := filepath.Join(t.TempDir(), "granted")
	require.NoError(t, os.Mkdir(granted, 0o755))
	plan := planHere(t, &Config{Sandbox: Sandbox{ReadablePaths: []string{granted}}})
	require.NoError(t, os.Remove(granted))
	require.NoError(t, os.Symlink("/", granted))
	_, err := plan.Start(t.Context(), command("ls "+granted))
	require.Error(t, err)
	require.NoError(t, os.Remove(granted))
	require.NoError(t, os.WriteFile(granted, nil, 0o644))
	_, err = plan.Start(t.Context(), command("ls "+granted))
	require.ErrorContains(t, err, "is not what it was")
}

// The stages end in an error, not in anything else, when somebody starts them by hand.
func TestStagesNeedOrders(t *testing.T) {
	for _, name := range []string{inside.ZeroName, inside.InitName} {
		self, err := os.Executable()
		require.NoError(t, err)
		var stderr bytes.Buffer
		cmd := &os.ProcAttr{Files: []*os.File{nil, nil, nil}}
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.Files[2] = w
		p, err := os.StartProcess(self, []string{name}, cmd)
		require.NoError(t, err)
		w.Close()
		_, err = stderr.ReadFrom(r)
		require.NoError(t, err)
		state, err := p.Wait()
		require.NoError(t, err)
		assert.Equal(t, 125, state.ExitCode(), name)
		assert.NotEmpty(t, stderr.String(), name)
	}
}

// A start that fails leaves no process, not even an ended one for the host's PID 1 to collect.
func TestAFailedStartIsCollected(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) // orphans come to this process
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for range 5 {
		_, err := planHere(t, &Config{}).Start(t.Context(), Command{Args: []string{"no-such-command"}})
		var execute *ExecError
		require.ErrorAs(t, err, &execute)
		assert.Equal(t, 127, execute.Status())
	}
	threads, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, path := range threads {
		children, _ := os.ReadFile(path)
		assert.Empty(t, string(children), path)
	}
}

// Runs side by side share nothing but the host.
func TestRunsAreIndependent(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		plan := planHere(t, &Config{})
		all.Go(func() {
			var out bytes.Buffer
			c := command(fmt.Sprintf("echo %d > mine; sleep 0.2; cat mine; ls | wc -l; ls /tmp | wc -l; echo x > /tmp/x", i))
			c.Stdout = &out
			p, err := plan.Start(context.Background(), c)
			if !assert.NoError(t, err) {
				return
			}
			defer p.Close()
			exit, err := p.Wait()
			assert.NoError(t, err)
			assert.Equal(t, 0, exit.Status())
			assert.Equal(t, fmt.Sprintf("%d\n1\n0\n", i), out.String())
		})
	}
	all.Wait()
}

func TestLimitsHold(t *testing.T) {
	for name, tt := range map[string]struct {
		limits Limits
		script string
		want   string
	}{
		"processes":         {Limits{PIDs: 40}, "for i in $(seq 60); do sleep 5 & done; echo survived", "fork|Resource temporarily unavailable"},
		"processes, twin":   {Limits{PIDs: 200}, "for i in $(seq 60); do sleep 0.1 & done; echo survived", "^survived"},
		"open files":        {Limits{OpenFiles: 20}, "ulimit -n; ulimit -Hn", "^20\n20\n$"},
		"disk":              {Limits{Disk: 8 << 20}, "head -c 20000000 /dev/zero > /tmp/big", "No space left"},
		"disk, workspace":   {Limits{Disk: 8 << 20}, "head -c 20000000 /dev/zero > big", "No space left"},
		"disk, shm":         {Limits{Disk: 8 << 20}, "head -c 20000000 /dev/zero > /dev/shm/big", "No space left"},
		"disk, twin":        {Limits{Disk: 64 << 20}, "head -c 20000000 /dev/zero > /tmp/big; wc -c < /tmp/big", "^20000000"},
		"files in memory":   {Limits{Disk: 8 << 20}, "cd /tmp; seq 100000 | xargs touch", "No space left"},
		"core dumps":        {Limits{}, "ulimit -c; ulimit -Hc", "^0\n0\n$"},
		"hard limits stand": {Limits{OpenFiles: 20}, "ulimit -n 4096", "not permitted|cannot modify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c := command(tt.script)
			c.Stdout, c.Stderr = &out, &out
			p, err := planHere(t, &Config{Limits: tt.limits}).Start(t.Context(), c)
			require.NoError(t, err)
			defer p.Close()
			_, err = p.Wait()
			require.NoError(t, err)
			assert.Regexp(t, tt.want, out.String())
		})
	}
}

// A context that ends, ends the run; its cause says how.
func TestContextEndsTheRun(t *testing.T) {
	for _, tt := range []struct {
		cause error
		want  Exit
	}{
		{context.Canceled, Exit{Cause: Canceled, Signal: syscall.SIGTERM}},
		{Interrupt(syscall.SIGINT), Exit{Cause: Signaled, Signal: syscall.SIGINT}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out bytes.Buffer
		c := command("sleep 60")
		c.Args = []string{"sleep", "60"}
		c.Stdout = &out
		p, err := planHere(t, &Config{}).Start(ctx, c)
		require.NoError(t, err)
		cancel(tt.cause)
		exit, err := p.Wait()
		require.NoError(t, err)
		assert.Equal(t, tt.want, exit)
		require.NoError(t, p.Close())
		require.NoError(t, p.Close(), "closing twice is fine")
	}
}

// Root's own files can be read and written in a sandbox that is not root to the kernel, and stay root's on the host.
func TestOwnersAreMapped(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "private"), []byte("secret\n"), 0o600))
	host, err := ProbeHost(&Config{}, dir, "")
	require.NoError(t, err)
	plan, err := (&Config{}).Plan(host)
	require.NoError(t, err)
	var out bytes.Buffer
	c := command("cat private; echo more >> private; cat private; awk '{print $1}' /proc/self/uid_map")
	c.Stdout, c.Stderr = &out, &out
	p, err := plan.Start(t.Context(), c)
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Wait()
	require.NoError(t, err)
	assert.Equal(t, "secret\nsecret\nmore\n1000", strings.Join(strings.Fields(out.String()), "\n"))
	if host.Root {
		assert.NotZero(t, plan.UID, "the kernel must not see root")
	}
	data, err := os.ReadFile(filepath.Join(dir, "private"))
	require.NoError(t, err)
	assert.Equal(t, "secret\n", string(data))
}
