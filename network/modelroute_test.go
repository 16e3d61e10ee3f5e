package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	placeholder = "sk-ant-api03-PLACEHOLDER0000"
	realKey     = "sk-ant-api03-REALREALREAL0000"
)

func modelPolicy(t testing.TB) Policy {
	return Policy{AllowedDomains: rules(t, "api.model.test:443", "good.test")}
}

// newModelRig serves a gateway whose model route leads to an HTTPS server for api.model.test with a certificate of its
// own authority, which the transport verifies.
func newModelRig(t *testing.T, policy Policy, set func(*ModelRoute)) (*rig, *httptest.Server) {
	up := httptest.NewTLSServer(http.HandlerFunc(echo))
	t.Cleanup(up.Close)
	r := newRig(t, policy, func(r *rig) {
		upstream, err := url.Parse("https://example.com") // the name in httptest's certificate
		require.NoError(t, err)
		r.gate.Model = &ModelRoute{
			Host:        host(t, "api.model.test"),
			Placeholder: placeholder,
			Key:         NewSecret(realKey),
			Upstream:    upstream,
			Transport:   verifying(r.gate, up.Certificate()),
		}
		if set != nil {
			set(r.gate.Model)
		}
	})
	r.target = up.Listener.Addr().String()
	return r, up
}

// verifying is the gateway's own transport to the model with another set of roots.
func verifying(g *Gateway, root *x509.Certificate) *http.Transport {
	t := g.ModelTransport().(*http.Transport)
	t.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	t.TLSClientConfig.RootCAs.AddCert(root)
	return t
}

func model(path string, fields ...string) string {
	return get("http://api.model.test"+path, "api.model.test", fields...)
}

func TestModelSwapsTheKey(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), nil)
	for _, c := range []struct {
		name      string
		fields    []string
		has, lack string
	}{
		{"x-api-key", []string{"x-api-key: " + placeholder}, "X-Api-Key: " + realKey, "Authorization"},
		{"bearer", []string{"Authorization: bearer " + placeholder}, "Authorization: Bearer " + realKey, "X-Api-Key"},
		{"both", []string{"X-Api-Key: " + placeholder, "Authorization: Bearer " + placeholder}, "Authorization: Bearer " + realKey, placeholder},
		{"none", nil, "X-Api-Key: " + realKey, "Authorization"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.forget()
			status, _, body := r.send(model("/v1/messages?beta=true", c.fields...))
			require.Equal(t, 200, status, body)
			assert.Contains(t, body, "GET /v1/messages?beta=true host=example.com")
			assert.Contains(t, body, c.has)
			assert.NotContains(t, body, c.lack)
			rec := r.await(EventClose)
			assert.Equal(t, ViaModel, rec.Via)
			assert.Equal(t, "api.model.test:443", rec.Host.Authority(rec.Port))
			assert.Equal(t, publicAddr, rec.Addr)
		})
	}
}

func TestModelNominatedHeader(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), nil)
	_, _, body := r.send(model("/", "Connection: x-api-key, X-Gone", "X-Gone: 1", "x-api-key: "+placeholder))
	assert.Contains(t, body, "X-Api-Key: "+realKey, "naming the header does not take the key off")
	assert.NotContains(t, body, "X-Gone")
}

func TestModelBodyIsUnchanged(t *testing.T) {
	r, up := newModelRig(t, modelPolicy(t), nil)
	var got string
	up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
	})
	body := `{"text":"` + placeholder + `  \u00e9"}`
	status, _, _ := r.send(fmt.Sprintf("POST http://api.model.test/v1/messages HTTP/1.1\r\nHost: api.model.test\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	assert.Equal(t, 200, status)
	assert.Equal(t, body, got)
}

func TestModelNeedsThePolicy(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   int
	}{
		{Policy{}, 403},
		{Policy{AllowedDomains: rules(t, "api.model.test:80")}, 403},
		{Policy{AllowedDomains: rules(t, "api.model.test"), AllowedPorts: &[]Port{80}}, 403},
		{Policy{AllowedDomains: rules(t, "*"), DeniedDomains: rules(t, "api.model.test")}, 403},
		{Policy{AllowedDomains: rules(t, "api.model.test:443")}, 200},
		{Policy{AllowedDomains: rules(t, "api.model.test"), AllowedPorts: &[]Port{443}}, 200},
		{Policy{AllowedDomains: rules(t, "*.model.test")}, 200},
	} {
		r, _ := newModelRig(t, c.policy, nil)
		status, _, body := r.send(model("/"))
		assert.Equal(t, c.want, status, body)
		if c.want == 403 {
			assert.Equal(t, ViaModel, r.await(EventDeny).Via)
		}
	}
}

