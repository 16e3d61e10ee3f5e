package network

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tlsClient opens a tunnel to target and speaks TLS in it.
type tlsClient struct {
	target, name string
	set          func(*tls.Config)
	change       func([]byte) []byte // of the hello
	step         int                 // bytes to send at a time; 0: all
	early        bool                // the hello goes out with the CONNECT
}

var honestTLS = tlsClient{target: "good.test:443", name: "good.test"}

// tlsTrick is a way around the server name, and the same thing done honestly.
type tlsTrick struct {
	row    int // in spec/gateway.md §1.3
	name   string
	evil   tlsClient
	alert  string
	reason string // part of the deny record's reason
	twin   tlsClient
}

func tlsTricks(t testing.TB) []tlsTrick {
	type c = tlsClient
	good := honestTLS
	return []tlsTrick{
		{16, "another name", c{target: "good.test:443", name: "evil.test"}, "unrecognized name", `server "evil.test", but the tunnel is to good.test`, good},
		{16, "another allowed name", c{target: "good.test:443", name: "a.wild.test"}, "unrecognized name", `server "a.wild.test"`, c{target: "a.wild.test:443", name: "a.wild.test"}},
		{16, "another name at another port", c{target: "good.test:8443", name: "evil.test"}, "unrecognized name", `server "evil.test"`, c{target: "good.test:8443", name: "good.test"}},
		{16, "a name below", c{target: "good.test:443", name: "a.good.test"}, "unrecognized name", `server "a.good.test"`, c{target: "GOOD.test.:443", name: "GoOd.TeSt"}},
		{16, "a name with NUL", c{target: "good.test:443", name: "good.testx", change: renamed("good.testx", "good.test\x00")}, "unrecognized name", `server "good.test\x00"`, good},
		{16, "a name with final dot", c{target: "good.test:443", name: "good.testx", change: renamed("good.testx", "good.test.")}, "error decoding message", "cannot be read", good},
		{18, "ECH", c{target: "good.test:443", name: "evil.test", set: hiding(t, "good.test")}, "access denied", "encrypted part (ECH)", c{target: "good.test:443", name: "good.test", set: only13}},
		{19, "no name", c{target: "good.test:443"}, "unrecognized name", "asks for no server by name", good},
		{19, "an address as name", c{target: "good.test:443", name: "10a0b0c5", change: renamed("10a0b0c5", "10.0.0.5")}, "unrecognized name", `server "10.0.0.5"`, good},
		{19, "a name at an address", c{target: "10.0.0.5:443", name: "good.test"}, "unrecognized name", "tunnel is to the address 10.0.0.5", c{target: "10.0.0.5:443"}},
		{19, "the address as its name", c{target: "10.0.0.5:443", name: "10a0b0c5", change: renamed("10a0b0c5", "10.0.0.5")}, "unrecognized name", "must ask for none", c{target: "10.0.0.5:8443"}},
		{20, "byte at a time", c{target: "good.test:443", name: "evil.test", step: 1}, "unrecognized name", "evil.test", c{target: "good.test:443", name: "good.test", step: 1}},
		{20, "records of a byte", c{target: "good.test:443", name: "evil.test", change: inRecords(1)}, "unrecognized name", "evil.test", c{target: "good.test:443", name: "good.test", change: inRecords(1)}},
		{20, "records and segments", c{target: "good.test:8443", name: "evil.test", change: inRecords(7), step: 3}, "unrecognized name", "evil.test", c{target: "good.test:8443", name: "good.test", change: inRecords(7), step: 3}},
		{20, "more than 2 KiB", c{target: "good.test:443", name: "evil.test", set: padded(4 << 10)}, "unrecognized name", "evil.test", c{target: "good.test:443", name: "good.test", set: padded(4 << 10)}},
		{20, "more than 64 KiB", c{target: "good.test:443", name: "good.test", set: padded(14 << 10), change: inRecords(1)}, "error decoding message", "longer than 65536 bytes", c{target: "good.test:443", name: "good.test", set: padded(14 << 10), change: inRecords(2)}},
		{40, "early hello", c{target: "good.test:443", name: "evil.test", early: true}, "unrecognized name", "evil.test", c{target: "good.test:443", name: "good.test", early: true}},
		{40, "early hello in records", c{target: "good.test:443", name: "evil.test", early: true, set: padded(14 << 10), change: inRecords(1000)}, "unrecognized name", "evil.test", c{target: "good.test:443", name: "good.test", early: true, set: padded(14 << 10), change: inRecords(1000)}},
	}
}

