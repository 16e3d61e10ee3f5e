package network

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Policy is the [network_policy] table: which names a sandbox may reach, and on which ports. It is inert data; its zero
// value allows nothing. [Policy.Decide] and [Policy.DecideAddr] read it, and [Policy.Check] finds what contradicts
// itself. Whoever has a Policy must not change its slices and maps while a [Gateway] uses it.
type Policy struct {
	AllowedDomains   []Rule                `toml:"allowed_domains"`
	DeniedDomains    []Rule                `toml:"denied_domains"`
	AllowedPorts     *[]Port               `toml:"allowed_ports"` // nil: any port on allowed domains; empty: none
	AllowLocalhost   bool                  `toml:"allow_localhost"`
	LocalhostPorts   []Port                `toml:"localhost_ports"`
	AllowUnixSockets UnixSockets           `toml:"allow_unix_sockets"`
	DenyResolved     []netip.Prefix        `toml:"deny_resolved"`
	AllowResolved    []netip.Prefix        `toml:"allow_resolved"`
	Transparent      *bool                 `toml:"transparent"` // nil: true
	Intercept        []Rule                `toml:"intercept"`
	ParentProxy      string                `toml:"parent_proxy"`
	Hosts            map[string]netip.Addr `toml:"hosts"` // pinned names; keys are canonical hosts
}

// UnixSockets is allow_unix_sockets: false, true, or a list of host paths.
type UnixSockets struct {
	All   bool
	Paths []string
}

// UnmarshalTOML accepts a boolean or a list of strings.
func (u *UnixSockets) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case bool:
		*u = UnixSockets{All: v}
		return nil
	case []any:
		paths := make([]string, len(v))
		for i, item := range v {
			path, ok := item.(string)
			if !ok || path == "" {
				return fmt.Errorf("allow_unix_sockets: %v is not a path", item)
			}
			paths[i] = path
		}
		*u = UnixSockets{Paths: paths}
		return nil
	}
	return fmt.Errorf("allow_unix_sockets %v must be true, false or a list of paths", value)
}

// MarshalTOML returns the boolean or the list.
func (u UnixSockets) MarshalTOML() ([]byte, error) {
	if len(u.Paths) > 0 && !u.All {
		return json.Marshal(u.Paths) // a list of JSON strings is a list of TOML strings
	}
	return json.Marshal(u.All)
}

// MarshalJSON returns the boolean or the list.
func (u UnixSockets) MarshalJSON() ([]byte, error) { return u.MarshalTOML() }
