package isolation

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// takeDescriptors receives what stage zero opened inside, and checks that it is that.
func (s *start) takeDescriptors() error {
	m, files, err := s.zero.Receive()
	if err != nil {
		return err
	}
	if m.Error != nil {
		return m.Error
	}
	if m.Listeners != len(s.orders.Listen) || m.Uppers != s.overlays() || len(files) != m.Listeners+m.Uppers {
		closeFiles(files)
		return fmt.Errorf("%d descriptors for %d listeners and %d uppers", len(files), m.Listeners, m.Uppers)
	}
	s.uppers = files[m.Listeners:]
	for _, f := range files[:m.Listeners] {
		l, err := insideListener(f)
		f.Close()
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	// End of file: execve of bubblewrap happened. Anything else is stage zero's reason why not.
	if m, files, err = s.zero.Receive(); err == nil {
		closeFiles(files)
		if m.Error != nil {
			return m.Error
		}
		return errors.New("stage zero said more than it should")
	}
	return nil
}

func (s *start) overlays() (n int) {
	for _, src := range s.sources {
		if src.lower != nil {
			n++
		}
	}
	return n
}

// insideListener makes a listener of f after checking that it is a listening TCP socket of another network namespace
// than ours: on one of our own, anything on this host could speak for the sandbox.
func insideListener(f *os.File) (net.Listener, error) {
	fd := int(f.Fd())
	for _, want := range []struct{ option, value int }{
		{unix.SO_DOMAIN, unix.AF_INET}, {unix.SO_TYPE, unix.SOCK_STREAM}, {unix.SO_ACCEPTCONN, 1},
	} {
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, want.option); err != nil || got != want.value {
			return nil, fmt.Errorf("received socket: option %d is %d, not %d: %v", want.option, got, want.value, err)
		}
	}
	theirs, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return nil, fmt.Errorf("received socket: network namespace: %w", err)
	}
	own, err := ownNetworkCookie()
	if err != nil {
		return nil, err
	}
	if theirs == own {
		return nil, errors.New("received socket is of this host's own network namespace")
	}
	return net.FileListener(f)
}

func ownNetworkCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}
