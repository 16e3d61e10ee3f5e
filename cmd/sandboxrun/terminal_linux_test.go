package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal of this size for a test.
func openTerminal(t *testing.T, columns, rows uint16) (master, slave *os.File) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	master = os.NewFile(uintptr(fd), "master")
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

// On a terminal the command has a terminal of its own, with the size, the keys and the job control of a real one, and
// never the user's.
func TestTerminal(t *testing.T) {
	master, slave := openTerminal(t, 97, 31)
	cmd := sandboxrun(t, "exec", "--quiet", "--", "bash", "-c", `stty size; tty; ps -o tty= -p $$; read line; echo "got $line"; trap "echo interrupted; exit 5" INT; echo ready; while :; do sleep 0.05; done`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	slave.Close()

	screen := &bytes.Buffer{}
	see := func(text string) {
		t.Helper()
		require.NoError(t, master.SetReadDeadline(time.Now().Add(20*time.Second)))
		buf := make([]byte, 4096)
		for !strings.Contains(screen.String(), text) {
			n, err := master.Read(buf)
			screen.Write(buf[:n])
			require.NoError(t, err, "waiting for %q, seen %q", text, screen)
		}
	}
	see("31 97")
	see("/dev/pts/0")
	_, err := io.WriteString(master, "hello\r")
	require.NoError(t, err)
	see("got hello")
	see("ready")
	_, err = io.WriteString(master, "\x03")
	require.NoError(t, err)
	see("interrupted")
	_ = cmd.Wait()
	assert.Equal(t, 5, cmd.ProcessState.ExitCode())
}
