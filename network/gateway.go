package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Gateway is the one way out of a sandbox: a proxy for HTTP (absolute form and CONNECT) and SOCKS5 on one port. It decides
// by its Policy, resolves only names that the policy allows, checks each address that comes back, and dials the address
// that it checked. TLS in a tunnel must ask, in the clear, for the server that the tunnel was opened for; what it carries
// then is not seen. The zero value serves and denies everything. Fields must not change once Serve has been called; a
// Gateway must not be copied.
type Gateway struct {
	Policy Policy

	Model    *ModelRoute                                                      // nil: no host is treated as the model API
	Resolver Resolver                                                         // nil: Go's own resolver with the host's configuration
	Dial     func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) // nil: TCP from this process
	OwnAddrs func() ([]netip.Addr, error)                                     // this machine's addresses; nil: those of its interfaces, at most 2 s old
	Observe  func(Record)                                                     // gets each record, from several goroutines at once, and must not call Close; nil: no audit
	Limits   Limits
	Logger   *slog.Logger // nil: silent

	limits   Limits // with defaults
	log      *slog.Logger
	starting sync.Mutex
	ctx      context.Context // nil: not started
	cancel   context.CancelFunc
	server   *http.Server
	plain    http.Handler // proxies plain HTTP
	model    http.Handler // answers the model route
	closed   bool
	closing  sync.Once
	closeErr error
	idlers   []interface{ CloseIdleConnections() }

	ended   *handover      // connections whose TLS ended here
	running sync.WaitGroup // Serve calls, HTTP connections, handlers
	slots   atomic.Int64   // client connections now
	own     ownAddrs
}

// Resolver finds the addresses of a name. The name that it gets ends in a dot, so that no search list applies.
// *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Limits bound what a client can hold of the gateway. Zero means the default.
type Limits struct {
	Connections   int           // clients at once; 512
	HeaderBytes   int           // a request's head, with what the client sends before its answer; 64 KiB; SOCKS has 4 KiB
	HeaderTimeout time.Duration // until the head or the SOCKS handshake is complete, and until a tunnel's ClientHello is; 10 s
	DialTimeout   time.Duration // resolving and connecting; 30 s
	IdleTimeout   time.Duration // without a byte in either direction; 10 min
}

// headerFields is the most header lines that a request may have.
const headerFields = 128

func (l Limits) withDefaults() Limits {
	setDefault(&l.Connections, 512)
	setDefault(&l.HeaderBytes, 64<<10)
	setDefault(&l.HeaderTimeout, 10*time.Second)
	setDefault(&l.DialTimeout, 30*time.Second)
	setDefault(&l.IdleTimeout, 10*time.Minute)
	return l
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Serve accepts connections from l until Close, then returns nil. It may be called for several listeners at once. It
// takes ownership of l and closes it, also when it refuses to start because the policy or the model route makes no sense.
func (g *Gateway) Serve(l net.Listener) error {
	if err := g.start(); err != nil {
		return errors.Join(err, l.Close())
	}
	defer g.running.Done()
	if err := g.server.Serve(&frontListener{Listener: l, gate: g}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve gateway: %w", err)
	}
	return nil
}

// start prepares what all listeners share, once, and counts the caller as running.
func (g *Gateway) start() error {
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.closed {
		return fmt.Errorf("serve gateway: %w", net.ErrClosed)
	}
	if g.ctx == nil {
		if err := g.check(); err != nil {
			return fmt.Errorf("serve gateway: %w", err)
		}
		g.build()
	}
	g.running.Add(1)
	return nil
}

// check refuses what would be served otherwise than the policy says.
func (g *Gateway) check() error {
	errs := []error{g.Policy.Check()}
	if g.Policy.ParentProxy != "" {
		errs = append(errs, fmt.Errorf("parent_proxy %q: not built yet", g.Policy.ParentProxy))
	}
	if len(g.Policy.Intercept) > 0 {
		errs = append(errs, fmt.Errorf("intercept %q: not built yet", g.Policy.Intercept[0]))
	}
	if g.Model != nil {
		errs = append(errs, g.Model.check())
	}
	return errors.Join(errs...)
}

func (g *Gateway) build() {
	g.limits = g.Limits.withDefaults()
	g.log = g.Logger
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.plain = g.newPlainProxy()
	g.model = g.newModelHandler()
	g.server = &http.Server{
		Handler:           http.HandlerFunc(g.handle),
		ReadHeaderTimeout: g.limits.HeaderTimeout,
		MaxHeaderBytes:    g.limits.HeaderBytes, // frontConn has counted before
		BaseContext:       func(net.Listener) context.Context { return g.ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, frontKey{}, c) },
		ConnState:         g.countConn,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // OPTIONS * is ours to refuse
	}
	// One request a connection: what follows a request is never read as another one, so no framing trick can smuggle it.
	g.server.SetKeepAlivesEnabled(false)
	g.ended = newHandover()
	g.running.Go(func() { _ = g.server.Serve(g.ended) }) // until Close
}

// countConn counts the goroutines that the server starts, which its own Close does not wait for.
func (g *Gateway) countConn(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		g.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		g.running.Done()
	}
}

// Close closes the listeners and every connection, and waits until all goroutines of the gateway are done. Further
// calls return the same error.
func (g *Gateway) Close() error {
	g.closing.Do(func() {
		g.starting.Lock()
		g.closed = true
		started := g.ctx != nil
		g.starting.Unlock()
		if !started {
			return
		}
		g.cancel()
		g.closeErr = g.server.Close()
		for _, t := range g.idlers {
			t.CloseIdleConnections()
		}
		g.running.Wait()
	})
	return g.closeErr
}

func (g *Gateway) observe(r Record) {
	if g.Observe != nil {
		g.Observe(r)
	}
}
