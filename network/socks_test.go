package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSOCKSCarriesBothWays(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	c, reply := r.socks(socksName("GOOD.test.", 22))
	require.Equal(t, socksSucceeded, reply)
	request := "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
	io.WriteString(c, request)
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(all), "GET /x host=h")
	c.Close()
	_, dialled, asked := r.seen()
	assert.Equal(t, []netip.AddrPort{netip.AddrPortFrom(publicAddr, 22)}, dialled)
	assert.Equal(t, []string{"good.test."}, asked, "one question, without search list")
	rec := r.await(EventClose)
	assert.Equal(t, Record{Event: EventClose, Via: ViaSOCKS, Host: host(t, "good.test"), Port: 22, Verdict: Allow,
		Rule: `allowed_domains "good.test"`, Reason: "allowed_domains names good.test:22", Addr: publicAddr,
		Time: rec.Time, Up: int64(len(request)), Down: int64(len(all)), Duration: rec.Duration}, rec)
}

// The greeting, the request and what follows may come in any pieces.
func TestSOCKSByteByByte(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	r.peer(func(c net.Conn) { io.Copy(c, c); c.Close() })
	c := r.connect()
	go func() {
		for _, b := range []byte("\x05\x03\x01\x00\x02" + honestSOCKS + "abc") {
			c.Write([]byte{b})
			time.Sleep(time.Millisecond)
		}
		c.(*net.TCPConn).CloseWrite()
	}()
	require.Equal(t, socksSucceeded, r.socksReply(c))
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "abc", string(all))
}

func TestSOCKSEarlyBytes(t *testing.T) {
	for _, size := range []int{1, 100, 5000, 60000} {
		r := newRig(t, goodPolicy(t), nil)
		got := make(chan string, 1)
		r.peer(func(c net.Conn) {
			b, _ := io.ReadAll(c)
			got <- string(b)
			c.Close()
		})
		early := strings.Repeat("e", size)
		c, reply := r.socks(honestSOCKS + early)
		require.Equal(t, socksSucceeded, reply)
		_, err := io.WriteString(c, "late")
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		assert.Equal(t, early+"late", <-got)
		assert.Equal(t, int64(size+4), r.await(EventClose).Up)
	}
}

func TestSOCKSHalfClose(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	r.peer(func(c net.Conn) {
		b, _ := io.ReadAll(c) // until the client's end
		fmt.Fprintf(c, "read %d", len(b))
		c.Close()
	})
	c, _ := r.socks(honestSOCKS)
	io.WriteString(c, "abc")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "read 3", string(all))

	r.peer(func(c net.Conn) { // the other way round
		io.WriteString(c, "hello")
		c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		assert.Equal(t, "bye", string(b))
		c.Close()
	})
	r.forget()
	c, _ = r.socks(honestSOCKS)
	all, err = io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(all))
	io.WriteString(c, "bye")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	rec := r.await(EventClose)
	assert.Equal(t, int64(3), rec.Up)
	assert.Empty(t, rec.Error)
}

func TestSOCKSIdle(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.IdleTimeout = 200 * time.Millisecond })
	r.peer(func(c net.Conn) { io.Copy(c, c) })
	c, _ := r.socks(honestSOCKS)
	_, err := c.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.Equal(t, "idle for 200ms", r.await(EventClose).Error)
}

func TestSOCKSHandshakeTimeout(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.HeaderTimeout = 200 * time.Millisecond })
	for name, start := range map[string]string{"greeting": "\x05\xff", "request": socksGreeting + "\x05\x01\x00\x03\xff"} {
		t.Run(name, func(t *testing.T) {
			r.forget()
			c := r.connect()
			io.WriteString(c, start)
			go func() {
				for range 50 { // byte by byte does not help
					c.Write([]byte{0})
					time.Sleep(10 * time.Millisecond)
				}
			}()
			answer, _ := io.ReadAll(c)
			assert.LessOrEqual(t, len(answer), 2, "no reply")
			assert.Equal(t, "the SOCKS handshake was not complete after 200ms", r.await(EventDeny).Reason)
		})
	}
	// The deadline is the handshake's: a tunnel may be silent for longer.
	r.peer(func(c net.Conn) { io.Copy(c, c) })
	c, reply := r.socks(honestSOCKS)
	require.Equal(t, socksSucceeded, reply)
	time.Sleep(300 * time.Millisecond)
	io.WriteString(c, "x")
	_, err := io.ReadFull(c, make([]byte, 1))
	assert.NoError(t, err)
}

