package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// endTLS answers a tunnel to the model API by being the model API: the client's TLS ends here, with a certificate that
// only its sandbox trusts, and what it asks is a request of the model route like any other. A real tunnel there would
// let the sandbox use somebody else's key, and carry data out into that account.
func (g *Gateway) endTLS(ctx context.Context, c *frontConn, client tunnelClient) {
	welcome, early := client.accept()
	if _, err := io.WriteString(c.Conn, welcome); err != nil {
		c.ended(0, "client: "+err.Error())
		c.Close()
		return
	}
	conn := tls.Server(&earlyConn{Conn: c, early: early}, &tls.Config{GetCertificate: g.Model.certificate, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, g.limits.HeaderTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		c.ended(0, "TLS of the client: "+err.Error())
		c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	g.slots.Add(1) // the inner connection gives it back
	inner := g.newFrontConn(conn)
	inner.origin = g.Model.Host
	if !g.ended.give(inner) {
		inner.Close()
	}
}

// certificate holds the client to the name that it connected to.
func (m *ModelRoute) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName != m.Host.String() {
		return nil, fmt.Errorf("the server name is %q, not %s", hello.ServerName, m.Host)
	}
	return &m.CA.leaf, nil
}

// earlyConn is a connection of which the first bytes were read already.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		if c.early = c.early[n:]; len(c.early) == 0 {
			c.early = nil // its memory is not for the connection's lifetime
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// handover is a listener whose connections come from within.
type handover struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandover() *handover { return &handover{conns: make(chan net.Conn), done: make(chan struct{})} }

// give passes conn on; false: the listener is closed.
func (h *handover) give(conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.done:
		return false
	}
}

// Accept waits for the next connection.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and give.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is that of no network.
func (h *handover) Addr() net.Addr { return &net.UnixAddr{Name: "tls", Net: "unix"} }
