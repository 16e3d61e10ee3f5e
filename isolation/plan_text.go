package isolation

import (
	"fmt"
	"strings"
)

// String prints the plan for people: everything that the run would set up, nothing secret.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s\n", p.Policy)
	p.writeLayers(&b)
	fmt.Fprintf(&b, "\nidentity\n  uid and gid %d inside, %d and %d to the kernel", insideUID, p.UID, p.GID)
	if p.MapOwner {
		b.WriteString(", files of root mapped to it")
	}
	fmt.Fprintf(&b, "\n  host name %s, working directory %s\n", hostname, p.Dir)
	p.writeLimits(&b)
	p.writeNetwork(&b)
	p.writeMounts(&b)
	b.WriteString("\nenvironment\n")
	for _, entry := range p.Env {
		fmt.Fprintf(&b, "  %s\n", entry)
	}
	for _, d := range p.Dropped {
		fmt.Fprintf(&b, "  dropped %s (%s)\n", d.Name, d.Reason)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", w)
	}
	return b.String()
}

func (p *Plan) writeLayers(b *strings.Builder) {
	b.WriteString("\nlayers\n")
	for _, l := range p.Layers {
		fmt.Fprintf(b, "  %-12s %-3s  %s\n", l.Name, l.State, l.Detail)
	}
}

func (p *Plan) writeLimits(b *strings.Builder) {
	l := p.Limits
	fmt.Fprintf(b, "\nlimits\n  wall time %s, memory-backed files %s, processes %d, open files %d, connections %d\n",
		l.WallTime, l.Disk, l.PIDs, l.OpenFiles, l.Connections)
}

func (p *Plan) writeNetwork(b *strings.Builder) {
	b.WriteString("\nnetwork\n")
	if len(p.Network.AllowedDomains) == 0 {
		b.WriteString("  nothing is allowed\n")
	}
	for _, r := range p.Network.AllowedDomains {
		fmt.Fprintf(b, "  allow %s\n", r)
	}
	for _, r := range p.Network.DeniedDomains {
		fmt.Fprintf(b, "  deny  %s\n", r)
	}
	if ports := p.Network.AllowedPorts; ports != nil {
		fmt.Fprintf(b, "  ports %v\n", *ports)
	}
}

func (p *Plan) writeMounts(b *strings.Builder) {
	b.WriteString("\nfiles, in the order of mounting; everything else does not exist\n")
	for _, m := range p.Mounts {
		fmt.Fprintf(b, "  %-10s %s\n", m.access(), m.describe())
	}
}

// access says what the command may do there.
func (m Mount) access() string {
	switch {
	case m.Kind == MountOverlay:
		return "copy"
	case m.Kind == MountMask:
		return "hidden"
	case m.Kind == MountScratch || m.Writable:
		return "read-write"
	}
	return "read-only"
}

func (m Mount) describe() string {
	switch m.Kind {
	case MountBind, MountOverlay, MountMask:
		return m.Target + " ← " + m.Source.Path
	case MountSymlink:
		return m.Target + " → " + m.Text
	case MountFile:
		return m.Target + " (generated)"
	case MountScratch:
		return m.Target + " (empty, in memory)"
	}
	return m.Target
}
