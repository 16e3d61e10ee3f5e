package network

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// head is a request's head as it stood on the wire. net/http repairs heads (it drops the Host header of an absolute
// target, lets Transfer-Encoding win over Content-Length, unfolds lines), and the gateway wants to refuse instead.
type head struct {
	method, target string
	host           Host // whom the target names
	port           Port
	hostHeader     string // the Host header's value
	hasHostHeader  bool
}

// headEnd looks for the end of a head in raw, whose first from bytes it has seen before. It returns 0 while there is
// none, and an error for a line that ends in a bare line feed.
func headEnd(raw []byte, from int) (int, error) {
	for i := from; i < len(raw); i++ {
		if raw[i] != '\n' {
			continue
		}
		if i == 0 || raw[i-1] != '\r' {
			return 0, fmt.Errorf("a line of the request does not end in CR LF")
		}
		if i >= 3 && raw[i-2] == '\n' {
			return i + 1, nil
		}
	}
	return 0, nil
}

// parseHead reads a whole head, strictly. Where it fails it returns what it has understood. With an origin the target is a
// path of that host, otherwise it says the host itself.
func parseHead(raw []byte, origin Host) (head, error) {
	lines := strings.Split(strings.TrimSuffix(string(raw), "\r\n\r\n"), "\r\n")
	h, version, err := parseRequestLine(lines[0])
	if err != nil {
		return h, err
	}
	f, err := parseFields(lines[1:])
	if err == nil {
		err = f.check(version)
	}
	if err != nil {
		return h, err
	}
	h.hostHeader, h.hasHostHeader = f.host, f.hosts == 1
	if !origin.IsZero() {
		return h, h.parsePath(origin)
	}
	return h, h.parseTarget()
}

func parseFields(lines []string) (f framing, err error) {
	if len(lines) > headerFields {
		return f, fmt.Errorf("the request has more than %d header lines", headerFields)
	}
	for _, line := range lines {
		name, value, err := parseField(line)
		if err != nil {
			return f, err
		}
		if err := f.add(name, value); err != nil {
			return f, err
		}
	}
	return f, nil
}

func parseRequestLine(line string) (h head, version string, err error) {
	words := strings.Split(line, " ")
	if len(words) != 3 || words[1] == "" {
		return head{}, "", fmt.Errorf("the request line is not METHOD TARGET VERSION")
	}
	if words[0] == "" || strings.Trim(words[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return head{}, "", fmt.Errorf("the request method is not in capital letters")
	}
	if words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" {
		return head{}, "", fmt.Errorf("the request is neither HTTP/1.1 nor HTTP/1.0")
	}
	if strings.ContainsFunc(words[1], func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return head{}, "", fmt.Errorf("the request target has a character that is not printable ASCII")
	}
	return head{method: words[0], target: words[1]}, words[2], nil
}

// parseTarget sets the host that the request is for.
func (h *head) parseTarget() (err error) {
	if h.method == http.MethodConnect {
		if _, _, err := ParseAuthority(h.hostHeader, 443); err != nil && h.hostHeader != "" {
			return fmt.Errorf("Host header: %w", err)
		}
		h.host, h.port, err = ParseAuthority(h.target, 0)
		return err
	}
	authority, err := cutAuthority(h.target)
	if err != nil {
		return err
	}
	host, port, err := ParseAuthority(authority, 80)
	if err != nil {
		return err
	}
	if _, err := url.ParseRequestURI(h.target); err != nil {
		return fmt.Errorf("the target is not a valid URL")
	}
	h.host, h.port = host, port
	return h.checkHostHeader()
}

