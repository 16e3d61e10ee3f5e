package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// httpsPort carries TLS and nothing else: the policy has no word yet for another protocol there.
const httpsPort = 443

// ruleServerName is the Rule of a tunnel that is closed for its first bytes.
const ruleServerName = "built-in: server name"

// peek looks at the first bytes of a tunnel's client, before any of them goes on, and holds TLS to the host that was
// decided. On httpsPort anything but TLS is refused; elsewhere a client that does not begin with TLS passes. What was read
// stays in client. False: the tunnel must end, for err if that is not nil, else for what peek has recorded.
func (c *frontConn) peek(client *earlyConn, host Host, port Port) (ok bool, err error) {
	defer client.SetReadDeadline(time.Time{})
	if port == httpsPort {
		client.SetReadDeadline(time.Now().Add(c.gate.limits.HeaderTimeout))
	}
	first, err := client.first()
	switch {
	case err == io.EOF:
		return true, nil // there is nothing to look at
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, fmt.Errorf("the client said nothing for %s", c.gate.limits.HeaderTimeout)
	case err != nil:
		return false, unlessClosed(err)
	case first == recordHandshake:
		return c.peekHello(client, host)
	case port == httpsPort:
		c.refuseTunnel(noAlert, "the client does not speak TLS; port 443 is for TLS, and a policy cannot say otherwise in this release")
		return false, nil
	}
	return true, nil
}

// peekHello reads the hello and holds it to host.
func (c *frontConn) peekHello(client *earlyConn, host Host) (ok bool, err error) {
	c.idle.touch()
	client.SetReadDeadline(time.Now().Add(c.gate.limits.HeaderTimeout))
	h, raw, err := readHello(client)
	c.idle.touch()
	if errors.Is(err, net.ErrClosed) {
		return false, nil
	}
	client.early = append(raw, client.early...)
	a, reason := decodeError, c.unreadable(err)
	if err == nil {
		a, reason = h.check(host)
	}
	if reason != "" {
		c.refuseTunnel(a, reason)
		return false, nil
	}
	return true, nil
}

// unreadable says why there was no hello.
func (c *frontConn) unreadable(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended within the TLS hello"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("the TLS hello was not complete after %s", c.gate.limits.HeaderTimeout)
	case err == errHelloTooLong:
		return "the TLS hello is " + err.Error()
	}
	return fmt.Sprintf("the TLS hello cannot be read: %v", err)
}

// refuseTunnel records a refusal behind the answer that opened the tunnel, and tells a client that speaks TLS by an alert.
func (c *frontConn) refuseTunnel(a alert, reason string) {
	c.deny(refusal{Decision: Decision{Deny, ruleServerName, reason}})
	c.Conn.SetDeadline(time.Now().Add(alertTimeout))
	if a != noAlert {
		c.Conn.Write([]byte{21, 3, 3, 0, 2, 2, byte(a)}) // a fatal alert of TLS 1.2 or later; best effort: the tunnel ends anyway
	}
	closeWrite(c.Conn)
	// A close with unread bytes is a reset, which would overtake the alert.
	io.CopyN(io.Discard, c.Conn, alertDrain)
}

// How long, and for how many bytes, a refused client is listened to, until it has read why.
const (
	alertTimeout = 500 * time.Millisecond
	alertDrain   = 1 << 20
)

// first returns the first byte that Read will give, and leaves it there.
func (c *earlyConn) first() (byte, error) {
	if len(c.early) == 0 {
		buf := make([]byte, 4<<10)
		n, err := c.Conn.Read(buf)
		if n == 0 {
			return 0, err
		}
		c.early = buf[:n]
	}
	return c.early[0], nil
}
