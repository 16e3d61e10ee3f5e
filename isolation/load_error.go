package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// PolicyError is one thing wrong with a policy. Load joins several with [errors.Join]; [PolicyErrors] takes them apart.
type PolicyError struct {
	File  string // the file or preset, or "--set key=value"; "" for a Config that no file made
	Line  int    // from 1; 0 when there is none
	Key   string // "network_policy.allowed_ports[0]"; "" when the file as a whole is wrong
	Value string // as TOML, shortened, or "[redacted]"; "" for tables and absent keys
	Msg   string
	Near  string // the spelling that was perhaps meant, or ""
	Hint  string // what to do about it, for people; not part of Error
	Err   error  // the cause, or nil; its text is in Msg
}

// Error returns `FILE:LINE: KEY = VALUE: what is wrong; did you mean "x"?` on one line.
func (e *PolicyError) Error() string {
	var b strings.Builder
	b.WriteString(e.where())
	if e.Key != "" {
		b.WriteString(e.Key)
		if e.Value != "" {
			b.WriteString(" = " + e.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Near)
	}
	return oneLine(b.String())
}

func (e *PolicyError) where() string {
	switch {
	case e.File == "":
		return ""
	case e.Line == 0:
		return e.File + ": "
	}
	return fmt.Sprintf("%s:%d: ", e.File, e.Line)
}

// Unwrap returns the cause.
func (e *PolicyError) Unwrap() error { return e.Err }

// PolicyErrors returns every PolicyError in err, in order.
func PolicyErrors(err error) []*PolicyError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*PolicyError
		for _, e := range joined.Unwrap() {
			all = append(all, PolicyErrors(e)...)
		}
		return all
	}
	var one *PolicyError
	if errors.As(err, &one) {
		return []*PolicyError{one}
	}
	return nil
}

// faults collects what is wrong with one policy.
type faults struct {
	origin *origin
	list   []*PolicyError
}

// add records that the value at key, printed as text, is wrong, and returns the error for more detail.
func (f *faults) add(key, text, format string, args ...any) *PolicyError {
	at := f.origin.find(key)
	e := &PolicyError{File: at.file, Line: at.line, Key: key, Value: text, Msg: fmt.Sprintf(format, args...)}
	f.list = append(f.list, e)
	return e
}

// err joins the faults in the order of file and line, or is nil.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b *PolicyError) int {
		return cmp.Or(f.origin.order(a.File)-f.origin.order(b.File), a.Line-b.Line)
	})
	errs := make([]error, len(f.list))
	for i, e := range f.list {
		errs[i] = e
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// oneLine keeps control characters of a hostile policy away from terminals and line-based logs.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
