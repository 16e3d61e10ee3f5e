package isolation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/isolation/inside"
	"github.com/sandboxrun/sandboxrun/network"
)

// Start makes the plan real and starts the command in it. It returns when the command runs; an error means that nothing
// runs and nothing is left. When ctx ends, the command is told to end, and killed with everything around it 5 s later.
//
// Errors: [*SetupError] when the sandbox could not be made, [*ExecError] when the command could not be executed in it.
func (p *Plan) Start(ctx context.Context, c Command) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, &SetupError{"read command", errors.New("no command")}
	}
	s := &start{plan: p, command: c, since: time.Now(), orders: p.orders()}
	return s.start(ctx)
}

func (s *start) start(ctx context.Context) (*Process, error) {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"open granted paths", s.openSources},
		{"open streams", s.openStreams},
		{StepNamespaces, s.startZero},
		{"map owners", s.mapOwners},
		{"give orders", s.giveOrders},
		{"prepare namespaces", s.takeDescriptors},
		{"start command", s.awaitCommand},
	} {
		if err := step.do(); err != nil {
			s.abandon()
			return nil, s.explain(step.name, err)
		}
	}
	s.closeOwn()
	return s.run(ctx), nil
}

// start is what is known between the steps of Start.
type start struct {
	plan    *Plan
	command Command
	orders  inside.ZeroOrders
	sources []*source
	streams streams
	zero    *inside.Control // to stage zero
	init    *inside.Control // to init
	cmd     *exec.Cmd       // stage zero, then bubblewrap
	ended   chan struct{}   // closed when Start or the process is over: lets go of the thread that started cmd
	diag    *diagnostics
	runDir  *ephemeral.Run
	since   time.Time

	listeners []net.Listener
	uppers    []*os.File
	terminal  *os.File
}

// startZero starts stage zero in new user, mount and network namespaces. The thread that does so stays until the run
// is over: PR_SET_PDEATHSIG fires at the end of the starting thread, not of its process; see PR_SET_PDEATHSIG(2const).
func (s *start) startZero() error {
	zero, zeroEnd, err := inside.ControlPair()
	if err != nil {
		return err
	}
	defer zeroEnd.Close()
	init, initEnd, err := inside.ControlPair()
	if err != nil {
		return err
	}
	defer initEnd.Close()
	s.zero, s.init, s.ended = zero, init, make(chan struct{})
	initOrders, err := memfdJSON("init-orders", s.plan.initOrders(s.command))
	if err != nil {
		return err
	}
	defer initOrders.Close()
	if s.diag, err = newDiagnostics(); err != nil {
		return err
	}
	defer s.diag.writer.Close()

	s.cmd = &exec.Cmd{Path: "/proc/self/exe", Args: []string{inside.ZeroName}, Env: []string{}}
	s.cmd.Stdout, s.cmd.Stderr = s.diag.writer, s.diag.writer
	s.cmd.ExtraFiles = append([]*os.File{zeroEnd, initEnd, initOrders}, s.streams.inside[:]...)
	s.cmd.SysProcAttr = s.plan.namespaces()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		started <- s.cmd.Start()
		<-s.ended
	}()
	return <-started
}

// namespaces maps the sandbox's kernel uid, and nothing else, to 0 of stage zero's user namespace.
func (p *Plan) namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: p.UID, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: p.GID, Size: 1}},
		GidMappingsEnableSetgroups: p.Root,
		Setpgid:                    true, // a terminal's ^C is for the runner, which passes it on
		Pdeathsig:                  syscall.SIGKILL,
	}
	if p.Root {
		attr.Credential = &syscall.Credential{Uid: 0, Gid: 0, Groups: []uint32{}}
	}
	return attr
}

func (s *start) giveOrders() error {
	var trees []int
	for _, src := range s.sources {
		if src.tree >= 0 {
			src.FD = len(trees)
			trees = append(trees, src.tree)
		}
	}
	file, err := memfdJSON("zero-orders", s.orders)
	if err != nil {
		return err
	}
	defer file.Close()
	fds := append([]int{int(file.Fd())}, trees...)
	return s.zero.Send(inside.Message{Orders: true}, fds...)
}

// awaitCommand waits until init has started the command. Its first connections wait in the backlog of the listeners.
func (s *start) awaitCommand() error {
	for {
		m, files, err := s.init.Receive()
		switch {
		case err != nil:
			return ErrBroken
		case m.Error != nil:
			return m.Error
		case m.Terminal && len(files) == 1:
			s.terminal = files[0]
		case m.Started:
			return nil
		default:
			closeFiles(files)
			return errors.New("init said something else than it should")
		}
	}
}

// abandon takes back whatever a failed start has made, and waits until it is gone. With their sockets closed the stages
// end by themselves, so that each is collected by its parent; one that does not is killed.
func (s *start) abandon() {
	s.closeOwn()
	if s.init != nil {
		s.init.Close()
	}
	if s.cmd != nil && s.cmd.Process != nil {
		timer := time.AfterFunc(time.Second, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Wait()
		timer.Stop()
	}
	s.streams.abandon()
	for _, l := range s.listeners {
		l.Close()
	}
	closeFiles(s.uppers)
	for _, src := range s.sources {
		src.closeLower()
	}
	if s.terminal != nil {
		s.terminal.Close()
	}
	if s.ended != nil {
		close(s.ended)
	}
	if s.runDir != nil {
		_ = s.runDir.Close()
	}
}

// closeOwn closes what only the start needed.
func (s *start) closeOwn() {
	s.streams.closeInside()
	for _, src := range s.sources {
		src.closeTree()
	}
	if s.zero != nil {
		s.zero.Close()
		s.zero = nil
	}
}

// explain makes the error of a step one that a user can act on.
func (s *start) explain(step string, err error) error {
	var stage *inside.StageError
	if errors.As(err, &stage) {
		cause := error(stage)
		if stage.Errno != 0 {
			cause = &stageErrno{stage, syscall.Errno(stage.Errno)}
		}
		if stage.Step == inside.StepExecute {
			return &ExecError{s.command.Args[0], syscall.Errno(stage.Errno)}
		}
		return &SetupError{step, cause}
	}
	if text := s.diag.text(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return &SetupError{step, err}
}

// stageErrno is a stage's error that errors.Is finds the system's number in.
type stageErrno struct {
	*inside.StageError
	errno syscall.Errno
}

func (e *stageErrno) Unwrap() error { return e.errno }

// gateway returns the command's gateway, or one that denies everything.
func (s *start) gateway() *network.Gateway {
	if s.command.Gateway != nil {
		return s.command.Gateway
	}
	return &network.Gateway{}
}