// helloConn sends its first Write as the tlsClient says, and a CONNECT before it.
type helloConn struct {
	net.Conn
	rig    *rig
	client tlsClient
	read   *bufio.Reader
	opened bool
}

func (c *helloConn) Read(p []byte) (int, error) { return c.read.Read(p) }

func (c *helloConn) Write(p []byte) (int, error) {
	if c.opened {
		return c.Conn.Write(p)
	}
	c.opened = true
	out := p
	if c.client.change != nil {
		out = c.client.change(p)
	}
	if c.client.early {
		io.WriteString(c.Conn, connectTo(c.client.target)+string(out))
		c.rig.expect200(c.read)
		return len(p), nil
	}
	io.WriteString(c.Conn, connectTo(c.client.target))
	c.rig.expect200(c.read)
	step := c.client.step
	if step == 0 {
		step = len(out)
	}
	for len(out) > 0 {
		n, err := c.Conn.Write(out[:min(step, len(out))])
		if err != nil {
			return 0, err
		}
		out = out[n:]
	}
	return len(p), nil
}

// get opens the tunnel and asks for /x.
func (client tlsClient) get(r *rig) (string, error) {
	raw := r.connect()
	defer raw.Close()
	config := &tls.Config{ServerName: client.name, InsecureSkipVerify: true}
	if client.set != nil {
		client.set(config)
	}
	conn := tls.Client(&helloConn{Conn: raw, rig: r, client: client, read: bufio.NewReader(raw)}, config)
	if err := conn.Handshake(); err != nil {
		return "", err
	}
	io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	body, err := io.ReadAll(conn)
	return string(body), err
}

// countingListener counts what its connections receive.
type countingListener struct {
	net.Listener
	received atomic.Int64
	ended    atomic.Int64 // connections
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countingConn{c, l}, err
}

type countingConn struct {
	net.Conn
	l *countingListener
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.received.Add(int64(n))
	if err != nil {
		c.l.ended.Add(1)
	}
	return n, err
}

// tlsRig is a rig whose upstream is a TLS server.
func tlsRig(t testing.TB, set func(*rig)) (*rig, *countingListener) {
	r := newRig(t, conformancePolicy(t), set)
	up := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	l := &countingListener{Listener: up.Listener}
	up.Listener = l
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	up.StartTLS()
	t.Cleanup(up.Close)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = l.Addr().String()
	return r, l
}

func TestTLSInTunnels(t *testing.T) {
	r, up := tlsRig(t, nil)
	for _, k := range tlsTricks(t) {
		t.Run(k.name, func(t *testing.T) {
			r.forget()
			received, ended := up.received.Load(), up.ended.Load()
			_, err := k.evil.get(r)
			assert.ErrorContains(t, err, "remote error: tls: "+k.alert)
			rec := r.await(EventDeny)
			assert.Equal(t, "built-in: server name", rec.Rule)
			assert.Contains(t, rec.Reason, k.reason)
			assert.Equal(t, 200, rec.Status)
			assert.Zero(t, rec.Up, "nothing got through")
			require.Eventually(t, func() bool { return up.ended.Load() > ended }, 5*time.Second, time.Millisecond)
			assert.Equal(t, received, up.received.Load(), "the upstream has seen nothing")
			events := eventsOf(r)
			assert.Equal(t, []Event{EventOpen, EventDeny}, events)

			r.forget()
			answer, err := k.twin.get(r)
			require.NoError(t, err, "the honest twin must get out")
			assert.Contains(t, answer, "GET /x host=h")
			assert.Empty(t, r.await(EventClose).Error)
			assert.Equal(t, []Event{EventOpen, EventClose}, eventsOf(r))
		})
	}
}

func eventsOf(r *rig) (events []Event) {
	records, _, _ := r.seen()
	for _, rec := range records {
		events = append(events, rec.Event)
	}
	return events
}

