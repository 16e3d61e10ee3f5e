package network

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func goodPolicy(t testing.TB) Policy {
	return Policy{AllowedDomains: rules(t, "good.test", "other.test", "mixed.test")}
}

// tunnel opens a CONNECT tunnel and returns it behind the 200.
func (r *rig) tunnel(target string) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	c := r.connect()
	_, err := io.WriteString(c, connectTo(target))
	require.NoError(r.t, err)
	br := bufio.NewReader(c)
	r.expect200(br)
	return c, br
}

func (r *rig) expect200(br *bufio.Reader) {
	r.t.Helper()
	line, err := br.ReadString('\n')
	require.NoError(r.t, err)
	require.Equal(r.t, "HTTP/1.1 200 Connection established\r\n", line)
	line, err = br.ReadString('\n')
	require.NoError(r.t, err)
	require.Equal(r.t, "\r\n", line)
}

// peer replaces the upstream by a listener whose connections go to serve.
func (r *rig) peer(serve func(net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { l.Close() })
	r.mu.Lock()
	r.target = l.Addr().String()
	r.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
}

func TestZeroGatewayDeniesEverything(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var g Gateway
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	r := &rig{t: t, addr: l.Addr().String()}
	status, header, body := r.send(honestConnect)
	assert.Equal(t, 403, status)
	assert.Equal(t, `deny; rule="no rule"`, header.Get("X-Sandboxrun-Decision"))
	var answer struct {
		Error struct{ Type, Rule, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	assert.Equal(t, "policy_denied", answer.Error.Type)
	assert.Equal(t, "no rule", answer.Error.Rule)
	assert.Equal(t, `good.test:443 is denied by the sandbox policy, decided by no rule: allowed_domains is empty, so nothing is allowed; `+
		`add "good.test" to allow good.test:443. Retrying will not help.`, answer.Error.Message)
	require.NoError(t, g.Close())
	require.NoError(t, <-served)
	require.NoError(t, g.Close(), "again")
}

func TestDenialNamesTheRule(t *testing.T) {
	r := newRig(t, Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "*.bad.test")}, nil)
	_, header, body := r.send(get("http://a.bad.test/", "a.bad.test"))
	assert.Equal(t, `deny; rule="denied_domains \"*.bad.test\""`, header.Get("X-Sandboxrun-Decision"))
	assert.Contains(t, body, `"rule":"denied_domains \"*.bad.test\""`)
	rec := r.await(EventDeny)
	assert.Equal(t, `denied_domains "*.bad.test"`, rec.Rule)
	assert.Equal(t, ViaHTTP, rec.Via)
	assert.Equal(t, "GET", rec.Method)
	assert.Equal(t, 403, rec.Status)
	status, _, _ := r.send(honestGet)
	assert.Equal(t, 200, status)
}

func TestMixedAnswers(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.dns.answers = conformanceDNS() })
	status, _, _ := r.send(connectTo("mixed.test:443"))
	require.Equal(t, 200, status)
	_, dialled, asked := r.seen()
	assert.Equal(t, []netip.AddrPort{netip.AddrPortFrom(publicAddr, 443)}, dialled, "only the answer that passed")
	assert.Equal(t, []string{"mixed.test."}, asked, "one question, without search list")
	rec := r.await(EventClose)
	assert.Equal(t, publicAddr, rec.Addr)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.1.1.1")}, rec.Dropped)
}

func TestSecondAddressIsTried(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) {
		r.dns.answers["good.test"] = []netip.Addr{netip.MustParseAddr("93.184.216.1"), publicAddr}
		dial := r.gate.Dial
		r.gate.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			c, err := dial(ctx, to)
			if to.Addr() != publicAddr {
				c.Close()
				return nil, fmt.Errorf("connection refused")
			}
			return c, err
		}
	})
	status, _, _ := r.send(honestConnect)
	assert.Equal(t, 200, status)
	assert.Equal(t, publicAddr, r.await(EventOpen).Addr)
}

