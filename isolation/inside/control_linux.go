package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Control is one end of a SOCK_SEQPACKET pair between runner and stage. Receive blocks a thread; Send may be called by
// one goroutine at a time.
type Control struct{ fd int }

// maxMessage bounds a packet. Orders of stage zero travel in a memfd, so packets stay small.
const maxMessage = 64 << 10

// NewControl takes over the socket fd.
func NewControl(fd int) *Control { return &Control{fd} }

// ControlPair makes both ends, closed on exec.
func ControlPair() (runner *Control, stage *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make control socket: %w", err)
	}
	return &Control{fds[0]}, os.NewFile(uintptr(fds[1]), "control"), nil
}

// Send sends m and copies of the descriptors.
func (c *Control) Send(m Message, fds ...int) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("control message of %d bytes is over %d", len(data), maxMessage)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return ignoringEINTR(func() error { return unix.Sendmsg(c.fd, data, rights, nil, unix.MSG_NOSIGNAL) })
}

// Receive waits for a message and its descriptors, which the caller owns then; they are closed on exec. At the end of
// the other side it returns io.EOF.
func (c *Control) Receive() (Message, []*os.File, error) {
	data, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*253))
	var n, oobn, flags int
	err := ignoringEINTR(func() (err error) {
		n, oobn, flags, _, err = unix.Recvmsg(c.fd, data, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return Message{}, nil, fmt.Errorf("receive control message: %w", err)
	}
	files, err := receivedFiles(oob[:oobn])
	if err != nil {
		return Message{}, nil, err
	}
	if n == 0 && len(files) == 0 {
		return Message{}, nil, io.EOF
	}
	var m Message
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("truncated control message")
	} else {
		err = json.Unmarshal(data[:n], &m)
	}
	if err != nil {
		closeAll(files)
		return Message{}, nil, fmt.Errorf("receive control message: %w", err)
	}
	return m, files, nil
}

// Close closes this end.
func (c *Control) Close() error { return unix.Close(c.fd) }

// Shutdown ends the conversation in both directions; a blocked Receive returns io.EOF.
func (c *Control) Shutdown() error { return unix.Shutdown(c.fd, unix.SHUT_RDWR) }

func receivedFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("receive descriptors: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Memfd returns an anonymous file that holds data and is read from its start.
func Memfd(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill memfd: %w", err)
	}
	return f, nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
