package network

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"
)

// SOCKS5 is RFC 1928, here without authentication and with CONNECT alone.
const (
	socksVersion = 0x05
	socksConnect = 0x01
	socksBytes   = 4 << 10 // read at most of a handshake, which has 519 bytes at most, and of what follows it
)

// socksReply is the answer to a request, RFC 1928 §6.
type socksReply byte

const (
	socksSucceeded     socksReply = 0x00
	socksFailed        socksReply = 0x01
	socksNotAllowed    socksReply = 0x02
	socksNoNetwork     socksReply = 0x03
	socksNoHost        socksReply = 0x04
	socksConnRefused   socksReply = 0x05
	socksNoCommand     socksReply = 0x07
	socksNoAddressType socksReply = 0x08
)

// answer is the reply on the wire. It names no address: from where the gateway dials is none of the sandbox's business.
func (r socksReply) answer() string {
	return string([]byte{socksVersion, byte(r), 0, 1, 0, 0, 0, 0, 0, 0})
}

// socksReplyTo says why an allowed host could not be reached.
func socksReplyTo(err error) socksReply {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksConnRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socksNoNetwork
	}
	return socksNoHost
}

// socksRequest is what a client asks for.
type socksRequest struct {
	name string // the host as the client spelt it; "": it sent an address
	host Host
	port Port
}

// socksError is a request that cannot be decided about.
type socksError struct {
	reply socksReply
	error
}

func badSOCKS(reply socksReply, format string, args ...any) error {
	return socksError{reply, fmt.Errorf(format, args...)}
}

// socksGreetingEnd returns where a greeting ends, or 0 for one that is incomplete.
func socksGreetingEnd(raw []byte, _ int) (int, error) {
	if len(raw) < 2 || len(raw) < 2+int(raw[1]) {
		return 0, nil
	}
	return 2 + int(raw[1]), nil
}

// socksRequestEnd returns where a request ends, or 0 for one that is incomplete. The error is for one that has no end.
func socksRequestEnd(raw []byte, _ int) (int, error) {
	if raw[0] != socksVersion {
		return 0, badSOCKS(socksFailed, "the SOCKS request is not of version 5")
	}
	if len(raw) < 5 {
		return 0, nil
	}
	end := 4 + 2 // without the host
	switch raw[3] {
	case 1:
		end += 4
	case 3:
		end += 1 + int(raw[4])
	case 4:
		end += 16
	default:
		return 0, badSOCKS(socksNoAddressType, "the SOCKS address type %d is neither a name nor an IP address", raw[3])
	}
	if len(raw) < end {
		return 0, nil
	}
	return end, nil
}

// parseSOCKS reads a whole request, strictly.
func parseSOCKS(raw []byte) (r socksRequest, err error) {
	switch command := raw[1]; command {
	case socksConnect:
	case 0x02:
		return r, badSOCKS(socksNoCommand, "SOCKS BIND is refused: nothing connects into the sandbox")
	case 0x03:
		return r, badSOCKS(socksNoCommand, "SOCKS UDP ASSOCIATE is refused: no UDP leaves the sandbox")
	default:
		return r, badSOCKS(socksNoCommand, "the SOCKS command %d is unknown", command)
	}
	if raw[2] != 0 {
		return r, badSOCKS(socksFailed, "the SOCKS request's reserved byte is not 0")
	}
	host, port := raw[4:len(raw)-2], raw[len(raw)-2:]
	r.port = Port(port[0])<<8 | Port(port[1])
	if raw[3] == 3 {
		r.name = string(host[1:])
		if r.host, err = ParseHost(r.name); err != nil {
			return r, socksError{socksNotAllowed, err}
		}
	} else {
		addr, _ := netip.AddrFromSlice(host) // socksRequestEnd has seen to the length
		r.host = HostOf(addr)
	}
	if r.port == 0 {
		return r, badSOCKS(socksNotAllowed, "port 0 is no port")
	}
	return r, nil
}

// socksClient is one that speaks SOCKS.
type socksClient struct{ *frontConn }

func (s socksClient) accept() (welcome string, early []byte) {
	early, s.pending = s.pending, nil
	return socksSucceeded.answer(), early
}

// refuse records a refusal and answers it.
func (s socksClient) refuse(f refusal) {
	f.status = 0
	s.note(f)
	s.Conn.SetDeadline(time.Now().Add(time.Second))
	io.WriteString(s.Conn, cmp.Or(f.socks, socksFailed).answer()) // best effort: the connection ends anyway
}

// socks serves a connection that began with raw. It returns once nobody uses the connection any more, because net/http,
// which waits for a head, closes it then.
func (g *Gateway) socks(c *frontConn, raw []byte) {
	c.identify(ViaSOCKS, "", Host{}, 0)
	if !c.over {
		c.Conn.SetDeadline(c.accepted.Add(g.limits.HeaderTimeout))
	}
	s := socksClient{c}
	r, err := s.handshake(raw)
	if err != nil {
		s.refuseHandshake(r, err)
		return
	}
	c.Conn.SetDeadline(time.Time{})
	if f, ok := g.routeSOCKS(s, r); !ok {
		s.refuse(f)
		return
	}
	<-c.closed // TLS may have ended here, and then the model route serves it
}

// routeSOCKS serves a request, or returns why not.
func (g *Gateway) routeSOCKS(s socksClient, r socksRequest) (refusal, bool) {
	s.identify(ViaSOCKS, "", r.host, r.port)
	if s.over {
		return overLimit(g.limits.Connections), false
	}
	if g.Model != nil && g.Model.isIn(r.name) {
		return g.leak("target", r.host, r.port), false
	}
	return g.tunnel(g.ctx, s.frontConn, s, r.host, r.port)
}

// errNoMethod is the error of a greeting that insists on authentication.
var errNoMethod = errors.New("the SOCKS client insists on authentication, of which the gateway has none")

// handshake reads greeting and request. What follows them is pending afterwards.
func (s socksClient) handshake(raw []byte) (r socksRequest, err error) {
	raw, end, err := s.gather(raw, socksBytes, socksGreetingEnd)
	if err != nil {
		return r, err
	}
	if bytes.IndexByte(raw[2:end], 0) < 0 {
		io.WriteString(s.Conn, "\x05\xff") // best effort, as above
		return r, errNoMethod
	}
	if _, err := io.WriteString(s.Conn, "\x05\x00"); err != nil {
		return r, unfinished{err}
	}
	raw, end, err = s.gather(raw[end:], socksBytes, socksRequestEnd)
	if err != nil {
		return r, err
	}
	s.pending = raw[end:]
	return parseSOCKS(raw[:end])
}

// refuseHandshake records why there is nothing to decide about, and says so to a client that has asked for something.
func (s socksClient) refuseHandshake(r socksRequest, err error) {
	s.identify(ViaSOCKS, "", r.host, r.port)
	var bad socksError
	switch {
	case errors.As(err, &bad):
		f := badRequest(err)
		f.socks = bad.reply
		s.refuse(f)
	case errors.Is(err, errNoMethod):
		s.deny(refusal{Decision: Decision{Deny, NoRule, err.Error()}})
	case s.over:
		s.deny(refusal{Decision: overLimit(s.gate.limits.Connections).Decision})
	default:
		s.cutShort(err, "SOCKS handshake")
	}
}
