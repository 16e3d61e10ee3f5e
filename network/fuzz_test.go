package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"a.test", "A.test.", "127.0.0.1", "::1", "::ffff:1.2.3.4%x", "0x7f.1", "a..b", "é", "a\x00b", "[::1]", strings.Repeat("a.", 130)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if !h.IsZero() {
				t.Fatalf("%q: a host beside an error", s)
			}
			return
		}
		text := h.String()
		if again, err := ParseHost(text); err != nil || again != h {
			t.Fatalf("%q: %q is not canonical: %v", s, text, err)
		}
		if err := new(Host).UnmarshalText([]byte(text)); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if strings.ContainsFunc(text, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`@%/\#?[]`, r) || 'A' <= r && r <= 'Z'
		}) {
			t.Fatalf("%q: %q has a character that it must not have", s, text)
		}
		if h.IsAddr() != strings.Contains(text, ":") && !h.Addr().Is4() {
			t.Fatalf("%q: %q is neither name nor address", s, text)
		}
		if h.IsAddr() && (h.Addr().Is4In6() || h.Addr().Zone() != "") {
			t.Fatalf("%q: %q is mapped or has a zone", s, text)
		}
	})
}

func FuzzParseAuthority(f *testing.F) {
	for _, s := range []string{"a.test:443", "a.test", "[::1]:80", "[::1]", "::1", "u@a:1", "[a]:1", "a:0443", "[::1%x]:1", ":1", "a:1:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, p, err := ParseAuthority(s, 80)
		if err != nil {
			return
		}
		if p == 0 {
			t.Fatalf("%q: port 0", s)
		}
		again, port, err := ParseAuthority(h.Authority(p), 0)
		if err != nil || again != h || port != p {
			t.Fatalf("%q: %q does not read back: %v", s, h.Authority(p), err)
		}
		if _, text, _ := net.SplitHostPort(s); text != "" && text != p.String() {
			t.Fatalf("%q: port %s instead of %s", s, p, text)
		}
	})
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"a.test", "*.a.test:443", "*", "*:1", "[::1]:443", "::1", "*.com", "**.a", "a.*", "https://a", "10.0.0.0/8", "é.test"} {
		f.Add(s, "b.a.test")
	}
	f.Fuzz(func(t *testing.T, s, name string) {
		r, err := ParseRule(s)
		if err != nil {
			if r != (Rule{}) {
				t.Fatalf("%q: a rule beside an error", s)
			}
			return
		}
		if r.String() != s {
			t.Fatalf("%q: spelt %q", s, r)
		}
		h, err := ParseHost(name)
		if err != nil || !r.Match(h, 443) {
			return
		}
		// Whatever matches must say so by its last labels, if not by everything.
		want := strings.TrimPrefix(strings.TrimSuffix(s, ":443"), "*")
		if !r.IsAny() && !strings.HasSuffix("."+h.String(), "."+strings.TrimPrefix(strings.Trim(want, "[]"), ".")) {
			t.Fatalf("%q matches %q", s, h)
		}
	})
}

// FuzzDecideAddr writes an IPv4 address that must be denied into IPv6 in every way there is, below any prefix.
func FuzzDecideAddr(f *testing.F) {
	f.Add(uint64(0x2606470000000000), []byte{127, 0, 0, 1}, uint8(0))
	f.Add(uint64(0xfd00000000000000), []byte{10, 0, 0, 1}, uint8(6))
	f.Add(uint64(0), []byte{169, 254, 169, 254}, uint8(3))
	h := Host{name: "a.test"}
	f.Fuzz(func(t *testing.T, prefix uint64, raw []byte, how uint8) {
		if len(raw) != 4 {
			return
		}
		v4 := netip.AddrFrom4([4]byte(raw))
		addr := embed(prefix, [4]byte(raw), how)
		got := Policy{}.DecideAddr(h, addr, nil)
		if got.Verdict == Allow && got.Reason == "" || got.Verdict == Deny && got.Rule == "" {
			t.Fatalf("%s: no reason: %+v", addr, got)
		}
		if got.Verdict == Allow && !addr.IsGlobalUnicast() {
			t.Fatalf("%s: not even global unicast", addr)
		}
		if (Policy{}).DecideAddr(h, v4, nil).Verdict == Deny && got.Verdict == Allow {
			t.Fatalf("%s carries %s", addr, v4)
		}
		if loopback := v4.IsLoopback() || v4.IsLinkLocalUnicast() || v4.IsPrivate() || v4.IsMulticast() || v4.IsUnspecified(); loopback && got.Verdict == Allow {
			t.Fatalf("%s carries %s", addr, v4)
		}
		if (Policy{}).DecideAddr(h, addr, []netip.Addr{v4}).Verdict == Allow {
			t.Fatalf("%s carries this machine's own %s", addr, v4)
		}
	})
}