func TestSilentAddressDoesNotHoldUpTheNext(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) {
		r.dns.answers["good.test"] = []netip.Addr{netip.MustParseAddr("93.184.216.1"), publicAddr}
		dial := r.gate.Dial
		r.gate.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == publicAddr {
				return dial(ctx, to)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	status, _, _ := r.send(honestConnect)
	assert.Equal(t, 200, status)
	assert.Equal(t, publicAddr, r.await(EventOpen).Addr)
}

func TestUpstreamFailure(t *testing.T) {
	r := newRig(t, Policy{AllowedDomains: rules(t, "good.test", "gone.test")}, func(r *rig) {
		r.dns.answers = map[string][]netip.Addr{"good.test": {publicAddr}}
	})
	for _, raw := range []string{connectTo("gone.test:443"), get("http://gone.test/", "gone.test")} {
		r.forget()
		status, header, body := r.send(raw)
		assert.Equal(t, 502, status)
		assert.Empty(t, header.Get("X-Sandboxrun-Decision"), "the policy had allowed it")
		assert.Contains(t, body, "resolve gone.test: no such host")
		assert.NotContains(t, body, "192.0.2.53", "the resolver is none of the sandbox's business")
		rec := r.await(EventClose)
		assert.Equal(t, Allow, rec.Verdict)
		assert.Equal(t, "resolve gone.test: no such host", rec.Error)
		assert.Equal(t, 502, rec.Status)
	}
	status, _, _ := r.send(honestGet)
	assert.Equal(t, 200, status)
}

func TestOwnAddressesUnknown(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) {
		r.gate.OwnAddrs = func() ([]netip.Addr, error) { return nil, fmt.Errorf("netlink is closed") }
	})
	status, _, body := r.send(honestConnect)
	assert.Equal(t, 502, status, body)
	_, dialled, _ := r.seen()
	assert.Empty(t, dialled)
}

func TestInterfaceAddresses(t *testing.T) {
	var g Gateway
	own, err := g.ownAddrs()
	require.NoError(t, err)
	assert.Contains(t, own, loopback4)
}

func TestPlainRequest(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	raw := "POST http://GOOD.test.:8080/a%2Fb/../c?x=1;y&z=%zz HTTP/1.1\r\nHost: good.test:8080\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"
	status, header, body := r.send(raw)
	require.Equal(t, 200, status, body)
	assert.Equal(t, "yes", header.Get("X-Upstream"))
	assert.Contains(t, body, "POST /a%2Fb/../c?x=1;y&z=%zz host=good.test:8080 len=5 te=[]")
	assert.Contains(t, body, "X-A: b")
	rec := r.await(EventClose)
	assert.Equal(t, 200, rec.Status)
	assert.Equal(t, int64(len(raw)), rec.Up)
	assert.Greater(t, rec.Down, int64(len(body)))
	assert.Equal(t, publicAddr, rec.Addr)
	assert.Equal(t, "good.test:8080", rec.Host.Authority(rec.Port))
	assert.Empty(t, rec.Error)
}

func TestPlainStripsHopByHop(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	_, _, body := r.send(get("http://good.test/", "good.test", "Connection: close, X-Secret", "X-Secret: 1", "Keep-Alive: 5",
		"Proxy-Authorization: Basic YTpi", "Proxy-Connection: keep-alive", "TE: gzip", "X-Kept: 1"))
	assert.Contains(t, body, "X-Kept: 1")
	for _, gone := range []string{"X-Secret", "Keep-Alive", "Proxy-", "Te:", "X-Forwarded-For", "User-Agent"} {
		assert.NotContains(t, body, gone)
	}
}

func TestNothingAfterARequestIsARequest(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	c := r.connect()
	io.WriteString(c, honestGet+honestGet)
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(all), "HTTP/1.1 "))
	assert.Contains(t, string(all), "Connection: close")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	r.up.Config.Handler = http.RedirectHandler("http://169.254.169.254/", http.StatusFound)
	status, header, _ := r.send(honestGet)
	assert.Equal(t, 302, status)
	assert.Equal(t, "http://169.254.169.254/", header.Get("Location"))
	_, dialled, _ := r.seen()
	assert.Len(t, dialled, 1)
	status, _, _ = r.send(get(header.Get("Location"), "169.254.169.254"))
	assert.Equal(t, 403, status, "what the client does with it is decided anew")
}

func TestHostsShareNoUpstreamConnection(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil) // both names have the same address
	for _, name := range []string{"good.test", "other.test", "good.test", "other.test"} {
		status, _, body := r.send(get("http://"+name+"/", name))
		require.Equal(t, 200, status)
		assert.Contains(t, body, "host="+name)
	}
	_, dialled, _ := r.seen()
	assert.Len(t, dialled, 2, "one for each name, reused for the same one")
}

func TestNothingIsRemembered(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	for range 3 {
		status, _, _ := r.send(connectTo("evil.test:443"))
		assert.Equal(t, 403, status)
		status, _, _ = r.send(connectTo("good.test:443"))
		assert.Equal(t, 200, status)
	}
	_, _, asked := r.seen()
	assert.Equal(t, []string{"good.test.", "good.test.", "good.test."}, asked, "resolved for each connection")
}

func TestNoProxyFromEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	r := newRig(t, goodPolicy(t), nil)
	status, _, _ := r.send(honestGet)
	assert.Equal(t, 200, status)
}

func TestEventsStreamUnbuffered(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/octet-stream"} {
		t.Run(kind, func(t *testing.T) { testStream(t, kind) })
	}
}

func testStream(t *testing.T, kind string) {
	r := newRig(t, goodPolicy(t), nil)
	next := make(chan string)
	r.up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		if kind != "text/event-stream" { // what has a length is no stream by its looks
			w.Header().Set("Content-Length", "190")
		}
		for s := range next {
			io.WriteString(w, s)
			w.(http.Flusher).Flush()
		}
	})
	c := r.connect()
	io.WriteString(c, honestGet)
	go func() { next <- "data: 0\n\n" }()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	lines := bufio.NewReader(resp.Body)
	for i := range 20 {
		line, err := lines.ReadString('\n') // blocks for ever if the event waits for the next one
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		if i < 19 {
			next <- fmt.Sprintf("data: %d\n\n", i+1)
		}
	}
	close(next)
}

func TestTunnelCarriesBothWays(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	c, br := r.tunnel("good.test:22")
	io.WriteString(c, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(br)
	require.NoError(t, err)
	assert.Contains(t, string(all), "GET /x host=h")
	c.Close()
	rec := r.await(EventClose)
	assert.Equal(t, int64(len("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")), rec.Up)
	assert.Equal(t, int64(len(all)), rec.Down)
	assert.Equal(t, Record{Event: EventClose, Via: ViaConnect, Host: host(t, "good.test"), Port: 22, Verdict: Allow,
		Rule: `allowed_domains "good.test"`, Reason: "allowed_domains names good.test:22", Addr: publicAddr, Status: 200,
		Time: rec.Time, Up: rec.Up, Down: rec.Down, Duration: rec.Duration}, rec)
}

func TestTunnelEarlyBytes(t *testing.T) {
	for _, size := range []int{1, 100, 5000, 60000} {
		r := newRig(t, goodPolicy(t), nil)
		got := make(chan string, 1)
		r.peer(func(c net.Conn) {
			b, _ := io.ReadAll(c)
			got <- string(b)
			c.Close()
		})
		early := strings.Repeat("e", size)
		c := r.connect()
		_, err := io.WriteString(c, connectTo("good.test:22")+early)
		require.NoError(t, err)
		r.expect200(bufio.NewReader(c))
		_, err = io.WriteString(c, "late")
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		assert.Equal(t, early+"late", <-got)
		assert.Equal(t, int64(size+4), r.await(EventClose).Up)
	}
}

func TestTunnelHalfClose(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	r.peer(func(c net.Conn) {
		b, _ := io.ReadAll(c) // until the client's end
		fmt.Fprintf(c, "read %d", len(b))
		c.Close()
	})
	c, br := r.tunnel("good.test:22")
	io.WriteString(c, "abc")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(br)
	require.NoError(t, err)
	assert.Equal(t, "read 3", string(all))

	r.peer(func(c net.Conn) { // the other way round: the server ends first
		io.WriteString(c, "hello")
		c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		assert.Equal(t, "bye", string(b))
		c.Close()
	})
	r.forget()
	c, br = r.tunnel("good.test:22")
	all, err = io.ReadAll(br)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(all))
	io.WriteString(c, "bye")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	rec := r.await(EventClose)
	assert.Equal(t, int64(3), rec.Up)
	assert.Empty(t, rec.Error)
}

func TestTunnelResetIsNotAnEnd(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	r.peer(func(c net.Conn) {
		io.WriteString(c, "half of it")
		time.Sleep(50 * time.Millisecond) // let the data leave before the reset discards it
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	_, br := r.tunnel("good.test:22")
	_, err := io.ReadAll(br)
	assert.ErrorContains(t, err, "reset", "a truncated stream must not look complete")
	assert.Contains(t, r.await(EventClose).Error, "reset")
}

func TestTunnelIdle(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.IdleTimeout = 200 * time.Millisecond })
	r.peer(func(c net.Conn) { io.Copy(c, c) })
	c, br := r.tunnel("good.test:22")
	for range 8 { // longer than the timeout, but never silent for as long
		time.Sleep(50 * time.Millisecond)
		io.WriteString(c, "x")
		_, err := br.ReadByte()
		require.NoError(t, err)
	}
	_, err := br.ReadByte()
	assert.Error(t, err)
	assert.Equal(t, "idle for 200ms", r.await(EventClose).Error)
}

