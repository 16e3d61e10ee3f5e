package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// becomeInit is init from its first to its last instruction.
func becomeInit() {
	p := &initStage{control: NewControl(InitControl)}
	p.step("close inherited descriptors", p.closeInherited)
	p.step("receive orders", func() error { return readOrders(os.NewFile(InitOrders, "orders"), &p.orders) })
	p.step("verify confinement", p.verify)
	p.step("set limits", p.limit)
	p.step("open terminal", p.openTerminal)
	p.step(StepExecute, p.start)
	if err := p.control.Send(Message{Started: true}); err != nil {
		syscall.Exit(exitStage)
	}
	go p.obey()
	exit := p.reap()
	if p.control.Send(Message{Exit: &exit}) != nil {
		syscall.Exit(exitStage)
	}
	syscall.Exit(0) // PID 1: the kernel kills whatever the command left behind
}

// StepExecute is the step that fails when it is the command's own fault: not found, or not executable.
const StepExecute = "execute command"

// initStage is what init knows between its steps.
type initStage struct {
	control *Control
	orders  Orders
	files   []uintptr // the command's standard streams
	pid     int
}

func (p *initStage) step(name string, do func() error) {
	if err := do(); err != nil {
		fail(p.control, "init", name, err)
	}
}

// closeInherited leaves the command's streams as the only descriptors that survive execve.
func (p *initStage) closeInherited() error {
	p.files = []uintptr{CommandIn, CommandOut, CommandErr}
	// Handled, not ignored, which the command would inherit: these must not end the runtime when a process of the sandbox
	// sends them to PID 1.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// verify trusts nothing that came before: whatever the command must not have, init does not have either.
func (p *initStage) verify() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process id is %d, not 1: no PID namespace", pid)
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != p.orders.UID || gid != p.orders.UID {
		return fmt.Errorf("runs as uid %d, gid %d, not %d", uid, gid, p.orders.UID)
	}
	if nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || nnp != 1 {
		return errors.New("no_new_privs is not set")
	}
	if err := verifyNoCapabilities(); err != nil {
		return err
	}
	// Keeps /proc/1 and ptrace closed to the command, which has the same uid.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func verifyNoCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	if data != [2]unix.CapUserData{} {
		return fmt.Errorf("has capabilities %+v", data)
	}
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil // EINVAL: past the last capability of this kernel
		}
		if has != 0 {
			return fmt.Errorf("capability %d is in the bounding set", c)
		}
	}
}

func (p *initStage) limit() error {
	warmThreads()
	for _, l := range p.orders.Rlimits {
		// syscall, not unix.Prlimit: for RLIMIT_NOFILE it also stops the runtime from giving the command its own value.
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Value, Max: l.Value}); err != nil {
			return fmt.Errorf("resource %d to %d: %w", l.Resource, l.Value, err)
		}
	}
	return nil
}

// warmThreads makes the threads that this program will need before RLIMIT_NPROC holds for it too: a command that uses
// up all processes would otherwise end the runtime of its init.
func warmThreads() {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			ts := unix.NsecToTimespec(int64(20 * time.Microsecond))
			_ = unix.Nanosleep(&ts, nil) // a plain system call: blocks its thread
		})
	}
	all.Wait()
}

// openTerminal makes a terminal in the sandbox's own devpts, hands the master side out and makes the slave side the
// command's streams: no terminal of the host is ever reachable from inside (TIOCSTI; CVE-2017-5226).
func (p *initStage) openTerminal() error {
	if !p.orders.Terminal {
		return nil
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	size := unix.Winsize{Row: p.orders.Rows, Col: p.orders.Columns}
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &size); err != nil {
		return err
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	p.files = []uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	return p.control.Send(Message{Terminal: true}, master)
}

// start finds the command in the sandbox's own PATH and starts it in a session of its own.
func (p *initStage) start() error {
	if err := os.Chdir(p.orders.Dir); err != nil {
		return err
	}
	os.Clearenv()
	for _, entry := range p.orders.Env {
		if name, value, _ := strings.Cut(entry, "="); name == "PATH" {
			os.Setenv(name, value)
		}
	}
	path, err := exec.LookPath(p.orders.Args[0])
	if err != nil {
		return lookupError(err)
	}
	attr := &syscall.ProcAttr{Dir: p.orders.Dir, Env: p.orders.Env, Files: p.files}
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: p.orders.Terminal}
	p.pid, err = syscall.ForkExec(path, p.orders.Args, attr)
	for _, fd := range p.files {
		unix.Close(int(fd)) // with the command's own copies gone, readers outside see the end
	}
	return err
}

// lookupError keeps the system's word of why, for the exit status: not found and not executable differ.
func lookupError(err error) error {
	var e *exec.Error
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", e.Name, syscall.ENOENT)
	}
	if errors.Is(e.Err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", e.Name, syscall.EACCES)
	}
	return err
}

// obey passes the runner's signals on to the command's process group. When the runner is gone it ends the sandbox.
func (p *initStage) obey() {
	for {
		m, _, err := p.control.Receive()
		if err != nil {
			syscall.Exit(exitStage)
		}
		if m.Signal > 0 {
			_ = unix.Kill(-p.pid, unix.Signal(m.Signal)) // ESRCH: it ended meanwhile
		}
	}
}

// reap collects every process that ends, orphans too, until the command itself has ended.
func (p *initStage) reap() Exit {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			fail(p.control, "init", "wait", err)
		case pid == p.pid && status.Signaled():
			return Exit{Signal: int(status.Signal())}
		case pid == p.pid && status.Exited():
			return Exit{Code: status.ExitStatus()}
		}
	}
}