func TestModelRefusesForeignCredentials(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), nil)
	for _, fields := range [][]string{
		{"x-api-key: sk-ant-api03-SOMEBODYELSE"},
		{"x-api-key: " + realKey},
		{"x-api-key: " + placeholder + "x"},
		{"x-api-key: "},
		{"x-api-key: " + placeholder, "X-API-Key: sk-ant-api03-SOMEBODYELSE"},
		{"x-api-key: " + placeholder, "Authorization: Bearer sk-ant-oat-SOMEBODYELSE"},
		{"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("a:"+placeholder))},
		{"Authorization: Bearer  " + placeholder},
		{"Authorization: sk-ant-api03-SOMEBODYELSE", "Connection: authorization"},
	} {
		r.forget()
		status, _, body := r.send(model("/", fields...))
		assert.Equal(t, 403, status, "%v: %s", fields, body)
		assert.NotContains(t, body, "SOMEBODYELSE")
		assert.Contains(t, r.await(EventDeny).Reason, "does not hold the placeholder")
	}
	_, dialled, _ := r.seen()
	assert.Empty(t, dialled)
	status, _, _ := r.send(model("/", "x-api-key: "+placeholder))
	assert.Equal(t, 200, status)
}

func TestModelCredentialForAnotherHost(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), nil)
	r.mu.Lock()
	r.target = r.up.Listener.Addr().String()
	r.mu.Unlock()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+placeholder))
	escaped := strings.ReplaceAll(placeholder, "-", "%2D")
	for _, raw := range []string{
		get("http://good.test/", "good.test", "X-Anything: v="+placeholder),
		get("http://good.test/", "good.test", "X-Anything: "+realKey),
		get("http://good.test/", "good.test", "Authorization: "+basic),
		get("http://good.test/", "good.test", "Proxy-Authorization: "+basic),
		get("http://good.test/", "good.test", "X-Anything: "+escaped),
		get("http://good.test/", "good.test", placeholder+": 1"),
		get("http://good.test/?k="+placeholder, "good.test"),
		get("http://good.test/"+escaped, "good.test"),
		"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\nX-Anything: " + placeholder + "\r\n\r\n",
		get("http://api.model.test:8080/", "api.model.test:8080", "x-api-key: "+placeholder),
	} {
		r.forget()
		status, _, body := r.send(raw)
		assert.Equal(t, 403, status, raw)
		rec := r.await(EventDeny)
		assert.Equal(t, "built-in: model credential", rec.Rule)
		assert.NotContains(t, body+rec.Reason, realKey)
		_, dialled, asked := r.seen()
		assert.Empty(t, dialled)
		assert.Empty(t, asked)
	}
	status, _, _ := r.send(get("http://good.test/?k="+placeholder[:12], "good.test", "Authorization: Basic YTpi"))
	assert.Equal(t, 200, status)
}

func TestModelPath(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), func(m *ModelRoute) { m.Upstream.Path = "/tenant" })
	for _, path := range []string{"/v1/../../admin", "/v1/%2e%2E/admin", "/v1/.%2e/x", "/..", "/v1/.", "//evil", "/a%2Fb", "/a%5Cb"} {
		status, _, body := r.send(model(path))
		assert.Equal(t, 400, status, "%s: %s", path, body)
	}
	status, _, body := r.send(model("/v1/a..b/c?x=../%2e%2e//;y&z=%zz"))
	assert.Equal(t, 200, status)
	assert.Contains(t, body, "GET /tenant/v1/a..b/c?x=../%2e%2e//;y&z=%zz ")
}

