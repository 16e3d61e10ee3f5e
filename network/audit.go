package network

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Audit writes records as JSON lines that are numbered and chained: each line holds the SHA-256 of the line before it,
// and a last line says that it is the last, so that a line which was changed, added or taken out shows, at the end too;
// see [VerifyAudit]. The chain shows accidents and later edits; whoever can write the whole file can write another one.
//
// Methods may be called from several goroutines. Nothing is dropped: a record that cannot be written is an error, which
// also ends the audit.
type Audit struct {
	mu   sync.Mutex
	w    io.Writer
	run  string
	seq  int64
	prev [sha256.Size]byte
	err  error
}

// NewAudit begins the audit of a run in w.
func NewAudit(w io.Writer, run string) *Audit { return &Audit{w: w, run: run} }

// AuditLine is one line of an audit. Exactly one of Record and End is set.
type AuditLine struct {
	Seq    int64   `json:"seq"`  // 1, 2, 3, …
	Prev   string  `json:"prev"` // SHA-256 of the line before, without its line end, in hex; of the first line, 64 zeros
	Run    string  `json:"run"`
	Record *Record `json:"record,omitempty"`
	End    bool    `json:"end,omitempty"` // the run is over: no line follows
}

// Record appends r.
func (a *Audit) Record(r Record) error { return a.append(AuditLine{Record: &r}) }

// Close appends the last line and returns the first error of the audit. It does not close the writer.
func (a *Audit) Close() error {
	err := a.append(AuditLine{End: true})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = errAuditClosed
	}
	if errors.Is(err, errAuditClosed) {
		return nil
	}
	return err
}

var errAuditClosed = errors.New("the audit is closed")

func (a *Audit) append(line AuditLine) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	line.Seq, line.Prev, line.Run = a.seq+1, hex.EncodeToString(a.prev[:]), a.run
	data, err := json.Marshal(line)
	if err == nil {
		_, err = a.w.Write(append(data, '\n'))
	}
	if err != nil {
		a.err = fmt.Errorf("write audit: %w", err)
		return a.err
	}
	a.seq, a.prev = line.Seq, sha256.Sum256(data)
	return nil
}

// AuditError says where an audit's chain is broken.
type AuditError struct {
	Line int // counted from 1; one past the last when the end is missing
	Msg  string
}

func (e *AuditError) Error() string { return fmt.Sprintf("audit line %d: %s", e.Line, e.Msg) }

// maxAuditLine bounds the memory that a forged audit can take.
const maxAuditLine = 1 << 20

// VerifyAudit reads a whole audit and returns its records, in order. The error is an [*AuditError] where the chain is
// broken: a line that is no line of an audit, that has another number or another predecessor than it says, or that comes
// after the end; or no end.
func VerifyAudit(r io.Reader) ([]Record, error) {
	var v verifier
	in := bufio.NewReaderSize(r, maxAuditLine)
	for {
		data, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(data) == 0 {
			break
		}
		v.line++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return v.records, v.fail("longer than %d bytes", maxAuditLine)
		case errors.Is(err, io.EOF):
			return v.records, v.fail("cut off in the middle")
		case err != nil:
			return v.records, fmt.Errorf("read audit: %w", err)
		}
		if err := v.next(bytes.TrimSuffix(data, []byte("\n"))); err != nil {
			return v.records, err
		}
	}
	if !v.ended {
		v.line++
		return v.records, v.fail("missing: the audit has no end, so lines may be missing")
	}
	return v.records, nil
}

type verifier struct {
	line    int
	prev    [sha256.Size]byte
	run     string
	ended   bool
	records []Record
}

func (v *verifier) fail(format string, args ...any) error {
	return &AuditError{v.line, fmt.Sprintf(format, args...)}
}

func (v *verifier) next(data []byte) error {
	var l AuditLine
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&l)
	switch {
	case err != nil:
		return v.fail("is no line of an audit: %v", err)
	case decoder.InputOffset() != int64(len(data)):
		return v.fail("has something behind its object")
	case v.ended:
		return v.fail("comes after the end")
	case l.Seq != int64(v.line):
		return v.fail("has number %d: a line is missing or was added", l.Seq)
	case l.Prev != hex.EncodeToString(v.prev[:]):
		return v.fail("does not follow the line before it, which was changed")
	case (l.Record == nil) != l.End:
		return v.fail("must hold either a record or the end")
	case v.line > 1 && l.Run != v.run:
		return v.fail("belongs to run %q, not %q", l.Run, v.run)
	}
	v.run, v.ended, v.prev = l.Run, l.End, sha256.Sum256(data)
	if l.Record != nil {
		v.records = append(v.records, *l.Record)
	}
	return nil
}
