package network

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
)

// newPlainProxy returns the handler for plain HTTP requests that are allowed. Its transport keeps connections apart by
// "host:port" in canonical spelling, so two decisions never share one.
func (g *Gateway) newPlainProxy() http.Handler {
	transport := newTransport(func(ctx context.Context, _, addr string) (net.Conn, error) {
		host, port, err := ParseAuthority(addr, 0)
		if err != nil {
			return nil, err
		}
		return asConn(g.reach(ctx, host, port))
	})
	g.idlers = append(g.idlers, transport)
	return g.newProxy(transport, func(pr *httputil.ProxyRequest) {
		c := frontOf(pr.In.Context())
		pr.Out.URL.Scheme = "http"
		pr.Out.URL.Host = c.rec.Host.Authority(c.rec.Port)
		pr.Out.URL.RawQuery = pr.In.URL.RawQuery // ReverseProxy drops what it cannot parse
		pr.Out.Host = hostHeader(c.rec.Host, c.rec.Port)
	})
}

// hostHeader leaves out the default port, as clients do.
func hostHeader(h Host, p Port) string {
	if p != 80 {
		return h.Authority(p)
	}
	if h.addr.Is6() {
		return "[" + h.String() + "]"
	}
	return h.String()
}

// newProxy returns a reverse proxy that streams, and that reports to the connection which its requests came from.
func (g *Gateway) newProxy(transport http.RoundTripper, rewrite func(*httputil.ProxyRequest)) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     traced{transport},
		Rewrite:       rewrite,
		FlushInterval: -1, // server-sent events must not wait
		BufferPool:    proxyBuffers{},
		ErrorLog:      slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			c := frontOf(r.Context())
			g.refuse(c, w, g.failure(c, err))
		},
	}
}

// traced tells the client's connection which address its request went to.
type traced struct{ http.RoundTripper }

// RoundTrip sends the request on.
func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	c := frontOf(r.Context())
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { c.open(reachedAddr(info.Conn)) },
	})
	return t.RoundTripper.RoundTrip(r.WithContext(ctx))
}

// reachedAddr returns the address that a connection of a transport leads to.
func reachedAddr(conn net.Conn) netip.Addr {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if p, ok := conn.(*peerConn); ok {
		return p.addr
	}
	return netip.Addr{} // a transport of the user's
}

// asConn keeps a nil *peerConn from becoming a net.Conn that is not nil.
func asConn(p *peerConn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
