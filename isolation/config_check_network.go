package isolation

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sandboxrun/sandboxrun/network"
)

func (k *checker) network() {
	p := k.cfg.NetworkPolicy
	if len(p.LocalhostPorts) > 0 && !p.AllowLocalhost {
		k.fail("network_policy.localhost_ports", "needs network_policy.allow_localhost = true")
	}
	for i, path := range p.AllowUnixSockets.Paths {
		key := indexKey("network_policy.allow_unix_sockets", i)
		if k.path(key, path) && !strings.HasPrefix(path, "/") {
			k.add(key, quoteTOML(path), "want an absolute path")
		}
	}
	for i, rule := range p.Intercept {
		if rule.IsAny() {
			k.add(indexKey("network_policy.intercept", i), quoteTOML(rule.String()), "name the hosts to intercept")
		}
	}
	for _, err := range split(p.Check()) {
		k.networkError(err)
	}
	if p.ParentProxy != "" {
		k.parentProxy(p.ParentProxy)
	}
}

// split takes a joined error apart.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// networkError finds the place of an error of [network.Policy.Check], which begins with the key and goes on with the value.
func (k *checker) networkError(err error) {
	name, msg, _ := strings.Cut(err.Error(), ": ")
	key := joinKey("network_policy", name)
	at, text, first := key, textAt(k.cfg, key), len(msg)
	found := func(key string, data any, sought string) {
		if i := strings.Index(msg, sought); i >= 0 && i < first {
			at, text, first = key, errorText(key, data), i
		}
	}
	for _, l := range leaves(k.cfg) {
		list, _ := l.data.([]any)
		for i, elem := range list {
			if l.key == key {
				found(indexKey(key, i), elem, rawText(elem))
			}
		}
		if pin, ok := strings.CutPrefix(l.key, key+"."); ok {
			found(l.key, l.data, quoteTOML(strings.Trim(pin, `"`)))
		}
	}
	k.add(at, text, "%s", msg).Err = err
}

func (k *checker) parentProxy(text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		k.fail("network_policy.parent_proxy", `want a URL such as "http://proxy.example:3128"`)
	case u.User != nil:
		k.add("network_policy.parent_proxy", redacted, "a password does not belong in a policy")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || !isHostPort(u.Host):
		k.fail("network_policy.parent_proxy", "want a host and a port, no more")
	}
}

// isLoopback reports whether host is this machine: an address, or the name that RFC 6761 keeps for it.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// isHostPort reports whether the authority of a URL is a canonical host, with or without a port.
func isHostPort(authority string) bool {
	host := strings.TrimSuffix(strings.TrimPrefix(authority, "["), "]")
	if h, port, err := net.SplitHostPort(authority); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return false
		}
		host = h
	}
	_, err := network.ParseHost(host)
	return err == nil
}
