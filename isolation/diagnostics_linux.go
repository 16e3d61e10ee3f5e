package isolation

import (
	"os"
	"strings"
)

// diagnostics collects what bubblewrap and the stages write to their standard error; the command has streams of its own.
type diagnostics struct {
	writer *os.File
	done   chan struct{}
	tail   []byte
}

// maxDiagnostics bounds what is kept: the first lines name the cause.
const maxDiagnostics = 8 << 10

func newDiagnostics() (*diagnostics, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	d := &diagnostics{writer: w, done: make(chan struct{})}
	go d.collect(r)
	return d, nil
}

func (d *diagnostics) collect(r *os.File) {
	defer close(d.done)
	defer r.Close()
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		d.tail = append(d.tail, buf[:min(n, maxDiagnostics-len(d.tail))]...)
		if err != nil {
			return
		}
	}
}

// text returns what was written, once every writer is gone.
func (d *diagnostics) text() string {
	if d == nil {
		return ""
	}
	<-d.done
	return strings.TrimSpace(string(d.tail))
}