func TestSOCKSEndsWithinTheHandshake(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	for _, start := range []string{"\x05", "\x05\x02\x00", socksGreeting, socksGreeting + honestSOCKS[:8]} {
		r.forget()
		c := r.connect()
		io.WriteString(c, start)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		io.ReadAll(c)
		rec := r.await(EventDeny)
		assert.Equal(t, "the connection ended within a SOCKS handshake", rec.Reason)
		assert.Equal(t, ViaSOCKS, rec.Via)
	}
}

func TestSOCKSOffersNoAuthentication(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	for _, greeting := range []string{"\x05\x01\x02", "\x05\x02\x01\x02", "\x05\x00"} {
		r.forget()
		c := r.connect()
		io.WriteString(c, greeting)
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, "\x05\xff", string(answer))
		assert.Contains(t, r.await(EventDeny).Reason, "insists on authentication")
	}
	assert.Equal(t, socksSucceeded, r.sendSOCKS(honestSOCKS))
}

func TestSOCKSUpstreamFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		dial  error
		name  string
		reply socksReply
		text  string
	}{
		"no such host":       {nil, "gone.test", socksNoHost, "resolve gone.test: no such host"},
		"connection refused": {syscall.ECONNREFUSED, "good.test", socksConnRefused, "connection refused"},
		"no route":           {syscall.EHOSTUNREACH, "good.test", socksNoHost, "no route to host"},
		"no network":         {syscall.ENETUNREACH, "good.test", socksNoNetwork, "network is unreachable"},
		"too slow":           {context.DeadlineExceeded, "good.test", socksNoHost, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Policy{AllowedDomains: rules(t, "good.test", "gone.test", "other.test")}, func(r *rig) {
				r.dns.answers = map[string][]netip.Addr{"good.test": {publicAddr}, "other.test": {publicAddr2}}
				dial := r.gate.Dial
				r.gate.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					if to.Addr() == publicAddr {
						return nil, &net.OpError{Op: "dial", Err: tt.dial}
					}
					return dial(ctx, to)
				}
			})
			assert.Equal(t, tt.reply, r.sendSOCKS(socksName(tt.name, 443)))
			rec := r.await(EventClose)
			assert.Equal(t, Allow, rec.Verdict, "the policy had allowed it")
			assert.Contains(t, rec.Error, tt.text)
			assert.Zero(t, rec.Status)
			assert.Equal(t, socksSucceeded, r.sendSOCKS(socksName("other.test", 443)))
		})
	}
}

func TestSOCKSConnectionLimit(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.Connections = 1 })
	r.peer(func(c net.Conn) { io.Copy(c, c); c.Close() })
	first, reply := r.socks(honestSOCKS)
	require.Equal(t, socksSucceeded, reply)

	assert.Equal(t, socksFailed, r.sendSOCKS(honestSOCKS))
	rec := r.await(EventDeny)
	assert.Equal(t, "limits.connections = 1", rec.Rule)
	assert.Equal(t, "good.test:22", rec.Host.Authority(rec.Port))
	status, _, _ := r.send(honestGet)
	assert.Equal(t, 503, status, "HTTP is told in HTTP")

	r.forget()
	slow := r.connect()
	start := time.Now()
	io.WriteString(slow, socksGreeting)
	io.ReadAll(slow)
	assert.Less(t, time.Since(start), 5*time.Second, "one too many may not stay as long as others")
	assert.Equal(t, "limits.connections = 1", r.await(EventDeny).Rule)

	first.Close()
	require.Eventually(t, func() bool { return r.gate.slots.Load() == 0 }, 5*time.Second, time.Millisecond)
	assert.Equal(t, socksSucceeded, r.sendSOCKS(honestSOCKS))
}

// Beyond the limit and its spare nobody is even read.
func TestConnectionLimitIsHard(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.Connections = 1 })
	r.peer(func(c net.Conn) { io.Copy(c, c) })
	r.tunnel("good.test:443")
	r.gate.slots.Add(overSpare)
	defer r.gate.slots.Add(-overSpare)
	c := r.connect()
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "HTTP/1.1 503 ")
}

func TestSOCKSToTheModel(t *testing.T) {
	r, ca := modelRig(t, "api.model.test", "good.test")
	c, reply := r.socks(socksName("api.model.test", 443))
	require.Equal(t, socksSucceeded, reply)
	answer, err := speak(t, c, ca, "api.model.test", request("GET /v1/settings?a=b HTTP/1.1", "Host: api.model.test", "X-Api-Key: placeholder-key"))
	require.NoError(t, err)
	assert.Contains(t, answer, `model saw GET /v1/settings?a=b api.model.test ""`)
	_, dialled, asked := r.seen()
	assert.Empty(t, dialled, "nothing may leave")
	assert.Empty(t, asked)

	c, reply = r.socks(socksName("api.model.test", 443))
	require.Equal(t, socksSucceeded, reply)
	_, err = speak(t, c, ca, "good.test", request("GET / HTTP/1.1", "Host: good.test"))
	assert.Error(t, err, "TLS to another name")

	// SOCKS does not come again within TLS.
	c, _ = r.socks(socksName("api.model.test", 443))
	answer, err = speak(t, c, ca, "api.model.test", socksGreeting+honestSOCKS)
	require.NoError(t, err)
	assert.Empty(t, answer)
	_, dialled, _ = r.seen()
	assert.Empty(t, dialled)
	assert.Equal(t, socksSucceeded, r.sendSOCKS(honestSOCKS))
}

