package isolation

import (
	"io"
	"os"
	"reflect"
	"sync"

	"golang.org/x/sys/unix"
)

// streams are the command's standard streams: the descriptors that go inside, and the copying between them and what the
// caller gave.
type streams struct {
	inside [3]*os.File
	opened []*os.File // of inside, those that are ours to close
	outer  []*os.File // our ends of pipes
	copies []func()
	wait   sync.WaitGroup // for the copying of output
}

func (s *start) openStreams() error {
	c := s.command
	if c.Terminal != nil {
		c.Stdin, c.Stdout, c.Stderr = nil, nil, nil
	}
	if err := s.streams.input(c.Stdin); err != nil {
		return err
	}
	if err := s.streams.output(1, c.Stdout); err != nil {
		return err
	}
	if same(c.Stdout, c.Stderr) {
		s.streams.inside[2] = s.streams.inside[1]
		return nil
	}
	return s.streams.output(2, c.Stderr)
}

// same reports whether both outputs are one value, which then is written to by one goroutine, in order.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}

func (s *streams) input(r io.Reader) error {
	if r == nil {
		return s.null(0, os.O_RDONLY)
	}
	if f, ok := r.(*os.File); ok && isPipe(f) {
		s.inside[0] = f
		return nil
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	s.inside[0] = in
	s.opened, s.outer = append(s.opened, in), append(s.outer, out)
	s.copies = append(s.copies, func() {
		defer out.Close()
		_, _ = io.Copy(out, r) // an error: the command does not read any more
	})
	return nil
}

func (s *streams) output(n int, w io.Writer) error {
	if w == nil {
		return s.null(n, os.O_WRONLY)
	}
	if f, ok := w.(*os.File); ok && isPipe(f) {
		s.inside[n] = f
		return nil
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	s.inside[n] = out
	s.opened, s.outer = append(s.opened, out), append(s.outer, in)
	s.wait.Add(1)
	s.copies = append(s.copies, func() {
		defer s.wait.Done()
		defer in.Close() // when w takes no more, the command gets EPIPE
		_, _ = io.Copy(w, in)
	})
	return nil
}

func (s *streams) null(n, mode int) error {
	f, err := os.OpenFile(os.DevNull, mode, 0)
	if err != nil {
		return err
	}
	s.inside[n] = f
	s.opened = append(s.opened, f)
	return nil
}

// isPipe reports whether f is a pipe: the one kind of file that gives its holder nothing but the bytes.
func isPipe(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

func (s *streams) start() {
	for _, copy := range s.copies {
		go copy()
	}
}

// closeInside closes our copies of what went inside, so that the end of the command is the end of its streams.
func (s *streams) closeInside() {
	closeFiles(s.opened)
	s.opened = nil
}

func (s *streams) abandon() { closeFiles(s.outer) }
