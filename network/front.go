package network

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// frontListener hands out connections up to the limit and refuses the rest.
type frontListener struct {
	net.Listener
	gate *Gateway
}

// Accept returns the next connection that is within the limit.
func (l *frontListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := l.gate.newFrontConn(raw)
		over := l.gate.slots.Add(1) - int64(l.gate.limits.Connections)
		if c.over = over > 0; over <= overSpare {
			return c, nil
		}
		c.refuseRaw(overLimit(l.gate.limits.Connections))
		c.Close()
	}
}

// A connection over the limit may still say within overPatience which protocol it speaks, so that it understands the
// refusal, while there are no more than overSpare of them.
const (
	overSpare    = 64
	overPatience = time.Second
)

func overLimit(n int) refusal {
	d := Decision{Deny, fmt.Sprintf("limits.connections = %d", n), fmt.Sprintf("%d connections are open already; close some or raise limits.connections", n)}
	return refusal{status: 503, kind: "limit_exceeded", Decision: d}
}

type frontKey struct{}

// frontConn is a client's connection, which carries one request. Before net/http sees a byte it has read and checked the
// whole head; when it is closed it writes the last record.
type frontConn struct {
	net.Conn
	gate     *Gateway
	accepted time.Time
	idle     *idleTimer
	up, down atomic.Int64

	over     bool // the connection is one too many, and is only read to be refused in its own protocol
	origin   Host // not zero: the client's TLS to this host ended here, so the request is in origin form and for it
	headRead bool
	head     head
	pending  []byte // read from Conn, not yet from us

	mu      sync.Mutex
	rec     Record // what later records have in common
	allowed bool   // a close record is due
	opened  bool   // an open record was written
	done    bool   // the last record was written
	closing sync.Once
	closed  chan struct{}
	err     error
}

func (g *Gateway) newFrontConn(raw net.Conn) *frontConn {
	c := &frontConn{Conn: raw, gate: g, accepted: time.Now(), rec: Record{Via: ViaUnknown}, closed: make(chan struct{})}
	c.idle = newIdleTimer(g.limits.IdleTimeout, func() {
		c.cut(fmt.Sprintf("idle for %s", g.limits.IdleTimeout))
	})
	return c
}

// Read gives net/http the head, once that is complete and sound, then what follows.
func (c *frontConn) Read(p []byte) (int, error) {
	if !c.headRead {
		c.headRead = true
		if err := c.readHead(); err != nil {
			return 0, err
		}
	}
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	c.up.Add(int64(n))
	c.idle.touch()
	return n, err
}

// Write writes to the client.
func (c *frontConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.down.Add(int64(n))
	c.idle.touch()
	return n, err
}

// CloseWrite lets net/http end an answer without a reset while the client still sends.
func (c *frontConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection, gives its slot back and writes the close record.
func (c *frontConn) Close() error {
	c.closing.Do(func() {
		c.err = c.Conn.Close()
		c.idle.stop()
		c.gate.slots.Add(-1)
		c.recordClose()
		close(c.closed)
	})
	return c.err
}

// cut ends the connection for a reason that goes into its record. Whoever serves it then sees a closed connection.
func (c *frontConn) cut(why string) {
	c.mu.Lock()
	c.rec.Error = why
	c.mu.Unlock()
	c.Conn.Close()
}

// note records a refusal, or that an allowed request failed.
func (c *frontConn) note(f refusal) {
	if f.kind == "upstream_failed" {
		c.ended(f.status, f.Reason)
		return
	}
	c.deny(f)
}

// refuseRaw records a refusal and answers it, where net/http has not seen the request.
func (c *frontConn) refuseRaw(f refusal) {
	c.deny(f)
	c.Conn.SetDeadline(time.Now().Add(time.Second))
	c.Conn.Write(f.raw()) // best effort: the connection ends anyway
}

func viaOf(method string) Via {
	switch method {
	case "":
		return ViaUnknown
	case http.MethodConnect:
		return ViaConnect
	}
	return ViaHTTP
}

// target returns "host:port" of the request.
func (c *frontConn) target() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.Host.Authority(c.rec.Port)
}

// identify sets what the records say about the request.
func (c *frontConn) identify(via Via, method string, host Host, port Port) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.Via, c.rec.Method, c.rec.Host, c.rec.Port = via, method, host, port
}

// deny writes a deny record.
func (c *frontConn) deny(f refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record(EventDeny)
	r.Verdict, r.Rule, r.Reason, r.Addr = Deny, f.Rule, f.Reason, f.addr
	if f.status != 0 {
		r.Status = f.status
	}
	c.done = true
	c.gate.observe(r)
}

// allow remembers the decision; a close record is due from now on.
func (c *frontConn) allow(d Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed = true
	c.rec.Verdict, c.rec.Rule, c.rec.Reason = d.Verdict, d.Rule, d.Reason
}

// open writes the open record, once, with the address that was reached.
func (c *frontConn) open(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.Addr = addr
	if c.opened || c.done {
		return
	}
	c.opened = true
	c.gate.observe(c.record(EventOpen))
}

// drop remembers answers for the name that were refused.
func (c *frontConn) drop(addrs []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.Dropped = addrs
}

// ended sets how the request ended: the status that the client saw, or 0 for what it was, and what went wrong, if
// anything did.
func (c *frontConn) ended(status int, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if status != 0 {
		c.rec.Status = status
	}
	if c.rec.Error == "" {
		c.rec.Error = problem
	}
}

func (c *frontConn) recordClose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.allowed || c.done {
		return
	}
	c.done = true
	c.gate.observe(c.record(EventClose))
}

// record returns what is known now. The caller holds mu.
func (c *frontConn) record(e Event) Record {
	r := c.rec
	r.Event, r.Time = e, time.Now()
	r.Up, r.Down, r.Duration = c.up.Load(), c.down.Load(), time.Since(c.accepted)
	return r
}
