package adapter

import (
	"slices"
	"sync"

	"github.com/sandboxrun/sandboxrun/network"
)

// denials collects what the gateway refused. Its zero value is ready; methods may be called from several goroutines.
type denials struct {
	mu      sync.Mutex
	records []network.Record
}

// maxDenials bounds the memory of an agent that knocks at a closed door for hours; the last ones are kept.
const maxDenials = 10_000

func (d *denials) add(r network.Record) {
	if r.Verdict != network.Deny {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.records) >= maxDenials {
		d.records = slices.Delete(d.records, 0, 1)
	}
	d.records = append(d.records, r)
}

func (d *denials) list() []network.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.records)
}
