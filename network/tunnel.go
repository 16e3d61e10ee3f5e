package network

import (
	"context"
	"io"
	"net/http"
)

// tunnelClient is the client of a tunnel in the protocol by which it asked for one.
type tunnelClient interface {
	// accept takes the connection over. It returns what tells the client that the tunnel is open, and what the client has
	// sent beyond its request.
	accept() (welcome string, early []byte)
}

// tunnel decides about a connection to host and port, whatever protocol asks, then dials and relays. It returns why not.
func (g *Gateway) tunnel(ctx context.Context, c *frontConn, client tunnelClient, host Host, port Port) (refusal, bool) {
	d := g.decideTunnel(host, port)
	if d.Verdict != Allow {
		return denied(d, host.Authority(port)), false
	}
	c.allow(d)
	if g.Model.covers(host) {
		g.endTLS(ctx, c, client)
		return refusal{}, true
	}
	peer, err := g.reach(withFront(ctx, c), host, port)
	if err != nil {
		return g.failure(c, err), false
	}
	g.carry(c, client, peer)
	return refusal{}, true
}

// decideTunnel is the policy's decision, save that no tunnel leads to the model API unless its TLS ends here.
func (g *Gateway) decideTunnel(host Host, port Port) Decision {
	d := g.Policy.Decide(host, port)
	if d.Verdict == Allow && g.Model.covers(host) && (g.Model.CA == nil || port != 443) {
		return g.Model.noTunnel()
	}
	return d
}

// carry tells the client that its tunnel is open, and relays until it ends.
func (g *Gateway) carry(c *frontConn, client tunnelClient, peer *peerConn) {
	defer c.Close()
	defer peer.Close()
	welcome, early := client.accept()
	c.open(peer.addr)
	c.up.Store(0)
	if _, err := io.WriteString(c.Conn, welcome); err != nil {
		c.ended(0, "client: "+err.Error())
		return
	}
	c.down.Store(0)
	if err := c.relay(g.ctx, peer, early); err != nil {
		c.ended(0, err.Error())
	}
}

// httpClient is one that sent a CONNECT.
type httpClient struct {
	*frontConn
	w http.ResponseWriter
}

func (h httpClient) accept() (welcome string, early []byte) {
	_, buffered, err := http.NewResponseController(h.w).Hijack()
	if err != nil {
		panic("BUG: " + err.Error()) // net/http's HTTP/1 connections can always be hijacked
	}
	h.ended(http.StatusOK, "")
	r := buffered.Reader
	early, _ = r.Peek(r.Buffered()) // what is buffered can be peeked
	early = append(early[:len(early):len(early)], h.pending...)
	h.pending = nil
	return "HTTP/1.1 200 Connection established\r\n\r\n", early
}