func TestPort443IsForTLS(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	got := make(chan string, 1)
	r.peer(func(c net.Conn) { // speaks first, like ssh and smtp
		defer c.Close()
		io.WriteString(c, "banner\n")
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	for _, first := range []string{"SSH-2.0-x\r\n", "GET / HTTP/1.1\r\n\r\n", "\x15\x03\x01\x00\x02\x01\x5a", "\x80\x2e\x01\x03\x01"} {
		r.forget()
		c, br := r.tunnel("good.test:443")
		io.WriteString(c, first)
		all, err := io.ReadAll(br)
		assert.NoError(t, err)
		assert.Empty(t, string(all), "neither the banner nor an alert")
		rec := r.await(EventDeny)
		assert.Contains(t, rec.Reason, "port 443 is for TLS")
		assert.Equal(t, ruleServerName, rec.Rule)
		assert.Zero(t, rec.Up)
		assert.Zero(t, rec.Down)
		assert.Empty(t, <-got)

		c, br = r.tunnel("good.test:22")
		line, err := br.ReadString('\n') // before the client says anything
		require.NoError(t, err)
		assert.Equal(t, "banner\n", line)
		io.WriteString(c, first)
		c.Close()
		assert.Equal(t, first, <-got)
	}
}

func TestTunnelThatSaysNothing(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.HeaderTimeout = 200 * time.Millisecond })
	ended := make(chan struct{}, 2)
	r.peer(func(c net.Conn) { io.Copy(c, c); c.Close(); ended <- struct{}{} })
	_, br := r.tunnel("good.test:443")
	_, err := br.ReadByte()
	assert.Error(t, err)
	assert.Equal(t, "the client said nothing for 200ms", r.await(EventClose).Error)
	<-ended

	c, br := r.tunnel("good.test:22")
	time.Sleep(400 * time.Millisecond) // where no hello is due, only the idle limit counts
	io.WriteString(c, "x")
	b, err := br.ReadByte()
	require.NoError(t, err)
	assert.Equal(t, byte('x'), b)

	r.forget()
	c, _ = r.tunnel("good.test:443")
	c.Close()
	rec := r.await(EventClose)
	assert.Empty(t, rec.Error, "a tunnel that was not used is no event")
}

func TestSlowHello(t *testing.T) {
	r, up := tlsRig(t, func(r *rig) { r.gate.Limits.HeaderTimeout = 200 * time.Millisecond })
	for _, target := range []string{"good.test:443", "good.test:8443"} {
		r.forget()
		c, br := r.tunnel(target)
		go func() {
			for _, b := range helloOf(t, "good.test") { // byte by byte does not help
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		all, _ := io.ReadAll(br) // what comes later makes it a reset
		assert.Equal(t, "\x15\x03\x03\x00\x02\x02\x32", string(all))
		assert.Contains(t, r.await(EventDeny).Reason, "not complete after 200ms")
		c.Close()
	}
	assert.Zero(t, up.received.Load())
	_, err := honestTLS.get(r)
	require.NoError(t, err)
}

func TestHelloCutShort(t *testing.T) {
	r, up := tlsRig(t, nil)
	c, br := r.tunnel("good.test:443")
	c.Write(helloOf(t, "good.test")[:100])
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(br)
	require.NoError(t, err)
	assert.Equal(t, "\x15\x03\x03\x00\x02\x02\x32", string(all))
	assert.Contains(t, r.await(EventDeny).Reason, "ended within the TLS hello")
	assert.Zero(t, up.received.Load())
	_, err = honestTLS.get(r)
	require.NoError(t, err)
}

// What follows the hello, at once or later, is none of the gateway's business, and its end is passed on.
func TestTunnelBehindTheHello(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	got := make(chan string, 1)
	r.peer(func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- string(b)
		io.WriteString(c, "read")
		c.Close()
	})
	hello := string(helloOf(t, "good.test"))
	for _, size := range []int{0, 1, 5000, 60000} {
		r.forget()
		early := hello + strings.Repeat("e", size)
		c := r.connect()
		io.WriteString(c, honestConnect+early)
		br := bufio.NewReader(c)
		r.expect200(br)
		io.WriteString(c, "late")
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		assert.Equal(t, early+"late", <-got)
		all, err := io.ReadAll(br)
		require.NoError(t, err)
		assert.Equal(t, "read", string(all))
		assert.Equal(t, int64(len(early)+4), r.await(EventClose).Up)
	}
}
