package claude

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is enough for a stack dump, and little enough to keep for every run.
const tailSize = 64 << 10

// Tail keeps the last 64 KiB written to it, for the CLI's standard error: that must always be drained, and is wanted
// only when something went wrong. The zero value is ready; it may be used from several goroutines.
type Tail struct {
	mu  sync.Mutex
	buf []byte // up to twice the size, so that cutting is rare
	cut bool   // something came before
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if n > tailSize {
		p, t.cut = p[n-tailSize:], true
		t.buf = t.buf[:0]
	}
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
		t.cut = true
	}
	return n, nil
}

// String returns the tail, redacted by [Redact]. Where the beginning is missing it starts after the first blank, for
// half a secret looks like none.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, cut := t.buf, t.cut
	if len(text) > tailSize {
		text, cut = text[len(text)-tailSize:], true
	}
	if cut {
		const secret = 4096 // longer than any
		blank := bytes.IndexAny(text[:min(len(text), secret)], " \t\r\n")
		text = text[min(len(text), max(blank, 0)):]
		if blank < 0 {
			text = text[min(len(text), secret):]
		}
	}
	return Redact(strings.ToValidUTF8(string(text), "\uFFFD"))
}