// embed returns an address that carries v4.
func embed(prefix uint64, v4 [4]byte, how uint8) netip.Addr {
	var b [16]byte
	at := 12
	switch how % 9 {
	case 0:
		return netip.AddrFrom4(v4)
	case 1: // mapped
		b[10], b[11] = 0xff, 0xff
	case 2: // translated
		b[8], b[9] = 0xff, 0xff
	case 3: // NAT64
		b[1], b[2], b[3] = 0x64, 0xff, 0x9b
	case 4: // local NAT64
		b[1], b[2], b[3], b[5] = 0x64, 0xff, 0x9b, 1
	case 5: // 6to4
		b[0], b[1] = 0x20, 0x02
		at = 2
	case 6: // ISATAP below any prefix
		for i := range 8 {
			b[i] = byte(prefix >> (56 - 8*i))
		}
		b[8] = byte(prefix&1) << 1
		b[10], b[11] = 0x5e, 0xfe
	case 7: // Teredo
		b[0], b[1] = 0x20, 0x01
		v4 = [4]byte{^v4[0], ^v4[1], ^v4[2], ^v4[3]}
	case 8: // compatible
	}
	copy(b[at:], v4[:])
	return netip.AddrFrom16(b)
}

func FuzzParseHead(f *testing.F) {
	for _, k := range tricks {
		f.Add([]byte(k.send))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		end, err := headEnd(raw, 0)
		if err != nil || end == 0 {
			return
		}
		h, err := parseHead(raw[:end], Host{})
		if err == nil && (h.host.IsZero() || h.port == 0 || h.method == "") {
			t.Fatalf("%q: nothing to decide about: %+v", raw[:end], h)
		}
	})
}

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// FuzzHTTPFront throws bytes at a gateway whose policy denies everything: nothing may resolve, nothing may be dialled, and
// whatever is answered is an error of the gateway's own.
func FuzzHTTPFront(f *testing.F) {
	for _, k := range tricks {
		f.Add([]byte(k.send))
		f.Add([]byte(k.twin))
	}
	closed := newClosedGate(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer := closed.throw(t, raw)
		if bytes.HasPrefix(raw, []byte{socksVersion}) {
			return // FuzzSOCKS
		}
		if len(answer) > 0 && !bytes.Contains(answer, []byte("X-Sandboxrun-Decision: deny")) {
			t.Fatalf("%q: answered %q", raw, answer)
		}
		if bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) {
			t.Fatalf("%q: answered %q", raw, answer)
		}
	})
}

// FuzzSOCKS does the same with what comes after a SOCKS greeting's first byte; the only answers are refusals.
func FuzzSOCKS(f *testing.F) {
	for _, k := range socksTricks {
		f.Add([]byte("\x01\x00" + k.send))
		f.Add([]byte("\x02\x02\x00" + k.twin + "early"))
	}
	for _, s := range []string{"", "\x00", "\x01\x02", "\x01\x00", "\xff" + strings.Repeat("\x00", 255) + honestSOCKS, "\x01\x00" + honestSOCKS[:7]} {
		f.Add([]byte(s))
	}
	closed := newClosedGate(f)
	f.Fuzz(func(t *testing.T, rest []byte) {
		raw := append([]byte{socksVersion}, rest...)
		answer := closed.throw(t, raw)
		switch method, reply := answer[:min(2, len(answer))], answer[min(2, len(answer)):]; {
		case len(answer) == 0 || string(answer) == "\x05\x00" || string(answer) == "\x05\xff":
		case string(method) != "\x05\x00" || len(reply) != 10:
			t.Fatalf("%q: answered %q", raw, answer)
		case reply[0] != socksVersion || socksReply(reply[1]) == socksSucceeded:
			t.Fatalf("%q: replied %q", raw, reply)
		}
	})
}

// closedGate is a gateway whose policy denies everything, and a list of what it let out all the same.
type closedGate struct {
	conns   chan net.Conn
	mu      sync.Mutex
	escaped []string
}