func TestSOCKSToTheModelIsNoTunnel(t *testing.T) {
	r, _ := modelRig(t, "api.model.test", "good.test")
	bare, _ := modelRig(t, "api.model.test", "good.test")
	bare.gate.Model.CA = nil
	closed, _ := modelRig(t, "good.test")
	for name, tt := range map[string]struct {
		r      *rig
		port   uint16
		reason string
	}{
		"port 80":      {r, 80, "the model API is reached as http://api.model.test/"},
		"another port": {r, 8443, "the model API is reached as http://api.model.test/"},
		"without a CA": {bare, 443, "the model API is reached as http://api.model.test/"},
		"not allowed":  {closed, 443, "no entry of allowed_domains"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.r.forget()
			assert.Equal(t, socksNotAllowed, tt.r.sendSOCKS(socksName("api.model.test", tt.port)))
			assert.Contains(t, tt.r.await(EventDeny).Reason, tt.reason)
			_, dialled, asked := tt.r.seen()
			assert.Empty(t, dialled)
			assert.Empty(t, asked)
			assert.Equal(t, socksSucceeded, tt.r.sendSOCKS(socksName("good.test", tt.port)))
		})
	}
}

func TestSOCKSCarriesNoCredentialInAName(t *testing.T) {
	r, _ := modelRig(t, "*")
	assert.Equal(t, socksNotAllowed, r.sendSOCKS(socksName("placeholder-key.evil.test", 443)))
	assert.Contains(t, r.await(EventDeny).Reason, "carries the model's credential")
	_, dialled, asked := r.seen()
	assert.Empty(t, dialled)
	assert.Empty(t, asked)
	assert.Equal(t, socksSucceeded, r.sendSOCKS(socksName("placeholder.evil.test", 443)))
}

func TestSOCKSPinnedName(t *testing.T) {
	r := newRig(t, Policy{AllowedDomains: rules(t, "db.test"), Hosts: map[string]netip.Addr{"db.test": loopback4}}, nil)
	assert.Equal(t, socksSucceeded, r.sendSOCKS(socksName("db.test", 5432)))
	_, dialled, asked := r.seen()
	assert.Equal(t, []netip.AddrPort{netip.AddrPortFrom(loopback4, 5432)}, dialled)
	assert.Empty(t, asked)
	assert.Equal(t, socksNotAllowed, r.sendSOCKS(socksAddr("127.0.0.1", 5432)))
}

func TestSOCKSRequestEnd(t *testing.T) {
	for _, whole := range []string{honestSOCKS, socksName("", 1), socksName(strings.Repeat("a", 255), 1), socksAddr("10.0.0.5", 1), socksAddr("::1", 1)} {
		for n := 1; n < len(whole); n++ {
			end, err := socksRequestEnd([]byte(whole[:n]), 0)
			assert.NoError(t, err)
			assert.Zero(t, end, "%q", whole[:n])
		}
		end, err := socksRequestEnd([]byte(whole+"more"), 0)
		assert.NoError(t, err)
		assert.Equal(t, len(whole), end)
	}
	for _, whole := range []string{"\x05\x00", "\x05\x01\x00", "\x05\xff" + strings.Repeat("a", 255)} {
		for n := 1; n < len(whole); n++ {
			end, _ := socksGreetingEnd([]byte(whole[:n]), 0)
			assert.Zero(t, end, "%q", whole[:n])
		}
		end, _ := socksGreetingEnd([]byte(whole+"more"), 0)
		assert.Equal(t, len(whole), end)
	}
}

// A tunnel is held to its name whichever way it was opened.
func TestTLSInSOCKSTunnels(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	c, reply := r.socks(socksName("good.test", 443))
	require.Equal(t, socksSucceeded, reply)
	_, err := c.Write(helloOf(t, "evil.test"))
	require.NoError(t, err)
	answer, _ := io.ReadAll(c)
	require.NotEmpty(t, answer)
	assert.Equal(t, byte(21), answer[0], "a TLS alert")
	rec := r.await(EventDeny)
	assert.Equal(t, "built-in: server name", rec.Rule)
	assert.Equal(t, ViaSOCKS, rec.Via)
	assert.Zero(t, rec.Up)
}
