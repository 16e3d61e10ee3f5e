package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
)

// refusal is a request that the gateway answers itself, with an error.
type refusal struct {
	Decision
	status int
	kind   string     // the error's type in the body
	target string     // "host:port", if there is one
	addr   netip.Addr // the address that was refused, if that was the reason
	socks  socksReply // what a SOCKS client is told
}

// Error makes a refusal an error, so that a dialler can return one through net/http.
func (f refusal) Error() string { return f.message() }

// denied is the refusal of a decision.
func denied(d Decision, target string) refusal {
	return refusal{Decision: d, status: http.StatusForbidden, kind: "policy_denied", target: target, socks: socksNotAllowed}
}

func badRequest(err error) refusal {
	return refusal{Decision: Decision{Deny, NoRule, err.Error()}, status: http.StatusBadRequest, kind: "bad_request"}
}

func tooLong(limit int) refusal {
	d := Decision{Deny, NoRule, fmt.Sprintf("the request's head is longer than %d bytes", limit)}
	return refusal{Decision: d, status: http.StatusRequestHeaderFieldsTooLarge, kind: "bad_request"}
}

func notImplemented(reason string) refusal {
	return refusal{Decision: Decision{Deny, NoRule, reason}, status: http.StatusNotImplemented, kind: "not_implemented"}
}

// message is written for an agent, which would otherwise try again in other ways.
func (f refusal) message() string {
	switch f.kind {
	case "policy_denied":
		subject := "this request"
		if f.target != "" {
			subject = f.target
		}
		return fmt.Sprintf("%s is denied by the sandbox policy, decided by %s: %s. Retrying will not help.", subject, f.Rule, f.Reason)
	case "limit_exceeded":
		return fmt.Sprintf("refused by the sandbox, decided by %s: %s.", f.Rule, f.Reason)
	case "upstream_failed":
		return fmt.Sprintf("the sandbox policy allows %s, but it could not be reached: %s.", f.target, f.Reason)
	}
	return fmt.Sprintf("refused by the sandbox gateway: %s. Retrying the same request will not help.", f.Reason)
}

func (f refusal) body() []byte {
	type problem struct {
		Type    string `json:"type"`
		Rule    string `json:"rule,omitempty"`
		Message string `json:"message"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]problem{"error": {f.kind, f.Rule, f.message()}}); err != nil {
		panic("BUG: " + err.Error())
	}
	return b.Bytes()
}

// header returns the fields of the answer. X-Sandboxrun-Decision is there unless the policy had allowed the request.
func (f refusal) header(length int) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(length))
	h.Set("Connection", "close")
	h.Set("X-Should-Retry", "false") // the SDKs of the model API retry some statuses otherwise
	switch f.kind {
	case "limit_exceeded":
		h.Set("X-Should-Retry", "true")
		h.Set("Retry-After", "1")
	case "upstream_failed":
		h.Del("X-Should-Retry")
		return h
	}
	h.Set("X-Sandboxrun-Decision", fmt.Sprintf("deny; rule=%q", f.Rule))
	return h
}

func (f refusal) write(w http.ResponseWriter) {
	body := f.body()
	for name, values := range f.header(len(body)) {
		w.Header()[name] = values
	}
	w.WriteHeader(f.status)
	w.Write(body) // best effort: the client may have gone
}

// raw is the whole answer, for a connection that net/http does not serve.
func (f refusal) raw() []byte {
	body := f.body()
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", f.status, http.StatusText(f.status))
	f.header(len(body)).Write(&b)
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
