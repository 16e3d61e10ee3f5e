package network

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ModelRoute answers plain HTTP requests for http://Host/ (port 80), which is how a sandbox reaches the model API: with
// ANTHROPIC_BASE_URL=http://api.anthropic.com. The gateway speaks verified HTTPS to Upstream and sets the key there, so
// the sandbox holds only a placeholder. The policy has to allow Host on port 443, the port outside.
//
// The credential headers (X-Api-Key, Authorization) of a request may hold the placeholder, which is replaced, or be
// absent, in which case X-Api-Key is added. Any other credential is refused: with a key of its own, a sandbox could send
// its data to somebody else's account. A request for another host that has the placeholder or the key in its target or
// headers is refused as well. Bodies pass unseen and unchanged.
type ModelRoute struct {
	Host        Host              // as the sandbox names it
	Placeholder string            // what stands for the key in the sandbox, at least 8 bytes; "": the sandbox has none
	CA          *CA               // ends TLS to Host, for https:// requests; nil: CONNECT to Host is refused
	Key         Secret            // zero: credentials are taken off and none is added
	Upstream    *url.URL          // https, or http to localhost or a loopback address; a path is put before the request's
	Handler     http.Handler      // not nil: answers instead of Upstream, in this process, and needs no key
	Transport   http.RoundTripper // nil: Gateway.ModelTransport; another one is used as it is, without address checks
}