func TestModelRedactsResponse(t *testing.T) {
	r, up := newModelRig(t, modelPolicy(t), nil)
	up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "<"+r.Header.Get("X-Api-Key")+">")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Known")
		w.Header().Set("X-Echo", "key="+r.Header.Get("X-Api-Key")+";")
		w.Header().Set("Location", "http://169.254.169.254/")
		w.WriteHeader(http.StatusFound)
		io.WriteString(w, "body")
		w.Header().Set("X-Known", r.Header.Get("X-Api-Key"))
		w.Header().Set(http.TrailerPrefix+"X-Unknown", r.Header.Get("X-Api-Key"))
	})
	c := r.connect()
	io.WriteString(c, model("/", "TE: trailers"))
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.NotContains(t, string(all), realKey)
	assert.Contains(t, string(all), "HTTP/1.1 103 Early Hints")
	assert.Contains(t, string(all), "X-Echo: key=[redacted];")
	assert.Contains(t, string(all), "X-Known: [redacted]")
	assert.Contains(t, string(all), "HTTP/1.1 302 Found", "not followed")
	assert.Equal(t, 302, r.await(EventClose).Status)
}

func TestModelVerifiesTheUpstream(t *testing.T) {
	r, up := newModelRig(t, modelPolicy(t), func(m *ModelRoute) { m.Transport = nil }) // the system's roots do not have this authority
	reached := false
	up.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })
	status, _, body := r.send(model("/", "x-api-key: "+placeholder))
	assert.Equal(t, 502, status)
	assert.Contains(t, body, "x509")
	assert.NotContains(t, body, realKey)
	assert.False(t, reached, "the key is not sent before the certificate is verified")

	r, up = newModelRig(t, modelPolicy(t), func(m *ModelRoute) { m.Upstream.Host = "other.test" }) // a name that the certificate lacks
	up.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })
	status, _, body = r.send(model("/"))
	assert.Equal(t, 502, status)
	assert.Contains(t, body, "x509")
	assert.False(t, reached)

	r, _ = newModelRig(t, modelPolicy(t), nil)
	status, _, _ = r.send(model("/"))
	assert.Equal(t, 200, status)
}

func TestModelUpstreamAddressIsChecked(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), nil)
	r.dns.mu.Lock()
	r.dns.answers["example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	r.dns.mu.Unlock()
	status, _, body := r.send(model("/"))
	assert.Equal(t, 403, status)
	assert.Contains(t, body, "private (10.0.0.0/8)")
	assert.Equal(t, "10.0.0.1", r.await(EventDeny).Addr.String())
	_, dialled, _ := r.seen()
	assert.Empty(t, dialled)
}

func TestModelUpstreamOnLoopback(t *testing.T) {
	for _, name := range []string{"127.0.0.1", "localhost"} {
		r := newRig(t, modelPolicy(t), func(r *rig) {
			_, port, err := net.SplitHostPort(r.up.Listener.Addr().String())
			require.NoError(t, err)
			r.gate.Dial = nil // the real one
			r.gate.Model = &ModelRoute{Host: host(t, "api.model.test"), Placeholder: placeholder, Upstream: &url.URL{Scheme: "http", Host: name + ":" + port}}
		})
		status, _, body := r.send(model("/v1/models", "x-api-key: "+placeholder))
		assert.Equal(t, 200, status, body)
		assert.Contains(t, body, "GET /v1/models")
		assert.NotContains(t, body, "X-Api-Key", "without a key the placeholder is taken off")
		assert.Equal(t, loopback4, r.await(EventOpen).Addr)
	}
}

