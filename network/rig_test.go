package network

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	publicAddr  = netip.MustParseAddr("93.184.216.34")
	publicAddr2 = netip.MustParseAddr("2606:2800:220:1::1")
)

func rules(t testing.TB, texts ...string) []Rule {
	t.Helper()
	list := make([]Rule, len(texts))
	for i, text := range texts {
		require.NoError(t, list[i].UnmarshalText([]byte(text)))
	}
	return list
}

func host(t testing.TB, text string) Host {
	t.Helper()
	h, err := ParseHost(text)
	require.NoError(t, err)
	return h
}

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// fakeDNS answers from a table and keeps the questions.
type fakeDNS struct {
	mu      sync.Mutex
	answers map[string][]netip.Addr // by name without final dot; "*": any other name
	asked   []string
}

func (f *fakeDNS) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, name)
	if addrs, ok := f.answers[name[:len(name)-1]]; ok {
		return addrs, nil
	}
	if addrs, ok := f.answers["*"]; ok {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, Server: "192.0.2.53:53", IsNotFound: true}
}

// rig is a gateway in process, with everything around it faked but TCP on loopback.
type rig struct {
	t    testing.TB
	gate *Gateway
	addr string
	dns  *fakeDNS
	up   *httptest.Server

	mu      sync.Mutex
	target  string // where every dial ends
	dialled []netip.AddrPort
	records []Record
}

// newRig serves a gateway. The upstream answers each request with what it saw; set changes the gateway before it starts.
func newRig(t testing.TB, policy Policy, set func(*rig)) *rig {
	r := &rig{t: t, dns: &fakeDNS{answers: map[string][]netip.Addr{"*": {publicAddr}}}}
	r.up = httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(r.up.Close)
	r.target = r.up.Listener.Addr().String()
	r.gate = &Gateway{
		Policy:   policy,
		Resolver: r.dns,
		Dial:     r.dial,
		OwnAddrs: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("93.184.216.99")}, nil },
		Observe:  r.observe,
	}
	if set != nil {
		set(r)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.gate.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, r.gate.Close())
		assert.NoError(t, <-served)
	})
	return r
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Upstream", "yes")
	fmt.Fprintf(w, "%s %s host=%s len=%d te=%v\n", r.Method, r.RequestURI, r.Host, len(body), r.TransferEncoding)
	r.Header.Write(w)
}

func (r *rig) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, to)
	target := r.target
	r.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", target)
}

func (r *rig) observe(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
}

// forget empties what was seen so far.
func (r *rig) forget() {
	r.mu.Lock()
	r.records, r.dialled = nil, nil
	r.mu.Unlock()
	r.dns.mu.Lock()
	r.dns.asked = nil
	r.dns.mu.Unlock()
}

func (r *rig) seen() (records []Record, dialled []netip.AddrPort, asked []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dns.mu.Lock()
	defer r.dns.mu.Unlock()
	return slices.Clone(r.records), slices.Clone(r.dialled), slices.Clone(r.dns.asked)
}

// await returns the first record of a kind, once there is one.
func (r *rig) await(e Event) Record {
	r.t.Helper()
	var found Record
	require.Eventually(r.t, func() bool {
		records, _, _ := r.seen()
		i := slices.IndexFunc(records, func(rec Record) bool { return rec.Event == e })
		if i >= 0 {
			found = records[i]
		}
		return i >= 0
	}, 5*time.Second, time.Millisecond, "no %s record", e)
	return found
}

func (r *rig) connect() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// send writes raw bytes and reads the answer; status 0 means that the gateway just closed the connection.
func (r *rig) send(raw string) (status int, header http.Header, body string) {
	r.t.Helper()
	c := r.connect()
	defer c.Close()
	io.WriteString(c, raw) // the gateway may answer and close before it has read all
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, ""
	}
	if resp.StatusCode == 200 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 {
		return 200, resp.Header, "" // CONNECT
	}
	var b bytes.Buffer
	b.ReadFrom(resp.Body)
	return resp.StatusCode, resp.Header, b.String()
}

// get is a plain request in absolute form, with more header lines.
func get(url, hostHeader string, fields ...string) string {
	s := "GET " + url + " HTTP/1.1\r\nHost: " + hostHeader + "\r\n"
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n"
}

func connectTo(target string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: " + "x.test" + "\r\n\r\n"
}

// socksName is a SOCKS request for a name, socksAddr one for an address. The greeting comes before.
func socksName(name string, port uint16) string {
	return "\x05\x01\x00\x03" + string([]byte{byte(len(name))}) + name + string([]byte{byte(port >> 8), byte(port)})
}

func socksAddr(addr string, port uint16) string {
	a := netip.MustParseAddr(addr)
	kind := "\x01"
	if a.Is6() {
		kind = "\x04"
	}
	return "\x05\x01\x00" + kind + string(a.AsSlice()) + string([]byte{byte(port >> 8), byte(port)})
}

const socksGreeting = "\x05\x01\x00"

// sendSOCKS greets, sends a request and returns the reply.
func (r *rig) sendSOCKS(request string) socksReply {
	r.t.Helper()
	c, reply := r.socks(request)
	c.Close()
	return reply
}

// socks greets and sends a request in one go, and returns the connection behind the reply.
func (r *rig) socks(request string) (net.Conn, socksReply) {
	r.t.Helper()
	c := r.connect()
	_, err := io.WriteString(c, socksGreeting+request)
	require.NoError(r.t, err)
	return c, r.socksReply(c)
}

// socksReply reads the two answers of a handshake.
func (r *rig) socksReply(c net.Conn) socksReply {
	r.t.Helper()
	answer := make([]byte, 12)
	_, err := io.ReadFull(c, answer)
	require.NoError(r.t, err)
	require.Equal(r.t, "\x05\x00", string(answer[:2]))
	require.Equal(r.t, socksReply(answer[3]).answer(), string(answer[2:]))
	return socksReply(answer[3])
}

// readSOCKS reads a request as the gateway does.
func readSOCKS(raw string) (socksRequest, error) {
	end, err := socksRequestEnd([]byte(raw), 0)
	if err != nil {
		return socksRequest{}, err
	}
	return parseSOCKS([]byte(raw[:end]))
}
