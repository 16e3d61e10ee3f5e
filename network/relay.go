package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTimeout is how long a half-closed tunnel may be silent.
const lingerTimeout = time.Minute

// relay carries bytes both ways until both sides have ended or one has failed, or until the client's first bytes are
// refused, of which peer then sees none. Early is what the client sent before it had its answer. Each direction ends by
// itself: an end of file on one side is passed on as one. Both connections are closed on return.
func (c *frontConn) relay(ctx context.Context, peer *peerConn, early []byte) error {
	abort := func() { reset(c.Conn); reset(peer) }
	defer context.AfterFunc(ctx, abort)()
	defer peer.Close()

	client := &earlyConn{Conn: c.Conn, early: early}
	back := make(chan error, 1)
	answer := sync.OnceFunc(func() { go func() { back <- c.pump(c.Conn, peer, &c.down, abort) }() })
	if peer.port != httpsPort {
		answer() // a server may be the first to speak
	}
	ok, err := c.peek(client, peer.host, peer.port)
	if !ok {
		abort()
	}
	answer()
	if ok {
		err = c.pump(peer, client, &c.up, abort)
	}
	return errors.Join(err, <-back)
}

// pump copies src to dst, counts, and passes the end on. After an error nothing can be saved, so it resets both: a
// truncated stream must not look like a complete one.
func (c *frontConn) pump(dst, src net.Conn, count *atomic.Int64, abort func()) error {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for {
		n, err := src.Read(*buf)
		if n > 0 {
			if _, werr := dst.Write((*buf)[:n]); werr != nil {
				abort()
				return unlessClosed(werr)
			}
			count.Add(int64(n))
			c.idle.touch()
		}
		if err == io.EOF {
			c.idle.shorten(lingerTimeout)
			closeWrite(dst) // if dst has failed, the other direction says so
			return nil
		}
		if err != nil {
			abort()
			return unlessClosed(err)
		}
	}
}

// unlessClosed drops the error of a connection that this process closed: whoever did that gave the reason.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// proxyBuffers lends the same buffers to httputil.ReverseProxy.
type proxyBuffers struct{}

func (proxyBuffers) Get() []byte  { return *copyBuffers.Get().(*[]byte) }
func (proxyBuffers) Put(b []byte) { copyBuffers.Put(&b) }

// closeWrite ends one direction; a connection that cannot do that ends as a whole.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// reset closes a connection so that the other side sees an error instead of an end.
func reset(c net.Conn) {
	if p, ok := c.(*peerConn); ok {
		c = p.Conn
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// idleTimer calls expire once nothing has touched it for its limit.
type idleTimer struct {
	limit  atomic.Int64
	last   atomic.Int64 // nanoseconds since epoch
	epoch  time.Time
	expire func()
	mu     sync.Mutex
	timer  *time.Timer // nil: stopped
}

func newIdleTimer(limit time.Duration, expire func()) *idleTimer {
	t := &idleTimer{epoch: time.Now(), expire: expire}
	t.limit.Store(int64(limit))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(limit, t.fire)
	return t
}

func (t *idleTimer) touch() { t.last.Store(int64(time.Since(t.epoch))) }

// shorten lowers the limit from now on.
func (t *idleTimer) shorten(limit time.Duration) {
	if int64(limit) >= t.limit.Load() {
		return
	}
	t.limit.Store(int64(limit))
	t.touch()
	t.arm(limit)
}

func (t *idleTimer) fire() {
	left := t.limit.Load() - (int64(time.Since(t.epoch)) - t.last.Load())
	if left > 0 {
		t.arm(time.Duration(left))
		return
	}
	t.expire()
}

func (t *idleTimer) arm(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Reset(d)
	}
}

func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
