package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// handle serves the one request of a connection.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request) {
	g.running.Add(1) // a hijacked connection no longer counts as the server's
	defer g.running.Done()
	c := r.Context().Value(frontKey{}).(*frontConn)
	if f, ok := g.route(c, w, r); !ok {
		g.refuse(c, w, f)
	}
}

// route serves the request, or returns why not.
func (g *Gateway) route(c *frontConn, w http.ResponseWriter, r *http.Request) (refusal, bool) {
	if r.Method != c.head.method || r.RequestURI != c.head.target {
		return badRequest(errors.New("the request line is ambiguous")), false
	}
	switch r.Method {
	case http.MethodConnect:
		return g.connect(c, w, r)
	case http.MethodTrace, "TRACK":
		f := badRequest(fmt.Errorf("the method %s is refused, because it shows credentials to the sandbox", r.Method))
		f.status = http.StatusMethodNotAllowed
		return f, false
	}
	return g.forward(c, w, r)
}

func (g *Gateway) refuse(c *frontConn, w http.ResponseWriter, f refusal) {
	c.note(f)
	f.write(w)
}

// connect opens a tunnel. The target alone counts, whatever the Host header says.
func (g *Gateway) connect(c *frontConn, w http.ResponseWriter, r *http.Request) (refusal, bool) {
	host, port := c.head.host, c.head.port
	c.identify(ViaConnect, "", host, port)
	if h := c.head.hostHeader; h != r.RequestURI && h != host.String() {
		g.log.Info("host header differs from the CONNECT target, which counts", "target", host.Authority(port))
	}
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return badRequest(errors.New("a CONNECT request has no body")), false
	}
	if f, ok := g.findLeak(r, host, port); ok {
		return f, false
	}
	return g.tunnel(r.Context(), c, httpClient{c, w}, host, port)
}

// forward proxies plain HTTP and the model route.
func (g *Gateway) forward(c *frontConn, w http.ResponseWriter, r *http.Request) (refusal, bool) {
	host, port := c.head.host, c.head.port
	c.identify(ViaHTTP, r.Method, host, port)
	if err := agree(r, host, port); err != nil && c.origin.IsZero() {
		return badRequest(err), false
	}
	if protocol := lowerASCII(strings.Join(r.Header["Upgrade"], ",")); protocol != "" && protocol != "h2c" {
		return notImplemented("the gateway carries no Upgrade over plain HTTP; use https or wss, which CONNECT carries"), false
	}
	r.Header.Del("Upgrade")
	if g.Model.answers(host, port) {
		return g.forwardModel(c, w, r)
	}
	if f, ok := g.findLeak(r, host, port); ok {
		return f, false
	}
	d := g.Policy.Decide(host, port)
	if d.Verdict != Allow {
		return denied(d, host.Authority(port)), false
	}
	c.allow(d)
	g.proxy(g.plain, &answer{ResponseWriter: w, conn: c}, r)
	return refusal{}, true
}

// proxy has an allowed request answered. net/http cuts the answer short when h panics, which the record then says.
func (g *Gateway) proxy(h http.Handler, a *answer, r *http.Request) {
	defer func() {
		a.redact() // trailers
		if p := recover(); p != nil {
			a.conn.ended(0, "the answer was cut short")
			panic(p)
		}
	}()
	h.ServeHTTP(a, r.WithContext(withFront(r.Context(), a.conn)))
	a.begin()
}

// agree makes sure that net/http read the same target.
func agree(r *http.Request, host Host, port Port) error {
	h, p, err := ParseAuthority(r.URL.Host, 80)
	if err != nil || h != host || p != port || r.URL.User != nil || r.URL.Opaque != "" {
		return errors.New("the target is ambiguous")
	}
	return nil
}

// failure is the answer to an allowed request that could not be carried out, or whose addresses were refused.
func (g *Gateway) failure(c *frontConn, err error) refusal {
	var f refusal
	if errors.As(err, &f) {
		return f
	}
	text := g.redact(err.Error())
	if errors.Is(err, context.Canceled) {
		text = "the client went away"
	}
	return refusal{Decision: Decision{Reason: text}, status: http.StatusBadGateway, kind: "upstream_failed", target: c.target(), socks: socksReplyTo(err)}
}

// answer is the response of a proxied request. It keeps the status for the record, and the model's key out of the headers.
type answer struct {
	http.ResponseWriter
	conn  *frontConn
	key   string // "": nothing to redact
	wrote bool   // the final status is out
}

// WriteHeader sends the status and the headers.
func (a *answer) WriteHeader(status int) {
	a.redact()
	if status >= 200 && !a.wrote {
		a.wrote = true
		a.conn.ended(status, "")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// Flush sends what is buffered.
func (a *answer) Flush() {
	a.begin()
	http.NewResponseController(a.ResponseWriter).Flush()
}

// begin sends the status that net/http would, if none was sent.
func (a *answer) begin() {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) redact() {
	if a.key == "" {
		return
	}
	for _, values := range a.Header() {
		for i, v := range values {
			values[i] = strings.ReplaceAll(v, a.key, redacted)
		}
	}
}
