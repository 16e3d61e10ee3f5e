package network

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heldConn gives in, at most step bytes at a time, then io.EOF, and keeps what is written.
type heldConn struct {
	net.Conn
	in, out []byte
	step    int
}

func (c *heldConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in[:min(len(c.in), max(c.step, 1))])
	c.in = c.in[n:]
	return n, nil
}
func (c *heldConn) Write(p []byte) (int, error)      { c.out = append(c.out, p...); return len(p), nil }
func (c *heldConn) Close() error                     { return nil }
func (c *heldConn) SetWriteDeadline(time.Time) error { return nil }

// helloOf returns the first bytes of a client of crypto/tls that asks for name; empty: for none.
func helloOf(t testing.TB, name string, set ...func(*tls.Config)) []byte {
	config := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	for _, f := range set {
		f(config)
	}
	conn := &heldConn{}
	require.ErrorIs(t, tls.Client(conn, config).Handshake(), io.EOF)
	return conn.out
}

func only12(c *tls.Config)      { c.MaxVersion = tls.VersionTLS12 }
func only13(c *tls.Config)      { c.MinVersion = tls.VersionTLS13 }
func classicOnly(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }

// padded makes a hello longer by n bytes or so.
func padded(n int) func(*tls.Config) {
	return func(c *tls.Config) {
		c.NextProtos = []string{"http/1.1"}
		for len(c.NextProtos)*100 < n {
			c.NextProtos = append(c.NextProtos, fmt.Sprintf("%099d", len(c.NextProtos)))
		}
	}
}

// hiding encrypts the server name by ECH; the outer name, in the clear, is outer.
func hiding(t testing.TB, outer string) func(*tls.Config) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	contents := []byte{1, 0, 0x20} // config id, DHKEM(X25519, HKDF-SHA256)
	contents = appendBlock(contents, 2, key.PublicKey().Bytes())
	contents = appendBlock(contents, 2, []byte{0, 1, 0, 1}) // HKDF-SHA256, AES-128-GCM
	contents = append(contents, 32)                         // maximum name length
	contents = appendBlock(contents, 1, []byte(outer))
	contents = appendBlock(contents, 2, nil)
	list := appendBlock(nil, 2, appendBlock([]byte{0xfe, 0x0d}, 2, contents))
	return func(c *tls.Config) {
		c.EncryptedClientHelloConfigList = list
		c.MinVersion = tls.VersionTLS13
		c.EncryptedClientHelloRejectionVerify = func(tls.ConnectionState) error { return nil }
	}
}

// appendBlock appends b behind its length of n bytes.
func appendBlock(to []byte, n int, b []byte) []byte {
	if n == 2 {
		to = binary.BigEndian.AppendUint16(to, uint16(len(b)))
	} else {
		to = append(to, byte(len(b)))
	}
	return append(to, b...)
}

// inRecords puts the message of a hello into records of n bytes.
func inRecords(n int) func([]byte) []byte {
	return func(raw []byte) []byte {
		message, err := helloMessage(raw)
		if err != nil {
			panic(err)
		}
		var out []byte
		for part := range slices.Chunk(message, n) {
			out = appendBlock(append(out, recordHandshake, 3, 1), 2, part)
		}
		return out
	}
}

// renamed replaces one name of a hello by another of the same length.
func renamed(from, to string) func([]byte) []byte {
	return func(raw []byte) []byte { return []byte(strings.Replace(string(raw), from, to, 1)) }
}

func TestReadHello(t *testing.T) {
	for name, raw := range map[string][]byte{
		"TLS 1.2":            helloOf(t, "good.test", only12),
		"TLS 1.3":            helloOf(t, "good.test", only13, classicOnly),
		"post-quantum share": helloOf(t, "good.test", only13),
		"40 KiB":             helloOf(t, "good.test", padded(40<<10)),
		"records of a byte":  inRecords(1)(helloOf(t, "good.test")),
		"more behind it":     append(helloOf(t, "good.test"), "\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x01x"...),
	} {
		for _, step := range []int{1, 5, 1000, len(raw)} {
			h, got, err := readHello(&heldConn{in: raw, step: step})
			require.NoError(t, err, name)
			assert.Equal(t, "good.test", h.name, name)
			assert.Equal(t, raw[:len(got)], got, "what is read can be sent on")
		}
	}
}

