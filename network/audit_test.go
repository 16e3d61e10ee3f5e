package network

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sampleAudit has three records and an end.
func sampleAudit(t testing.TB) string {
	var b bytes.Buffer
	a := NewAudit(&b, "run1")
	for i := range 3 {
		r := Record{Time: time.Unix(int64(i), 0).UTC(), Event: EventDeny, Via: ViaConnect, Host: host(t, "evil.test"), Port: 443, Rule: NoRule, Reason: "no"}
		require.NoError(t, a.Record(r))
	}
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "closing twice is fine")
	assert.Error(t, a.Record(Record{}), "nothing comes after the end")
	return b.String()
}

func TestAuditVerifies(t *testing.T) {
	text := sampleAudit(t)
	records, err := VerifyAudit(strings.NewReader(text))
	require.NoError(t, err)
	require.Len(t, records, 3)
	assert.Equal(t, host(t, "evil.test"), records[1].Host)
	assert.Equal(t, Deny, records[1].Verdict)
	assert.Equal(t, 4, strings.Count(text, "\n"))
}

// Whatever is done to the file shows, and where.
func TestAuditShowsACut(t *testing.T) {
	text := sampleAudit(t)
	lines := strings.SplitAfter(text, "\n")[:4]
	join := func(list ...string) string { return strings.Join(list, "") }
	other := strings.ReplaceAll(text, "run1", "run2")
	for name, tt := range map[string]struct {
		text string
		line int
		want string
	}{
		"empty":              {"", 1, "no end"},
		"end cut off":        {join(lines[:3]...), 4, "no end"},
		"cut in a line":      {text[:len(text)-9], 4, "cut off in the middle"},
		"first line out":     {join(lines[1:]...), 1, "number 2"},
		"middle line out":    {join(lines[0], lines[2], lines[3]), 2, "number 3"},
		"a line changed":     {strings.Replace(text, "evil.test", "good.test", 1), 2, "was changed"},
		"last record edited": {join(lines[0], lines[1], strings.Replace(lines[2], `"no"`, `"ok"`, 1), lines[3]), 4, "was changed"},
		"a line twice":       {join(lines[0], lines[1], lines[1], lines[2], lines[3]), 3, "number 2"},
		"lines exchanged":    {join(lines[1], lines[0], lines[2], lines[3]), 1, "number 2"},
		"line after the end": {join(text, lines[3]), 5, "after the end"},
		"another run's line": {join(lines[0], strings.SplitAfter(other, "\n")[1]), 2, `belongs to run "run2"`},
		"not JSON":           {"hello\n", 1, "no line of an audit"},
		"unknown field":      {strings.Replace(text, `"seq":1`, `"seq":1,"x":1`, 1), 1, "no line of an audit"},
		"two objects":        {strings.Replace(text, "\n", "{}\n", 1), 1, "something behind"},
		"record and end":     {strings.Replace(text, `"run":"run1"`, `"run":"run1","end":true`, 1), 1, "either a record or the end"},
		"too long":           {strings.Repeat("a", maxAuditLine+1), 1, "longer than"},
	} {
		_, err := VerifyAudit(strings.NewReader(tt.text))
		var broken *AuditError
		require.ErrorAs(t, err, &broken, name)
		assert.Equal(t, tt.line, broken.Line, "%s: %v", name, err)
		assert.ErrorContains(t, err, tt.want, name)
	}
}

type fullWriter struct{ left int }

var errFull = errors.New("no space left")

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAuditThatCannotBeWrittenIsAnError(t *testing.T) {
	a := NewAudit(&fullWriter{left: 1}, "run1")
	require.NoError(t, a.Record(Record{}))
	require.ErrorIs(t, a.Record(Record{}), errFull)
	require.ErrorIs(t, a.Record(Record{}), errFull, "and stays one")
	require.ErrorIs(t, a.Close(), errFull)
}

func TestAuditIsSafeForManyGoroutines(t *testing.T) {
	var b bytes.Buffer
	a := NewAudit(&b, "run1")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 50 {
				assert.NoError(t, a.Record(Record{Reason: fmt.Sprint(i, j)}))
			}
		})
	}
	all.Wait()
	require.NoError(t, a.Close())
	records, err := VerifyAudit(&b)
	require.NoError(t, err)
	assert.Len(t, records, 800)
}

func FuzzVerifyAudit(f *testing.F) {
	text := sampleAudit(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := VerifyAudit(strings.NewReader(text))
		if err == nil && !strings.Contains(text, `"end":true`) {
			t.Fatal("an audit without an end was accepted")
		}
	})
}
