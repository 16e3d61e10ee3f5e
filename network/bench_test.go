package network

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// BenchmarkConnect opens a connection, sends a ClientHello and waits for it to come back.
func BenchmarkConnect(b *testing.B) {
	r := newRig(b, Policy{AllowedDomains: rules(b, "good.test")}, func(r *rig) { r.gate.Observe = func(Record) {} })
	r.peer(func(c net.Conn) { io.Copy(c, c); c.Close() })
	first := helloOf(b, "good.test")
	ping := func(b *testing.B, c net.Conn, br io.Reader) {
		if _, err := c.Write(first); err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, br, int64(len(first))); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			c, err := net.Dial("tcp", r.target)
			require.NoError(b, err)
			ping(b, c, c)
		}
	})
	through := func(target string) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c, br := openTunnel(b, r, target)
				ping(b, c, br)
				r.mu.Lock()
				r.dialled = r.dialled[:0]
				r.mu.Unlock()
			}
		}
	}
	b.Run("gateway", through("good.test:443"))
	first = []byte("SSH-2.0-x\r\n")
	b.Run("gateway_without_TLS", through("good.test:22"))
}

// BenchmarkHello is what the gateway does with a client's first bytes.
func BenchmarkHello(b *testing.B) {
	raw, good := helloOf(b, "good.test"), host(b, "good.test")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		h, _, err := readHello(&heldConn{in: raw, step: len(raw)})
		if _, reason := h.check(good); err != nil || reason != "" {
			b.Fatal(err, reason)
		}
	}
}

func openTunnel(b *testing.B, r *rig, target string) (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", r.addr)
	require.NoError(b, err)
	c.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.WriteString(c, connectTo(target))
	require.NoError(b, err)
	br := bufio.NewReader(c)
	for range 2 {
		if _, err := br.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	return c, br
}

// BenchmarkTunnelThroughput sends 64 KiB blocks through one connection to a peer that discards them.
func BenchmarkTunnelThroughput(b *testing.B) {
	r := newRig(b, Policy{AllowedDomains: rules(b, "good.test")}, nil)
	r.peer(func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	send := func(b *testing.B, c net.Conn) {
		block := make([]byte, 64<<10)
		b.SetBytes(int64(len(block)))
		for b.Loop() {
			if _, err := c.Write(block); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
	}
	b.Run("direct", func(b *testing.B) {
		c, err := net.Dial("tcp", r.target)
		require.NoError(b, err)
		send(b, c)
	})
	b.Run("gateway", func(b *testing.B) {
		c, _ := openTunnel(b, r, "good.test:22")
		send(b, c)
	})
}

// BenchmarkHead is what the gateway does before net/http sees a request.
func BenchmarkHead(b *testing.B) {
	raw := []byte(get("http://good.test/a/b?c=d", "good.test", "User-Agent: x", "Accept: */*", "Accept-Encoding: gzip", "X-Api-Key: abc"))
	b.ReportAllocs()
	for b.Loop() {
		end, _ := headEnd(raw, 0)
		if _, err := parseHead(raw[:end], Host{}); err != nil {
			b.Fatal(err)
		}
	}
}
