package network

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modelRig is a gateway with a model route that says what it was asked.
func modelRig(t testing.TB, allowed ...string) (*rig, *CA) {
	ca, err := NewCA(host(t, "api.model.test"))
	require.NoError(t, err)
	return newRig(t, Policy{AllowedDomains: rules(t, allowed...)}, func(r *rig) {
		r.gate.Model = &ModelRoute{
			Host: host(t, "api.model.test"), Placeholder: "placeholder-key", CA: ca,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "model saw %s %s %s %q", r.Method, r.URL, r.Host, body)
			}),
		}
	}), ca
}

// connect asks for a tunnel and returns the answer's status and the connection.
func connect(t testing.TB, r *rig, target string) (int, net.Conn) {
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	return answer.StatusCode, conn
}

// speak does a TLS handshake as name, trusting only ca, and sends a request.
func speak(t testing.TB, conn net.Conn, ca *CA, name, request string) (string, error) {
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca.PEM()))
	client := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: name})
	if err := client.Handshake(); err != nil {
		return "", err
	}
	if _, err := io.WriteString(client, request); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(client)
	return string(answer), err
}

func request(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func TestTLSOfTheModelEndsInTheGateway(t *testing.T) {
	r, ca := modelRig(t, "api.model.test")
	status, conn := connect(t, r, "api.model.test:443")
	require.Equal(t, 200, status)
	answer, err := speak(t, conn, ca, "api.model.test", request("GET /v1/settings?a=b HTTP/1.1", "Host: api.model.test", "X-Api-Key: placeholder-key"))
	require.NoError(t, err)
	assert.Contains(t, answer, `model saw GET /v1/settings?a=b api.model.test ""`)
	_, dialled, asked := r.seen()
	assert.Empty(t, dialled, "nothing may leave")
	assert.Empty(t, asked)
}

// Whatever else comes through that connection is refused as it is on the plain route.
func TestTLSOfTheModelIsNoTunnel(t *testing.T) {
	for name, tt := range map[string]struct{ request, want string }{
		"another host in the header": {request("GET / HTTP/1.1", "Host: evil.test"), "HTTP/1.1 400"},
		"a key of somebody else":     {request("GET / HTTP/1.1", "Host: api.model.test", "X-Api-Key: stolen"), "HTTP/1.1 403"},
		"an absolute target":         {request("GET http://evil.test/ HTTP/1.1", "Host: api.model.test"), "HTTP/1.1 400"},
		"a tunnel in the tunnel":     {request("CONNECT evil.test:443 HTTP/1.1", "Host: evil.test:443"), "HTTP/1.1 400"},
		"dot segments":               {request("GET /v1/../admin HTTP/1.1", "Host: api.model.test"), "HTTP/1.1 400"},
		"two requests at once": {request("GET /one HTTP/1.1", "Host: api.model.test") + request("GET /two HTTP/1.1", "Host: api.model.test"),
			"model saw GET /one"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ca := modelRig(t, "*")
			_, conn := connect(t, r, "api.model.test:443")
			answer, err := speak(t, conn, ca, "api.model.test", tt.request)
			require.NoError(t, err)
			assert.Contains(t, answer, tt.want)
			assert.NotContains(t, answer, "/two")
			_, dialled, _ := r.seen()
			assert.Empty(t, dialled)
		})
	}
}

func TestTLSOfTheModelKeepsToItsName(t *testing.T) {
	r, ca := modelRig(t, "api.model.test")
	_, conn := connect(t, r, "api.model.test:443")
	_, err := speak(t, conn, ca, "other.test", request("GET / HTTP/1.1", "Host: other.test"))
	assert.Error(t, err, "the certificate is for the model's name only")

	// A client that does not check certificates and names somebody else is cut off.
	_, conn = connect(t, r, "api.model.test:443")
	client := tls.Client(conn, &tls.Config{ServerName: "other.test", InsecureSkipVerify: true})
	_, err = io.WriteString(client, request("GET / HTTP/1.1", "Host: api.model.test"))
	if err == nil {
		_, err = io.ReadAll(client)
	}
	assert.Error(t, err)
}

func TestTunnelsToTheModelAreDecidedLikeAllOthers(t *testing.T) {
	r, _ := modelRig(t, "other.test")
	status, _ := connect(t, r, "api.model.test:443")
	assert.Equal(t, 403, status, "a policy without the host has no model route")
	r, _ = modelRig(t, "api.model.test")
	status, _ = connect(t, r, "api.model.test:8443")
	assert.Equal(t, 403, status, "the model API has one port")
	records, dialled, _ := r.seen()
	assert.Empty(t, dialled)
	require.NotEmpty(t, records)
	assert.Equal(t, "model route", records[0].Rule)
}

// The authority is no use for any other name, even to those who trust it.
func TestCAIsConstrained(t *testing.T) {
	ca, err := NewCA(host(t, "api.model.test"))
	require.NoError(t, err)
	authority, err := x509.ParseCertificate(ca.leaf.Certificate[1])
	require.NoError(t, err)
	assert.True(t, authority.PermittedDNSDomainsCritical)
	assert.Equal(t, []string{"api.model.test"}, authority.PermittedDNSDomains)
	assert.LessOrEqual(t, authority.NotAfter.Sub(authority.NotBefore), 25*time.Hour)
	_, err = NewCA(Host{})
	assert.Error(t, err)
}
