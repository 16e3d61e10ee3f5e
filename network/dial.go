package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// nextAttempt is how long one address has before the next is tried as well (RFC 8305 §5).
const nextAttempt = 250 * time.Millisecond

// withFront marks ctx with the connection whose request it serves, so that a dialler can tell it what happened.
func withFront(ctx context.Context, c *frontConn) context.Context {
	return context.WithValue(ctx, frontKey{}, c)
}

// frontOf returns the connection that ctx is marked with, or nil.
func frontOf(ctx context.Context) *frontConn {
	c, _ := ctx.Value(frontKey{}).(*frontConn)
	return c
}

// reach connects to a host that the policy allows; it decides again rather than trust its callers. A refused address is a
// [refusal].
func (g *Gateway) reach(ctx context.Context, host Host, port Port) (*peerConn, error) {
	if d := g.Policy.Decide(host, port); d.Verdict != Allow {
		return nil, denied(d, host.Authority(port))
	}
	return g.reachChecked(ctx, host, port)
}

// reachChecked resolves once, checks every answer and dials one that passed, by number.
func (g *Gateway) reachChecked(ctx context.Context, host Host, port Port) (*peerConn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.limits.DialTimeout)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	answers, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	good, err := g.filter(ctx, host, port, answers)
	if err != nil {
		return nil, err
	}
	peer, err := g.dialFirst(ctx, good, port)
	if err != nil {
		return nil, err
	}
	peer.host, peer.port = host, port
	return peer, nil
}

// resolve returns the addresses of a host, without duplicates.
func (g *Gateway) resolve(ctx context.Context, host Host) ([]netip.Addr, error) {
	if pinned, ok := g.Policy.pin(host); ok {
		return []netip.Addr{pinned}, nil
	}
	if host.IsAddr() {
		return []netip.Addr{host.addr}, nil
	}
	// The final dot: "intranet" must not become "intranet.corp.example" by the host's search list.
	answers, err := g.resolver().LookupNetIP(ctx, "ip", host.name+".")
	if err != nil {
		return nil, resolveError(host, err)
	}
	var addrs []netip.Addr
	for _, a := range answers {
		if a = a.Unmap(); !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("resolve %s: no address", host)
	}
	return addrs, nil
}

// resolveError leaves out the resolver's address, which is none of the sandbox's business.
func resolveError(host Host, err error) error {
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		return fmt.Errorf("resolve %s: %s", host, dns.Err)
	}
	return fmt.Errorf("resolve %s: %w", host, err)
}

func (g *Gateway) resolver() Resolver {
	if g.Resolver != nil {
		return g.Resolver
	}
	// A C resolver reads 0x7f.1 and the like as addresses; names like that never get here, but why have two readers.
	return &net.Resolver{PreferGo: true}
}

// filter drops the addresses that are refused and tells the record; if none is left it returns the first refusal.
func (g *Gateway) filter(ctx context.Context, host Host, port Port, addrs []netip.Addr) (good []netip.Addr, err error) {
	own, err := g.ownAddrs()
	if err != nil {
		return nil, err
	}
	var first *refusal
	var bad []netip.Addr
	for _, a := range addrs {
		d := g.Policy.DecideAddr(host, a, own)
		if d.Verdict == Allow {
			good = append(good, a)
			continue
		}
		bad = append(bad, a)
		if first == nil {
			f := denied(d, host.Authority(port))
			f.addr = a
			first = &f
		}
	}
	if c := frontOf(ctx); c != nil && len(bad) > 0 {
		c.drop(bad)
	}
	if len(good) == 0 && first != nil {
		return nil, *first
	}
	return good, nil
}

// peerConn is a connection to an address that was checked, on behalf of a host that was allowed.
type peerConn struct {
	net.Conn
	addr netip.Addr
	host Host
	port Port
}

// CloseWrite ends the direction towards the peer.
func (p *peerConn) CloseWrite() error { return closeWrite(p.Conn) }

type attempt struct {
	conn *peerConn
	err  error
}

// dialFirst connects to the first address that answers: each gets a head start over the next.
func (g *Gateway) dialFirst(ctx context.Context, addrs []netip.Addr, port Port) (*peerConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt)
	turn := time.NewTimer(0)
	defer turn.Stop()
	var errs []error
	for started := 0; len(errs) < len(addrs); {
		select {
		case <-turn.C:
			if started < len(addrs) {
				go g.try(ctx, netip.AddrPortFrom(addrs[started], uint16(port)), results)
				started++
				turn.Reset(nextAttempt)
			}
		case a := <-results:
			if a.err == nil {
				return a.conn, nil
			}
			errs = append(errs, a.err)
			turn.Reset(0)
		case <-ctx.Done():
			return nil, fmt.Errorf("connect: %w", context.Cause(ctx))
		}
	}
	return nil, errors.Join(errs...)
}

// try dials one address and hands the result over, or throws it away when nobody waits any more.
func (g *Gateway) try(ctx context.Context, to netip.AddrPort, results chan<- attempt) {
	conn, err := g.dialAddr(ctx, to)
	select {
	case results <- attempt{&peerConn{Conn: conn, addr: to.Addr()}, err}:
	case <-ctx.Done():
		if err == nil {
			conn.Close()
		}
	}
}

func (g *Gateway) dialAddr(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if g.Dial != nil {
		return g.Dial(ctx, to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

// newTransport returns a transport that dials with dial and otherwise changes as little as possible: no proxy from the
// environment, no redirects (RoundTrip follows none), no compression of its own.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// ownAddrs remembers the addresses of this machine's interfaces for a moment.
type ownAddrs struct {
	mu    sync.Mutex
	read  time.Time
	addrs []netip.Addr
}

const ownAddrsAge = 2 * time.Second

func (g *Gateway) ownAddrs() ([]netip.Addr, error) {
	if g.OwnAddrs != nil {
		return g.OwnAddrs()
	}
	g.own.mu.Lock()
	defer g.own.mu.Unlock()
	if time.Since(g.own.read) < ownAddrsAge {
		return g.own.addrs, nil
	}
	addrs, err := interfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	g.own.addrs, g.own.read = addrs, time.Now()
	return addrs, nil
}

func interfaceAddrs() ([]netip.Addr, error) {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, n := range nets {
		if p, err := netip.ParsePrefix(n.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs, nil
}
