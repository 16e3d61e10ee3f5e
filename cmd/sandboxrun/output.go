package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sandboxrun/sandboxrun/adapter"
)

// output is what goes to standard output: the answer, the answer with its figures, or every event as it happens.
type output struct {
	form string
	w    io.Writer
	err  error
}

func newOutput(form string, w io.Writer) (*output, error) {
	switch form {
	case "text", "json", "events":
		return &output{form: form, w: w}, nil
	}
	return nil, &usageError{fmt.Errorf("-output %q is not text, json or events", form)}
}

func (o *output) event(e adapter.Event) {
	if o.form == "events" {
		o.err = errors.Join(o.err, o.line(e))
	}
}

func (o *output) line(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = o.w.Write(append(data, '\n'))
	return err
}

// result writes what is left to write at the end and returns the first trouble with standard output.
func (o *output) result(res *adapter.Result, failure error) error {
	if res == nil || res.Answer == nil {
		return o.err
	}
	switch o.form {
	case "text":
		text := strings.TrimRight(res.Answer.Text, "\n")
		if f, ok := o.w.(*os.File); ok && isTerminal(f) {
			text = printable(text)
		}
		if text != "" {
			_, o.err = fmt.Fprintln(o.w, text)
		}
	case "json":
		o.err = o.line(newReport(res, failure))
	}
	return o.err
}

// printable keeps what the agent wrote from driving the user's terminal: of the control characters only line ends and
// tabs pass.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = oneLine(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// report is the one object of -output json.
type report struct {
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Error      string          `json:"error,omitempty"`
	SessionID  string          `json:"session_id"`
	StopReason string          `json:"stop_reason,omitempty"`
	NumTurns   int             `json:"num_turns"`
	CostUSD    float64         `json:"cost_usd"`
	Usage      any             `json:"usage"`
	DurationMS int64           `json:"duration_ms"` // of the whole run
	Denials    any             `json:"denials"`
	Changes    []changeReport  `json:"changes"`
}

type changeReport struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Risk string `json:"risk,omitempty"`
}

func newReport(res *adapter.Result, failure error) report {
	a := res.Answer
	r := report{
		Text: a.Text, Structured: a.Structured, SessionID: a.SessionID, StopReason: a.StopReason, NumTurns: a.NumTurns,
		CostUSD: a.CostUSD, Usage: a.Usage, DurationMS: res.Duration.Milliseconds(), Denials: res.Denials, Changes: []changeReport{},
	}
	if len(res.Denials) == 0 {
		r.Denials = []any{}
	}
	if failure != nil {
		r.Error = failure.Error()
	}
	if res.Changes != nil {
		for _, c := range res.Changes.List {
			r.Changes = append(r.Changes, changeReport{c.Path, string(c.Kind), c.Risk})
		}
	}
	return r
}
