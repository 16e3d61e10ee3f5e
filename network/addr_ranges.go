package network

import "net/netip"

// rangeKind says what opens a range of addresses that the gateway refuses.
type rangeKind uint8

const (
	never   rangeKind = iota // a pinned name only
	private                  // allow_resolved or an entry of its own as well
)

// addrRange is a range of addresses that no name may resolve to without more ado.
type addrRange struct {
	prefix netip.Prefix
	name   string
	kind   rangeKind
}

// String returns "loopback (127.0.0.0/8)".
func (r *addrRange) String() string { return r.name + " (" + r.prefix.String() + ")" }

// specialRange returns the range that addr is in, or nil for a public address. The first row that fits decides. Of IPv6
// only 2000::/3 is in use on the internet, so the rest is refused as a whole.
func specialRange(addr netip.Addr) *addrRange {
	for i := range specialRanges {
		if specialRanges[i].prefix.Contains(addr) {
			return &specialRanges[i]
		}
	}
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return &unassigned
	}
	return nil
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	unassigned    = addrRange{netip.MustParsePrefix("::/0"), "IPv6 outside 2000::/3", never}
)

// specialRanges are the IANA special-purpose registries (RFC 6890 and its updates) and the metadata services of clouds,
// most specific first.
var specialRanges = []addrRange{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata", never}, // most clouds
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata", never},   // AWS ECS task credentials
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata", never}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata", never},   // Azure wire server: a public address by number
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata", never},     // Oracle
	{netip.MustParsePrefix("fd00:ec2::/32"), "cloud metadata", never},      // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata", never},   // Google

	{netip.MustParsePrefix("10.0.0.0/8"), "private", private},
	{netip.MustParsePrefix("172.16.0.0/12"), "private", private},
	{netip.MustParsePrefix("192.168.0.0/16"), "private", private},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT", private},
	{netip.MustParsePrefix("fc00::/7"), "unique local", private},

	{netip.MustParsePrefix("0.0.0.0/8"), "this network", never}, // Linux connects 0.0.0.0 to loopback
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", never},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local", never},
	{netip.MustParsePrefix("192.0.0.0/24"), "IETF protocol assignments", never},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation", never},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112", never},
	{netip.MustParsePrefix("192.52.193.0/24"), "AMT relays", never},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relays", never},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112", never},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking", never}, // where the gateway's own DNS answers point
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation", never},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation", never},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", never},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved", never},

	{netip.MustParsePrefix("::1/128"), "loopback", never},
	{netip.MustParsePrefix("::/128"), "unspecified", never},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64", never},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64", never},
	{netip.MustParsePrefix("fe80::/10"), "link-local", never},
	{netip.MustParsePrefix("fec0::/10"), "site-local", never},
	{netip.MustParsePrefix("ff00::/8"), "multicast", never},
	{netip.MustParsePrefix("2001::/32"), "Teredo", never},
	{netip.MustParsePrefix("2001::/23"), "IETF protocol assignments", never},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation", never},
	{netip.MustParsePrefix("2002::/16"), "6to4", never},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112", never},
	{netip.MustParsePrefix("3fff::/20"), "documentation", never},
}

// carrier is a way to write an IPv4 address into an IPv6 address.
type carrier struct {
	prefix netip.Prefix // not valid: any
	unpack func(b [16]byte) (netip.Addr, bool)
}

// carriers has no row for IPv4-mapped addresses: Unmap has removed those before anyone looks.
var carriers = []carrier{
	{netip.MustParsePrefix("::/96"), compatible},               // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), bytesAt(12, 0)}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), bytesAt(12, 0)},    // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), bytesAt(12, 0)},  // local NAT64 by /96, RFC 8215
	{netip.MustParsePrefix("2002::/16"), bytesAt(2, 0)},        // 6to4, RFC 3056
	{netip.MustParsePrefix("2001::/32"), bytesAt(4, 0)},        // Teredo server, RFC 4380
	{netip.MustParsePrefix("2001::/32"), bytesAt(12, 0xff)},    // Teredo client, RFC 4380
	{netip.Prefix{}, isatap},                                   // ISATAP, RFC 5214
}

// bytesAt unpacks the four bytes from i on, each flipped by mask.
func bytesAt(i int, mask byte) func([16]byte) (netip.Addr, bool) {
	return func(b [16]byte) (netip.Addr, bool) {
		return netip.AddrFrom4([4]byte{b[i] ^ mask, b[i+1] ^ mask, b[i+2] ^ mask, b[i+3] ^ mask}), true
	}
}

// compatible leaves out :: and ::1, which only look like it.
func compatible(b [16]byte) (netip.Addr, bool) {
	v4, _ := bytesAt(12, 0)(b)
	return v4, v4.As4() != [4]byte{} && v4.As4() != [4]byte{0, 0, 0, 1}
}

// isatap unpacks an interface identifier 0000:5efe or 0200:5efe followed by IPv4, below any prefix.
func isatap(b [16]byte) (netip.Addr, bool) {
	if b[8]&^2 != 0 || b[9] != 0 || b[10] != 0x5e || b[11] != 0xfe {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// metadataNames are the names by which clouds' metadata services go.
var metadataNames = []string{
	"metadata.google.internal",
	"metadata.goog",
	"metadata.azure.internal",
	"metadata.tencentyun.com",
	"instance-data",
	"instance-data.ec2.internal",
	"metadata",
}

func isMetadataName(h Host) bool {
	for _, name := range metadataNames {
		if h.name == name {
			return true
		}
	}
	return false
}