func TestModelStreamsUnbuffered(t *testing.T) {
	r, up := newModelRig(t, modelPolicy(t), nil)
	next := make(chan struct{})
	up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	c := r.connect()
	io.WriteString(c, model("/"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		next <- struct{}{}
	}
}

func TestModelInProcess(t *testing.T) {
	r, _ := newModelRig(t, modelPolicy(t), func(m *ModelRoute) {
		m.Upstream, m.Transport, m.Key = nil, nil, Secret{}
		m.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/abort" {
				io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "%s %s %s %s|", r.Method, r.RequestURI, r.URL, r.Host)
			r.Header.Write(w)
		})
	})
	status, _, body := r.send(model("/v1/messages?a=b", "x-api-key: "+placeholder, "Proxy-Connection: keep-alive"))
	assert.Equal(t, 200, status)
	assert.Equal(t, "GET /v1/messages?a=b /v1/messages?a=b api.model.test|X-Api-Key: "+placeholder+"\r\n", body)
	_, dialled, asked := r.seen()
	assert.Empty(t, dialled)
	assert.Empty(t, asked)
	assert.Equal(t, 200, r.await(EventClose).Status)

	r.forget()
	status, _, _ = r.send(model("/v1/messages", "x-api-key: sk-ant-api03-SOMEBODYELSE"))
	assert.Equal(t, 403, status, "the same rules as with an upstream")
	r.forget()
	r.send(model("/abort"))
	assert.Equal(t, "the answer was cut short", r.await(EventClose).Error)
}

func TestModelRouteIsThatHostOnly(t *testing.T) {
	r, _ := newModelRig(t, Policy{AllowedDomains: rules(t, "api.model.test", "a.api.model.test")}, nil)
	r.mu.Lock()
	r.target = r.up.Listener.Addr().String()
	r.mu.Unlock()
	for _, raw := range []string{
		get("http://a.api.model.test/", "a.api.model.test"),
		get("http://api.model.test:8080/", "api.model.test:8080"),
	} {
		_, _, body := r.send(raw)
		assert.Contains(t, body, "GET / host=")
		assert.NotContains(t, body, realKey)
	}

	// A tunnel would carry any credential, unseen.
	r.forget()
	status, _, body := r.send(connectTo("api.model.test:443"))
	assert.Equal(t, 403, status)
	assert.Contains(t, body, "reached as http://api.model.test/")
	status, _, body = r.send(connectTo("a.api.model.test:443"))
	assert.Equal(t, 200, status, body)
	assert.Equal(t, "a.api.model.test", r.await(EventOpen).Host.String())
}

func TestModelRouteCheck(t *testing.T) {
	route := func(raw string) *ModelRoute {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		return &ModelRoute{Host: host(t, "api.model.test"), Upstream: u}
	}
	for _, raw := range []string{"https://api.model.test", "https://api.model.test:8443/base", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"} {
		assert.NoError(t, route(raw).check(), raw)
	}
	for raw, problem := range map[string]string{
		"http://api.model.test":       `write "https://api.model.test"`,
		"http://10.0.0.1":             "would show the key",
		"http://localhost.evil.test":  "would show the key",
		"ftp://api.model.test":        `scheme "ftp"`,
		"https://u:p@api.model.test":  "user part",
		"https://api.model.test?x=1":  "query",
		"https://api.model.test#x":    "fragment",
		"https://":                    "is empty",
		"https://api.model.test:0443": `spelt "443"`,
		"mailto:x":                    "is empty",
	} {
		assert.ErrorContains(t, route(raw).check(), problem, raw)
	}
	for _, c := range []struct {
		change  func(*ModelRoute)
		problem string
	}{
		{func(m *ModelRoute) { m.Host = Host{} }, "no host"},
		{func(m *ModelRoute) { m.Placeholder = "short" }, "shorter than 8"},
		{func(m *ModelRoute) { m.Key = NewSecret("a\nb") }, "control character"},
		{func(m *ModelRoute) { m.Upstream = nil }, "neither handler nor upstream"},
		{func(m *ModelRoute) { m.Placeholder, m.Key = placeholder, NewSecret(placeholder) }, "is the key"},
	} {
		m := route("https://api.model.test")
		c.change(m)
		assert.ErrorContains(t, m.check(), c.problem)
	}
}

func TestModelDialRefusesNames(t *testing.T) {
	g := &Gateway{}
	for _, addr := range []string{"127.1:80", "a@b:80", "a"} {
		_, err := g.dialModel(context.Background(), "tcp", addr)
		assert.Error(t, err)
	}
}