func TestHeadTimeout(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.HeaderTimeout = 200 * time.Millisecond })
	c := r.connect()
	start := time.Now()
	for _, b := range []byte("GET http://good") { // byte by byte does not help
		c.Write([]byte{b})
		time.Sleep(30 * time.Millisecond)
	}
	_, err := c.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.Less(t, time.Since(start), 5*time.Second)
	assert.Contains(t, r.await(EventDeny).Reason, "not complete after 200ms")
	status, _, _ := r.send(honestGet)
	assert.Equal(t, 200, status)
}

func TestConnectionLimit(t *testing.T) {
	r := newRig(t, goodPolicy(t), func(r *rig) { r.gate.Limits.Connections = 2 })
	r.peer(func(c net.Conn) { io.Copy(c, c) })
	first, _ := r.tunnel("good.test:22")
	r.tunnel("good.test:22")

	c := r.connect() // no request: who says nothing is not waited for
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Equal(t, "limits.connections = 2", r.await(EventDeny).Rule)

	first.Close()
	r.await(EventClose)
	r.tunnel("good.test:22")
}

func TestPinnedNameIsNotResolved(t *testing.T) {
	p := Policy{AllowedDomains: rules(t, "db.test"), Hosts: map[string]netip.Addr{"db.test": loopback4}, AllowLocalhost: true}
	r := newRig(t, p, nil)
	for _, target := range []string{"db.test:5432", LocalhostName + ":5432"} {
		r.forget()
		status, _, _ := r.send(connectTo(target))
		assert.Equal(t, 200, status)
		_, dialled, asked := r.seen()
		assert.Equal(t, []netip.AddrPort{netip.AddrPortFrom(loopback4, 5432)}, dialled)
		assert.Empty(t, asked)
	}
}

func TestServeRefusesWhatIsNotBuilt(t *testing.T) {
	for _, c := range []struct {
		gate    *Gateway
		problem string
	}{
		{&Gateway{Policy: Policy{ParentProxy: "http://proxy.test:3128"}}, "parent_proxy"},
		{&Gateway{Policy: Policy{Intercept: rules(t, "a.test")}}, `intercept "a.test"`},
		{&Gateway{Policy: Policy{AllowResolved: prefixes("127.0.0.0/8")}}, "allow_resolved"},
		{&Gateway{Model: &ModelRoute{}}, "model route: no host"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		assert.ErrorContains(t, c.gate.Serve(l), c.problem)
		_, err = l.Accept()
		assert.ErrorIs(t, err, net.ErrClosed, "no listener is left open")
		assert.NoError(t, c.gate.Close())
	}
}

func TestServeAfterClose(t *testing.T) {
	var g Gateway
	require.NoError(t, g.Close())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.ErrorIs(t, g.Serve(l), net.ErrClosed)
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	r := newRig(t, goodPolicy(t), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	second := make(chan error, 1)
	go func() { second <- r.gate.Serve(l) }()
	r.peer(func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	tunnel, _ := r.tunnel("good.test:443")
	plain := r.connect()
	io.WriteString(plain, honestGet) // the peer never answers
	half := r.connect()
	io.WriteString(half, "GET http://go")
	socks, _ := r.socks(honestSOCKS)
	halfSOCKS := r.connect()
	io.WriteString(halfSOCKS, socksGreeting)
	require.Eventually(t, func() bool { _, dialled, _ := r.seen(); return len(dialled) == 3 }, 5*time.Second, time.Millisecond)

	require.NoError(t, r.gate.Close())
	require.NoError(t, <-second)
	for _, c := range []net.Conn{tunnel, plain, half, socks, halfSOCKS} {
		_, err := io.ReadAll(c) // ends; a 502 may come first
		_ = err
	}
	_, err = net.Dial("tcp", r.addr)
	assert.Error(t, err, "nobody listens")
	records, _, _ := r.seen()
	closed := 0
	for _, rec := range records {
		if rec.Event == EventClose {
			closed++
		}
	}
	assert.Equal(t, 3, closed, "%+v", records)
	r.up.Close()
	eventuallyGoroutines(t, before+2) // the fake peer's listener, and what the rig waits with
}

func TestCloseWaits(t *testing.T) {
	entered, left := make(chan struct{}), false
	r := newRig(t, Policy{AllowedDomains: rules(t, "api.model.test")}, func(r *rig) {
		r.gate.Model = &ModelRoute{Host: host(t, "api.model.test"), Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			close(entered)
			<-req.Context().Done()
			time.Sleep(50 * time.Millisecond)
			left = true
		})}
	})
	c := r.connect()
	io.WriteString(c, get("http://api.model.test/", "api.model.test"))
	<-entered
	require.NoError(t, r.gate.Close())
	assert.True(t, left, "the handler has returned before Close does")
}

// The dialler does not rely on its callers to have asked the policy.
func TestDiallerDecidesAgain(t *testing.T) {
	r := newRig(t, goodPolicy(t), nil)
	status, _, _ := r.send(honestGet) // the gateway is up
	require.Equal(t, 200, status)
	r.forget()
	_, err := r.gate.reach(context.Background(), host(t, "evil.test"), 443)
	assert.ErrorContains(t, err, "denied by the sandbox policy")
	_, dialled, asked := r.seen()
	assert.Empty(t, dialled)
	assert.Empty(t, asked)
	conn, err := r.gate.reach(context.Background(), host(t, "good.test"), 443)
	require.NoError(t, err)
	conn.Close()
}

func eventuallyGoroutines(t *testing.T, most int) {
	t.Helper()
	ok := assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= most }, 5*time.Second, 10*time.Millisecond)
	if !ok {
		stacks := make([]byte, 1<<20)
		t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd on this system: goroutines alone are counted")
	}
	return len(entries)
}