func TestReadHelloRefuses(t *testing.T) {
	good := helloOf(t, "good.test")
	twoParts := inRecords(len(good) - 20)(good)
	message, err := helloMessage(good)
	require.NoError(t, err)
	warning := "\x15\x03\x01\x00\x02\x01\x5a"
	for name, tt := range map[string]struct {
		raw  string
		want string
	}{
		"nothing":               {"", "EOF"},
		"half of it":            {string(good[:100]), "EOF"},
		"another handshake":     {"\x16\x03\x01\x00\x04\x00\x00\x00\x00", "unexpected handshake message"},
		"another record":        {"\x17\x03\x03\x00\x01x", "first record does not look like a TLS handshake"},
		"a warning before":      {warning + string(good), errHelloSplit.Error()},
		"a warning between":     {string(twoParts[:5+len(good)-20]) + warning + string(twoParts[5+len(good)-20:]), errHelloSplit.Error()},
		"two in one record":     {string(appendBlock([]byte{recordHandshake, 3, 1}, 2, append(slices.Clone(message), message...))), errHelloEndsNext.Error()},
		"an enormous record":    {"\x16\x03\x01\xff\xff" + strings.Repeat("x", 70<<10), "oversized record"},
		"an enormous message":   {"\x16\x03\x01\x40\x00\x01\x10\x00\x00" + strings.Repeat("x", 70<<10), "exceeds maximum"},
		"a name with final dot": {string(renamed("good.testx", "good.test.")(helloOf(t, "good.testx"))), "error decoding message"},
		"too many records":      {string(inRecords(8)(helloOf(t, "good.test", padded(48<<10)))), errHelloTooLong.Error()},
	} {
		h, got, err := readHello(&heldConn{in: []byte(tt.raw), step: 1 << 20})
		assert.ErrorContains(t, err, tt.want, name)
		assert.Zero(t, h, name)
		assert.LessOrEqual(t, len(got), helloBytes, name)
	}
}

func TestHelloCheck(t *testing.T) {
	sni := []uint16{extensionServerName}
	for _, tt := range []struct {
		host  string
		hello hello
		want  alert
	}{
		{"good.test", hello{"good.test", sni}, noAlert},
		{"good.test", hello{"GOOD.Test", sni}, noAlert},
		{"good.test", hello{"evil.test", sni}, unrecognizedName},
		{"good.test", hello{"a.good.test", sni}, unrecognizedName},
		{"good.test", hello{"good.test\x00", sni}, unrecognizedName},
		{"good.test", hello{"", nil}, unrecognizedName},
		{"good.test", hello{"", sni}, unrecognizedName},
		{"good.test", hello{"good.test", []uint16{extensionServerName, extensionEncryptedHello}}, accessDenied},
		{"10.0.0.5", hello{"", nil}, noAlert},
		{"10.0.0.5", hello{"", sni}, unrecognizedName},
		{"10.0.0.5", hello{"10.0.0.5", sni}, unrecognizedName},
		{"10.0.0.5", hello{"good.test", sni}, unrecognizedName},
		{"10.0.0.5", hello{"", []uint16{extensionEncryptedHello}}, accessDenied},
	} {
		got, reason := tt.hello.check(host(t, tt.host))
		assert.Equal(t, tt.want, got, "%s %+v", tt.host, tt.hello)
		assert.Equal(t, tt.want == noAlert, reason == "", reason)
	}
	_, reason := hello{"", nil}.check(Host{})
	assert.NotEmpty(t, reason, "no host, no tunnel")
}