// check refuses a route that would not do what its documentation says.
func (m *ModelRoute) check() error {
	switch {
	case m.Host.IsZero():
		return errors.New("model route: no host")
	case m.Placeholder != "" && len(m.Placeholder) < 8:
		return errors.New("model route: the placeholder is shorter than 8 bytes and would be found everywhere")
	case strings.ContainsFunc(m.Key.Reveal(), func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("model route: the key has a space, a control character or a character that is not ASCII")
	case m.Key.Reveal() == m.Placeholder && m.Placeholder != "":
		return errors.New("model route: the placeholder is the key")
	case m.Handler != nil:
		return nil
	case m.Upstream == nil:
		return errors.New("model route: neither handler nor upstream")
	}
	return checkUpstream(m.Upstream)
}

func checkUpstream(u *url.URL) error {
	host, _, err := upstreamAuthority(u)
	switch {
	case err != nil:
		return fmt.Errorf("base_url: %w", err)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return errors.New("base_url: a user part, query or fragment has no place there")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && isLoopback(host):
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("base_url: http would show the key to the network: write %q", "https://"+u.Host+u.Path)
	}
	return fmt.Errorf("base_url: scheme %q is not https", u.Scheme)
}

func upstreamAuthority(u *url.URL) (Host, Port, error) {
	if u.Scheme == "http" {
		return ParseAuthority(u.Host, 80)
	}
	return ParseAuthority(u.Host, 443)
}

func isLoopback(h Host) bool { return h.name == "localhost" || h.addr.IsLoopback() }

// answers reports whether a plain HTTP request for host and port is for the model. A nil route answers nothing.
func (m *ModelRoute) answers(host Host, port Port) bool {
	return m != nil && host == m.Host && port == 80
}

// covers reports whether host is the model API's, whatever the port.
func (m *ModelRoute) covers(host Host) bool { return m != nil && host == m.Host }

// noTunnel is the decision about tunnels to the model API: in a tunnel the sandbox could use a key of somebody else,
// and carry data out in that account.
func (m *ModelRoute) noTunnel() Decision {
	return Decision{Rule: "model route", Reason: "the model API is reached as http://" + m.Host.String() + "/, where the key is added outside"}
}

// forwardModel decides about a request for the model and has it answered.
func (g *Gateway) forwardModel(c *frontConn, w http.ResponseWriter, r *http.Request) (refusal, bool) {
	const port = 443
	c.identify(ViaModel, r.Method, g.Model.Host, port)
	target := g.Model.Host.Authority(port)
	d := g.Policy.Decide(g.Model.Host, port)
	if d.Verdict != Allow {
		return denied(d, target), false
	}
	if err := checkPath(r.URL.EscapedPath()); err != nil {
		return badRequest(err), false
	}
	if name, ok := g.Model.foreignCredential(r.Header); ok {
		reason := fmt.Sprintf("%s does not hold the placeholder that the sandbox was given; use that one, the gateway sets the real key", name)
		return denied(Decision{Deny, "built-in: model credential", reason}, target), false
	}
	c.allow(d)
	g.proxy(g.model, &answer{ResponseWriter: w, conn: c, key: g.Model.Key.Reveal()}, r)
	return refusal{}, true
}

// checkPath refuses what two servers could read as different paths: dot segments, in any encoding.
func checkPath(escaped string) error {
	low := lowerASCII(escaped)
	for _, part := range []string{"/../", "/./", "%2e", "%2f", "%5c", `\`} {
		if strings.Contains(low+"/", part) {
			return errors.New("the path has dot segments or escaped separators")
		}
	}
	if strings.Contains(low, "//") {
		return errors.New("the path has an empty segment")
	}
	return nil
}

// credentialHeaders are those that the model API reads.
var credentialHeaders = []string{"X-Api-Key", "Authorization"}

// foreignCredential returns the name of a header that holds a credential other than the placeholder.
func (m *ModelRoute) foreignCredential(h http.Header) (string, bool) {
	for _, name := range credentialHeaders {
		for _, value := range h[name] {
			if name == "Authorization" {
				scheme, token, _ := strings.Cut(value, " ")
				if !strings.EqualFold(scheme, "Bearer") {
					return name, true
				}
				value = token
			}
			if m.Placeholder == "" || value != m.Placeholder {
				return name, true
			}
		}
	}
	return "", false
}

// setKey puts the key where the placeholder stood, or adds it.
func (m *ModelRoute) setKey(h http.Header) {
	apiKey, bearer := len(h["X-Api-Key"]) > 0, len(h["Authorization"]) > 0
	h.Del("X-Api-Key")
	h.Del("Authorization")
	key := m.Key.Reveal()
	if key == "" {
		return
	}
	if bearer {
		h.Set("Authorization", "Bearer "+key)
	}
	if apiKey || !bearer {
		h.Set("X-Api-Key", key)
	}
}

// newModelHandler returns what answers the model route once a request is decided; nil without a route.
func (g *Gateway) newModelHandler() http.Handler {
	switch m := g.Model; {
	case m == nil:
		return nil
	case m.Handler != nil:
		return http.HandlerFunc(m.serveInProcess)
	default:
		transport := m.Transport
		if transport == nil {
			transport = g.ModelTransport()
		}
		if t, ok := transport.(interface{ CloseIdleConnections() }); ok {
			g.idlers = append(g.idlers, t)
		}
		return g.newProxy(transport, m.rewrite)
	}
}

// rewrite points a request at the upstream. ReverseProxy has taken off the hop-by-hop headers and those that Connection
// names, so a client cannot have the key taken off by naming it there.
func (m *ModelRoute) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(m.Upstream)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	m.setKey(pr.Out.Header)
}

// serveInProcess hands the request to Handler as if it were the server: origin form, no proxy headers.
func (m *ModelRoute) serveInProcess(w http.ResponseWriter, r *http.Request) {
	frontOf(r.Context()).open(netip.Addr{})
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "", ""
	out.Host = m.Host.String()
	out.RequestURI = out.URL.RequestURI()
	for _, name := range []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive"} {
		out.Header.Del(name)
	}
	m.Handler.ServeHTTP(w, out)
}

// ModelTransport returns a transport to the model's upstream, for ModelRoute.Transport implementations that wrap one. It
// verifies against the system's roots and checks addresses as [Policy.DecideAddr] does, save that a base_url which names
// localhost or a loopback address reaches it: the user wrote that down. It serves once the Gateway does.
func (g *Gateway) ModelTransport() http.RoundTripper {
	t := newTransport(g.dialModel)
	t.ForceAttemptHTTP2 = true
	return t
}

func (g *Gateway) dialModel(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := ParseAuthority(addr, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case host.name == "localhost":
		return asConn(g.dialFirst(ctx, []netip.Addr{loopback4, netip.IPv6Loopback()}, port))
	case host.addr.IsLoopback():
		return asConn(g.dialFirst(ctx, []netip.Addr{host.addr}, port))
	}
	return asConn(g.reachChecked(ctx, host, port))
}

// findLeak refuses a request for another host that carries the placeholder or the key in its target or a header.
func (g *Gateway) findLeak(r *http.Request, host Host, port Port) (refusal, bool) {
	if g.Model == nil {
		return refusal{}, false
	}
	where, ok := g.Model.leakIn(r)
	if !ok {
		return refusal{}, false
	}
	return g.leak(where, host, port), true
}

// leak refuses what carries the model's credential to another host.
func (g *Gateway) leak(where string, host Host, port Port) refusal {
	reason := fmt.Sprintf("the %s carries the model's credential, which is for %s only", where, g.Model.Host)
	return denied(Decision{Deny, "built-in: model credential", reason}, host.Authority(port))
}

// leakIn returns the part of a request that holds the placeholder or the key.
func (m *ModelRoute) leakIn(r *http.Request) (where string, ok bool) {
	if m.isIn(r.RequestURI) {
		return "target", true
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if slices.ContainsFunc(r.Header[name], m.isIn) {
			return name + " header", true
		}
		if contains(lowerASCII(name), lowerASCII(m.Placeholder)) || contains(lowerASCII(name), lowerASCII(m.Key.Reveal())) {
			return "name of a header", true
		}
	}
	return "", false
}

// isIn looks for the placeholder and the key in a text as it is, percent-decoded, and in basic authentication.
func (m *ModelRoute) isIn(text string) bool {
	forms := []string{text}
	if plain, err := url.PathUnescape(text); err == nil {
		forms = append(forms, plain)
	}
	if scheme, rest, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "Basic") {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest)); err == nil {
			forms = append(forms, string(plain))
		}
	}
	return slices.ContainsFunc(forms, func(form string) bool {
		return contains(form, m.Placeholder) || contains(form, m.Key.Reveal())
	})
}

func contains(text, part string) bool { return part != "" && strings.Contains(text, part) }

// redact takes the model's key out of a text.
func (g *Gateway) redact(text string) string {
	if g.Model == nil || g.Model.Key.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, g.Model.Key.Reveal(), redacted)
}
