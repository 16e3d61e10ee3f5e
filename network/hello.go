package network

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
)

// helloBytes is the most that a ClientHello may take, with the headers of its records. Ordinary ones have 300 bytes to 2 KiB.
const helloBytes = 64 << 10

// recordHandshake is the content type of the records that a ClientHello comes in, and so the first byte of every TLS
// connection (RFC 8446 §5.1).
const recordHandshake = 22

// The extensions that say which server a hello asks for.
const (
	extensionServerName     = 0      // RFC 6066 §3
	extensionEncryptedHello = 0xfe0d // the name that counts is inside, encrypted; without a key, noise (GREASE) looks the same
)

// alert is the description of a TLS alert; see RFC 8446 §6.
type alert byte

const (
	noAlert          alert = 0 // in TLS close_notify, which is never sent here
	accessDenied     alert = 49
	decodeError      alert = 50
	unrecognizedName alert = 112
)

// hello is what a TLS client says in the clear before everything else.
type hello struct {
	name       string // as it was sent; empty: none
	extensions []uint16
}

var (
	errHelloRead     = errors.New("hello read")
	errHelloTooLong  = fmt.Errorf("longer than %d bytes", helloBytes)
	errHelloSplit    = errors.New("something else stands between its parts")
	errHelloEndsNext = errors.New("other data follows in its last record")
)

// readHello reads a ClientHello from client, in whatever pieces it comes, and writes nothing. It returns all bytes that it
// read, which may be more than the hello. The parser is that of crypto/tls, which stops where the configuration for the
// client is asked for, before it looks at versions and ciphers; it is as strict as every Go server.
func readHello(client net.Conn) (h hello, raw []byte, err error) {
	tap := &helloTap{Conn: client}
	var found bool
	config := &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h, found = hello{info.ServerName, info.Extensions}, true
		return nil, errHelloRead
	}}
	err = tls.Server(tap, config).Handshake()
	switch {
	case found:
		_, err = helloMessage(tap.raw)
	case tap.err != nil:
		err = tap.err
	}
	if err != nil {
		return hello{}, tap.raw, err
	}
	return h, tap.raw, nil
}

// helloMessage puts the ClientHello together that raw begins with. It refuses what crypto/tls overlooks and another server
// may understand otherwise: alerts between the parts, and more handshake data behind the hello in its last record.
func helloMessage(raw []byte) ([]byte, error) {
	var message []byte
	want := 4
	for len(message) < want {
		if len(raw) < 5 || raw[0] != recordHandshake {
			return nil, errHelloSplit
		}
		end := min(5+int(binary.BigEndian.Uint16(raw[3:])), len(raw))
		message = append(message, raw[5:end]...)
		raw = raw[end:]
		if len(message) >= 4 {
			want = 4 + int(message[1])<<16 + int(binary.BigEndian.Uint16(message[2:]))
		}
	}
	if len(message) > want {
		return nil, errHelloEndsNext
	}
	return message, nil
}

// check returns what is wrong with the hello in a tunnel to host, and the alert that says so; an empty reason: nothing.
// A hello to a name must carry that name. One to an address must carry none: RFC 6066 has no addresses there, and any name
// would be one that nobody has decided about.
func (h hello) check(host Host) (a alert, reason string) {
	named, err := ParseHost(h.name)
	switch {
	case slices.Contains(h.extensions, extensionEncryptedHello):
		return accessDenied, "the TLS hello has an encrypted part (ECH), so nobody can check which server it asks for; turn ECH off in the client"
	case host.IsAddr() && slices.Contains(h.extensions, extensionServerName):
		return unrecognizedName, fmt.Sprintf("the TLS hello asks for the server %q, but the tunnel is to the address %s, where it must ask for none", clip(h.name), host)
	case host.IsAddr():
		return noAlert, ""
	case h.name == "":
		return unrecognizedName, fmt.Sprintf("the TLS hello asks for no server by name, but the tunnel is to %s; turn SNI on in the client", host)
	case err != nil || named != host:
		return unrecognizedName, fmt.Sprintf("the TLS hello asks for the server %q, but the tunnel is to %s", clip(h.name), host)
	}
	return noAlert, ""
}

// helloTap keeps what is read through it and lets nothing be written.
type helloTap struct {
	net.Conn
	raw []byte
	err error // of the last Read
}

// Read reads and keeps, up to helloBytes.
func (t *helloTap) Read(p []byte) (n int, err error) {
	room := helloBytes - len(t.raw)
	if room == 0 {
		t.err = errHelloTooLong
		return 0, t.err
	}
	n, t.err = t.Conn.Read(p[:min(len(p), room)])
	t.raw = append(t.raw, p[:n]...)
	return n, t.err
}

// Write drops the alert by which crypto/tls ends the handshake.
func (t *helloTap) Write(p []byte) (int, error) { return len(p), nil }
