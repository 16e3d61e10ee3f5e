package network

import (
	"net/netip"
	"time"
)

// Event says what a [Record] tells of.
type Event string

// The events of a connection. One that is allowed has an open and a close, or a close alone if nothing could be reached;
// one that is denied has a deny alone. A request that turns out to leak a credential has a deny. A tunnel whose first bytes
// are refused has an open and a deny, because they come after the answer.
const (
	EventOpen  Event = "open"
	EventClose Event = "close"
	EventDeny  Event = "deny"
)

// Via says by which way a connection came in.
type Via string

// The ways in.
const (
	ViaConnect Via = "connect" // HTTP CONNECT
	ViaSOCKS   Via = "socks"   // SOCKS5
	ViaHTTP    Via = "http"    // plain HTTP in absolute form
	ViaModel   Via = "model"   // the model route
	ViaUnknown Via = "unknown" // nothing that the gateway speaks, or not even a request
)

// Record is one line of the audit: a decision, or the end of a connection. It never holds a secret, a query string or
// the value of a header.
type Record struct {
	Time     time.Time     `json:"time"`
	Event    Event         `json:"event"`
	Via      Via           `json:"via"`
	Method   string        `json:"method,omitempty"` // of plain HTTP and the model route
	Host     Host          `json:"host,omitzero"`    // zero: the request named no valid host
	Port     Port          `json:"port,omitzero"`
	Verdict  Verdict       `json:"verdict"`
	Rule     string        `json:"rule,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Addr     netip.Addr    `json:"addr,omitzero"`        // what was connected to; in a denial, what was refused
	Dropped  []netip.Addr  `json:"dropped,omitempty"`    // answers for an allowed name that were refused
	Status   int           `json:"status,omitempty"`     // the HTTP status that the sandbox saw; SOCKS has none
	Up       int64         `json:"up"`                   // bytes from the sandbox: in a tunnel the payload, else the request with its head
	Down     int64         `json:"down"`                 // bytes to the sandbox, likewise
	Duration time.Duration `json:"duration_ns,omitzero"` // since the connection was accepted
	Error    string        `json:"error,omitempty"`      // why an allowed connection failed or was cut
}