// TestThousandConnectionsLeaveNothing mixes everything that a connection can do.
func TestThousandConnectionsLeaveNothing(t *testing.T) {
	r := newRig(t, Policy{AllowedDomains: rules(t, "good.test", "gone.test")}, func(r *rig) {
		r.dns.answers = map[string][]netip.Addr{"good.test": {publicAddr}}
	})
	kinds := []string{honestGet, honestConnect, connectTo("evil.test:443"), connectTo("gone.test:1"), "GET http://good", "\x05\x01\x00", "",
		honestConnect + "GET / HTTP/1.1\r\n", connectTo("good.test:22") + "GET / HTTP/1.1\r\n", honestConnect + "\x16\x03\x01",
		honestConnect + string(helloOf(t, "good.test")), honestConnect + string(helloOf(t, "evil.test")),
		socksGreeting + honestSOCKS, socksGreeting + honestSOCKS + "GET / HTTP/1.1\r\n", socksGreeting + socksName("evil.test", 1), socksGreeting + socksName("gone.test", 1),
		honestConnect + "GET / HTTP/1.1\r\n"}
	round := func(n int) {
		var wg sync.WaitGroup
		turns := make(chan struct{}, 32)
		for i := range n {
			turns <- struct{}{}
			wg.Go(func() {
				defer func() { <-turns }()
				c, err := net.Dial("tcp", r.addr)
				if !assert.NoError(t, err) {
					return
				}
				defer c.Close()
				io.WriteString(c, kinds[i%len(kinds)])
				if i%3 > 0 {
					c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
					c.Read(make([]byte, 100))
				}
			})
		}
		wg.Wait()
	}
	quiet := func() bool { return r.gate.slots.Load() == 0 }
	round(100) // pools and idle upstream connections come to be
	require.Eventually(t, quiet, 5*time.Second, time.Millisecond)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	round(1000)
	require.Eventually(t, quiet, 5*time.Second, time.Millisecond)
	eventuallyGoroutines(t, goroutines+40) // as many idle upstream connections as the pool may keep, two goroutines each, and their servers
	assert.Eventually(t, func() bool { return openFiles(t) <= files+40 }, 5*time.Second, 10*time.Millisecond)
}

func TestRecordJSON(t *testing.T) {
	out, err := json.Marshal(Record{Time: time.Unix(1, 0).UTC(), Event: EventDeny, Via: ViaConnect, Host: host(t, "a.test"), Port: 443,
		Rule: "no rule", Reason: "why", Status: 403})
	require.NoError(t, err)
	assert.Equal(t, `{"time":"1970-01-01T00:00:01Z","event":"deny","via":"connect","host":"a.test","port":443,"verdict":"deny",`+
		`"rule":"no rule","reason":"why","status":403,"up":0,"down":0}`, string(out))
	out, err = json.Marshal(Record{Event: EventClose, Via: ViaUnknown, Verdict: Allow, Addr: publicAddr, Dropped: []netip.Addr{loopback4}, Duration: 5})
	require.NoError(t, err)
	assert.Equal(t, `{"time":"0001-01-01T00:00:00Z","event":"close","via":"unknown","verdict":"allow",`+
		`"addr":"93.184.216.34","dropped":["127.0.0.1"],"up":0,"down":0,"duration_ns":5}`, string(out))
}
