package network

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// readHead reads until the end of the head, or serves the whole connection if that is SOCKS. The caller has set the
// deadline. After a refusal it returns io.EOF, at which net/http closes the connection without an answer of its own.
func (c *frontConn) readHead() error {
	if c.over {
		c.Conn.SetDeadline(time.Now().Add(overPatience))
	}
	raw, _, err := c.gather(make([]byte, 0, 4<<10), c.gate.limits.HeaderBytes, firstByte)
	switch {
	case len(raw) > 0 && raw[0] == socksVersion && c.origin.IsZero():
		c.gate.socks(c, raw)
		return io.EOF
	case c.over:
		c.refuseRaw(overLimit(c.gate.limits.Connections))
		return io.EOF
	case err != nil:
		return io.EOF // a client that said nothing at all is no event
	}
	return c.readHTTP(raw)
}

func (c *frontConn) readHTTP(raw []byte) error {
	raw, end, err := c.gather(raw, c.gate.limits.HeaderBytes, c.checkHead)
	if err != nil {
		return c.cutShort(err, "request's head")
	}
	c.pending = raw
	if c.head, err = parseHead(raw[:end], c.origin); err != nil {
		c.identify(viaOf(c.head.method), "", c.head.host, c.head.port)
		c.refuseRaw(badRequest(err))
		return io.EOF
	}
	return nil
}

// firstByte is the check that is content with one.
func firstByte([]byte, int) (int, error) { return 1, nil }

// gather reads on after raw until check finds the end of something in it, perhaps beyond, and until limit at most. Check
// gets what there is and how much of that it has seen before; it says 0 as long as the end is missing.
func (c *frontConn) gather(raw []byte, limit int, check func(raw []byte, seen int) (int, error)) ([]byte, int, error) {
	for seen := 0; ; {
		if len(raw) > seen {
			if end, err := check(raw, seen); end > 0 || err != nil {
				return raw, end, err
			}
		}
		seen = len(raw)
		raw = slices.Grow(raw, 1)
		n, err := c.Conn.Read(raw[seen:min(cap(raw), limit)])
		raw = raw[:seen+n]
		c.up.Add(int64(n))
		if n == 0 && err != nil {
			return raw, 0, unfinished{err}
		}
	}
}

// unfinished is the error of a connection that ended, or was too slow, before what it had to say was complete.
type unfinished struct{ error }

// checkHead looks at a head that may be incomplete; end is 0 as long as nothing can be said.
func (c *frontConn) checkHead(raw []byte, seen int) (end int, err error) {
	if what := notHTTP(raw); what != "" {
		c.deny(refusal{Decision: Decision{Deny, NoRule, what}})
		return 0, io.EOF
	}
	end, err = headEnd(raw, seen)
	switch {
	case err != nil:
		c.refuseRaw(badRequest(err))
		return 0, io.EOF
	case end == 0 && len(raw) >= c.gate.limits.HeaderBytes:
		c.refuseRaw(tooLong(c.gate.limits.HeaderBytes))
		return 0, io.EOF
	}
	return end, nil
}

// cutShort records that what the client began to say has no end, unless err is something else and was recorded.
func (c *frontConn) cutShort(err error, what string) error {
	if end := (unfinished{}); errors.As(err, &end) {
		reason := "the connection ended within a " + what
		if errors.Is(end.error, os.ErrDeadlineExceeded) {
			reason = fmt.Sprintf("the %s was not complete after %s", what, c.gate.limits.HeaderTimeout)
		}
		c.deny(refusal{Decision: Decision{Deny, NoRule, reason}})
	}
	return io.EOF
}