func newClosedGate(f *testing.F) *closedGate {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	c := &closedGate{conns: l.conns}
	gate := &Gateway{
		Resolver: resolverFunc(func(name string) { c.out("resolved " + name) }),
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			c.out("dialled " + to.String())
			return nil, io.EOF
		},
		Model:  &ModelRoute{Host: Host{name: "api.model.test"}, Placeholder: placeholder, Handler: nil, Key: NewSecret(realKey), Upstream: mustURL("https://api.model.test")},
		Limits: Limits{HeaderTimeout: 10 * time.Millisecond},
	}
	go gate.Serve(l)
	f.Cleanup(func() { gate.Close() })
	return c
}

func (c *closedGate) out(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.escaped = append(c.escaped, what)
}

// throw sends raw and returns the answer.
func (c *closedGate) throw(t *testing.T, raw []byte) []byte {
	client, server := net.Pipe()
	defer client.Close()
	client.SetDeadline(time.Now().Add(5 * time.Second))
	c.conns <- server
	go client.Write(raw)
	answer, _ := io.ReadAll(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.escaped) > 0 {
		t.Fatalf("%q: %v", raw, c.escaped)
	}
	return answer
}

type resolverFunc func(name string)

func (f resolverFunc) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	f(name)
	return nil, io.EOF
}

// FuzzClientHello compares what passes with what a server of crypto/tls sees when it gets the same bytes at once, and
// with a reader of the server name that knows nothing of either.
func FuzzClientHello(f *testing.F) {
	for _, set := range [][]func(*tls.Config){nil, {only12}, {only13}, {only13, classicOnly}, {padded(3000)}} {
		f.Add(helloOf(f, "good.test", set...), uint8(255))
		f.Add(helloOf(f, "", set...), uint8(255))
	}
	f.Add(helloOf(f, "evil.test", hiding(f, "good.test")), uint8(255))
	good := helloOf(f, "good.test")
	f.Add(inRecords(1)(good), uint8(1))
	f.Add(inRecords(100)(good), uint8(7))
	f.Add(renamed("good.testx", "good.test.")(helloOf(f, "good.testx")), uint8(255))
	f.Add([]byte("SSH-2.0-x\r\n"), uint8(255))
	wanted := Host{name: "good.test"}
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		h, got, err := readHello(&heldConn{in: raw, step: int(step)})
		if !bytes.HasPrefix(raw, got) || len(got) > helloBytes {
			t.Fatalf("%x: read %x", raw, got)
		}
		if err != nil {
			if h.name != "" || h.extensions != nil {
				t.Fatalf("%x: a hello beside an error", raw)
			}
			return
		}
		name, extensions := seenByServer(got)
		if name != h.name || !slices.Equal(extensions, h.extensions) {
			t.Fatalf("%x: server name %q, a server sees %q", got, h.name, name)
		}
		message, err := helloMessage(got)
		if err != nil {
			t.Fatal(err)
		}
		found, encrypted := namesIn(message)
		_, reason := h.check(wanted)
		if reason == "" && (len(found) != 1 || lowerASCII(found[0]) != "good.test" || encrypted) {
			t.Fatalf("%x: passes with server names %q, encrypted %v", got, found, encrypted)
		}
		if _, reason := h.check(HostOf(netip.AddrFrom4([4]byte{10, 0, 0, 5}))); reason == "" && (len(found) > 0 || encrypted) {
			t.Fatalf("%x: passes at an address with server names %q, encrypted %v", got, found, encrypted)
		}
	})
}

// seenByServer is what a server of crypto/tls makes of raw.
func seenByServer(raw []byte) (name string, extensions []uint16) {
	config := &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, extensions = info.ServerName, info.Extensions
		return nil, nil
	}}
	_ = tls.Server(&heldConn{in: raw, step: len(raw)}, config).Handshake()
	return name, extensions
}

// namesIn returns every host name in the server_name extensions of a sound ClientHello, and whether it has ECH.
func namesIn(message []byte) (names []string, encrypted bool) {
	s := message[4+2+32:]
	s = s[1+int(s[0]):]                       // session id
	s = s[2+int(binary.BigEndian.Uint16(s)):] // ciphers
	s = s[1+int(s[0]):]                       // compression
	for s = s[min(2, len(s)):]; len(s) > 0; { // extensions
		kind, size := binary.BigEndian.Uint16(s), int(binary.BigEndian.Uint16(s[2:]))
		body := s[4 : 4+size]
		s = s[4+size:]
		encrypted = encrypted || kind == extensionEncryptedHello
		if kind != extensionServerName {
			continue
		}
		for body = body[2:]; len(body) > 0; {
			end := 3 + int(binary.BigEndian.Uint16(body[1:]))
			if body[0] == 0 {
				names = append(names, string(body[3:end]))
			}
			body = body[end:]
		}
	}
	return names, encrypted
}
