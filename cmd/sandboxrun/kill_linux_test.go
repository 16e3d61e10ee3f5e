package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sandboxrun returns the program as a command: the test binary under its other name.
func sandboxrun(t *testing.T, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "sandboxrun"
	cmd.Dir = t.TempDir()
	return cmd
}

// traces is what a run could leave on this host: processes with the marker in their command line, mounts, files in the
// places for temporary files, and Unix sockets with a name of ours.
func traces(t *testing.T, marker string) []string {
	var found []string
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range processes {
		cmdline, _ := os.ReadFile(path)
		if strings.Contains(string(cmdline), marker) {
			found = append(found, path+": "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	for _, file := range []string{"/proc/self/mountinfo", "/proc/net/unix"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "sandboxrun") {
				found = append(found, file+": "+line)
			}
		}
	}
	for _, dir := range []string{os.TempDir(), os.Getenv("XDG_RUNTIME_DIR")} {
		runs, err := filepath.Glob(filepath.Join(dir, "*sandboxrun*", "*"))
		require.NoError(t, err)
		found = append(found, runs...)
	}
	return found
}

// descendants are the directories in /proc of every process below pid: bubblewrap, init, the command and what it started.
func descendants(t *testing.T, pid int) []string {
	var found []string
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, path := range children {
		data, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			require.NoError(t, err)
			found = append(append(found, "/proc/"+field), descendants(t, child)...)
		}
	}
	return found
}

// alive returns those directories whose processes are still there. With zombies, ended ones that nobody has collected
// count too: after kill -9 that is the business of the host's PID 1, otherwise it is ours.
func alive(dirs []string, zombies bool) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		status, err := os.ReadFile(dir + "/status")
		return err != nil || !zombies && strings.Contains(string(status), "State:\tZ")
	})
}

// gone waits a second at most until a run has left nothing.
func gone(t *testing.T, marker string, processes []string, zombies bool) {
	t.Helper()
	nothing := func() bool { return len(traces(t, marker)) == 0 && len(alive(processes, zombies)) == 0 }
	assert.Eventually(t, nothing, time.Second, 10*time.Millisecond)
	assert.Empty(t, traces(t, marker))
	assert.Empty(t, alive(processes, zombies))
}

// A killed sandboxrun takes everything along: within a second there is no process, mount, file or socket.
func TestKillLeavesNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			marker := fmt.Sprintf("86399.%d%d", os.Getpid(), sig)
			script := "setsid sleep " + marker + " & sleep " + marker + " & echo ready; wait"
			cmd := sandboxrun(t, "exec", "--", "sh", "-c", script)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "ready\n", line)
			require.NotEmpty(t, traces(t, marker), "the run must be visible while it goes on")

			processes := descendants(t, cmd.Process.Pid)
			require.GreaterOrEqual(t, len(processes), 5, "bubblewrap, init, sh and two sleeps: %v", processes)
			require.NoError(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			gone(t, marker, processes, sig != syscall.SIGKILL)
		})
	}
}

// The same while the real agent is at work, with a command of its own running.
func TestKillOfAnAgentLeavesNothing(t *testing.T) {
	cli := claudeCLI(t)
	marker := fmt.Sprintf("86398.%d", os.Getpid())
	script := filepath.Join(t.TempDir(), "script.toml")
	turn := "[[turns]]\n[[turns.tools]]\nname = \"Bash\"\ninput = { command = \"setsid sleep " + marker + " & while :; do read -t 1 x; done\" }\n"
	require.NoError(t, os.WriteFile(script, []byte(turn), 0o644))
	cmd := sandboxrun(t, "agent", "--script", script, "wait")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(cli)+":"+os.Getenv("PATH"))
	require.NoError(t, cmd.Start())
	running := func() bool {
		return slices.ContainsFunc(traces(t, marker), func(s string) bool { return strings.Contains(s, "sleep "+marker+" ") })
	}
	require.Eventually(t, running, 30*time.Second, 20*time.Millisecond)
	processes := descendants(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	gone(t, marker, processes, false)
}

// A command that ignores the signal is killed 5 s later.
func TestIgnoredSignalEndsInKill(t *testing.T) {
	t.Parallel()
	cmd := sandboxrun(t, "exec", "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	start := time.Now()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	err = cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 137, exit.ExitCode())
	assert.Greater(t, time.Since(start), 4*time.Second, "the command must get its time")
}