// parsePath accepts a path of origin, which is then as if it had been asked for in absolute form.
func (h *head) parsePath(origin Host) error {
	h.host, h.port = origin, 80
	if !strings.HasPrefix(h.target, "/") || strings.ContainsAny(h.target, `#\`) {
		return errors.New("the target is not a path")
	}
	if host, port, err := ParseAuthority(h.hostHeader, 443); err != nil || host != origin || port != 443 {
		return fmt.Errorf("the Host header does not name %s, to which the client spoke TLS", origin)
	}
	return nil
}

// checkHostHeader refuses a Host header that names somebody else than an absolute target, which net/http would overlook.
func (h *head) checkHostHeader() error {
	if !h.hasHostHeader {
		return nil
	}
	host, port, err := ParseAuthority(h.hostHeader, 80)
	if err != nil {
		return fmt.Errorf("Host header: %w", err)
	}
	if host != h.host || port != h.port {
		return fmt.Errorf("the Host header names %s, the target %s", host.Authority(port), h.host.Authority(h.port))
	}
	return nil
}

// cutAuthority returns the part of "http://authority/path" that the name says.
func cutAuthority(target string) (string, error) {
	const scheme = "http://"
	switch {
	case target == "*", strings.HasPrefix(target, "/"):
		return "", errors.New("this is a proxy, not a server: the target must be an absolute URL like http://example.com/")
	case len(target) >= len("https://") && strings.EqualFold(target[:len("https://")], "https://"):
		return "", errors.New("an https:// target needs CONNECT")
	case len(target) < len(scheme) || !strings.EqualFold(target[:len(scheme)], scheme):
		return "", errors.New("the target is not an http:// URL")
	case strings.ContainsAny(target, `#\`):
		return "", errors.New("the target has a character that URLs do not have on the wire")
	}
	rest := target[len(scheme):]
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return rest, nil
}

// parseField cuts a header line. The name comes back in lower case.
func parseField(line string) (name, value string, err error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsFunc(name, notInToken) {
		return "", "", fmt.Errorf("a header line is not NAME: VALUE")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "", "", fmt.Errorf("a header value has a control character")
	}
	return lowerASCII(name), strings.Trim(value, " \t"), nil
}

// notInToken is the complement of RFC 9110 §5.6.2. A folded line begins with a space and so has no valid name.
func notInToken(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !(r < 0x7f && strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// framing collects the fields that say where a request ends and whom it is for.
type framing struct {
	host              string
	hosts             int
	lengths, encoding int
}

func (f *framing) add(name, value string) error {
	switch name {
	case "host":
		f.host = value
		f.hosts++
	case "content-length":
		f.lengths++
		if value == "" || strings.Trim(value, "0123456789") != "" {
			return fmt.Errorf("Content-Length is not a number")
		}
	case "transfer-encoding":
		f.encoding++
		if lowerASCII(value) != "chunked" {
			return fmt.Errorf("Transfer-Encoding is not chunked")
		}
	}
	return nil
}

func (f *framing) check(version string) error {
	switch {
	case f.hosts > 1:
		return fmt.Errorf("the request has more than one Host header")
	case f.hosts == 0 && version == "HTTP/1.1":
		return fmt.Errorf("the request has no Host header")
	case f.lengths > 1 || f.encoding > 1 || f.lengths+f.encoding > 1:
		return fmt.Errorf("the request says twice how long its body is")
	case f.encoding > 0 && version == "HTTP/1.0":
		return fmt.Errorf("an HTTP/1.0 request has no Transfer-Encoding")
	}
	return nil
}

// notHTTP names the protocol of a connection whose first byte no HTTP request has, or is empty.
func notHTTP(raw []byte) string {
	switch c := raw[0]; {
	case c == 0x04:
		return "SOCKS4 is not spoken here: use a socks5h:// or http:// proxy URL"
	case c == 0x16:
		return "the proxy itself speaks no TLS: use an http:// proxy URL"
	case c < 'A' || c > 'Z':
		return "the first byte is of no HTTP request"
	case bytes.HasPrefix(raw, []byte("PRI * HTTP/2")):
		return "HTTP/2 is not spoken here: use HTTP/1.1"
	}
	return ""
}
