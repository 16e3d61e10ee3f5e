package claude

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A conversation is a file of testdata/conversations. Its sections are played in order by a CLI made of nothing else:
//
//	options      JSON of [script], first
//	handshake    initialize and get_settings, answered well
//	client       lines that the session must write now: the fields given must be there, "$x" stands for any string
//	cli          what the CLI writes then; "$x" is what it stood for; "cli without newline" ends with its last letter
//	sleep D      nothing happens for that long
//	cancel       the caller's context ends
//	eof          the CLI closes both directions
//
// events and error are what the caller's loop must have seen. Whatever follows the last section, the CLI obeys
// end_session.
type conversation struct {
	script
	steps  []txtar.File
	events []string
	error  string
}

type script struct {
	Prompts []string        // turns of the session; one prompt goes through Run
	Leave   Kind            // the loop is left at the first event of this kind
	Ask     string          // allow, deny, panic, wait; else nobody to ask
	Schema  json.RawMessage // as in Options
	Mode    PermissionMode
	MaxLine int

	Settings json.RawMessage
}

func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			// A byte at a time cuts every character and every line in two.
			for _, chunk := range []int{1 << 20, 1} {
				t.Run(fmt.Sprint(chunk), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { readConversation(t, file).play(t, chunk) })
				})
			}
		})
	}
}

func readConversation(t *testing.T, file string) *conversation {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	c := &conversation{script: script{Prompts: []string{"go"}}}
	for _, f := range txtar.Parse(data).Files {
		switch f.Name {
		case "options":
			require.NoError(t, json.Unmarshal(f.Data, &c.script))
		case "events":
			c.events = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		case "error":
			c.error = strings.TrimSpace(string(f.Data))
		default:
			c.steps = append(c.steps, f)
		}
	}
	return c
}

func (c *conversation) play(t *testing.T, chunk int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ours, theirs := net.Pipe()
	cli := &fakeCLI{t: t, conn: theirs, in: bufio.NewReader(theirs), chunk: chunk, cancel: cancel, names: map[string]string{}}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer theirs.Close()
		cli.play(c.steps)
	}()

	var seen, errs []string
	take := func(e Event, err error) bool {
		if err != nil {
			errs = append(errs, err.Error())
			return true
		}
		seen = append(seen, summary(e))
		return c.Leave == "" || e.Kind != c.Leave
	}
	if len(c.Prompts) == 1 {
		Run(ctx, ours, c.options(), c.Prompts[0])(take)
	} else {
		c.turns(t, ctx, ours, take)
	}
	<-gone
	assert.Equal(t, c.events, seen)
	assert.Equal(t, c.error, strings.Join(errs, "\n"))
}

func (c *conversation) turns(t *testing.T, ctx context.Context, conn io.ReadWriteCloser, take func(Event, error) bool) {
	s, err := Open(ctx, conn, c.options())
	require.NoError(t, err)
	for _, prompt := range c.Prompts {
		s.Turn(ctx, prompt)(take)
	}
	require.NoError(t, s.Close())
}

func (c *conversation) options() Options {
	o := Options{Schema: c.Schema, PermissionMode: c.Mode, MaxLine: c.MaxLine, Settings: c.Settings}
	if c.Ask != "" {
		o.Ask = func(ctx context.Context, r ToolRequest) Answer {
			switch c.Ask {
			case "allow":
				return Answer{Allow: true, Input: json.RawMessage(`{"command":"true"}`)}
			case "panic":
				panic("handler")
			case "wait":
				<-ctx.Done()
			}
			return Answer{Reason: "not " + r.ToolName}
		}
	}
	return o
}

// summary is an event on one line.
func summary(e Event) string {
	out := string(e.Kind)
	add := func(format string, a ...any) { out += " " + fmt.Sprintf(format, a...) }
	if e.Parent != "" {
		add("in %s", e.Parent)
	}
	if e.Kind == KindUnknown {
		add("%s", strings.Trim(e.Type+"/"+e.Subtype, "/"))
		out = strings.TrimSpace(out)
	}
	if e.ToolName+e.ToolID != "" {
		add("%s#%s", e.ToolName, e.ToolID)
	}
	if e.Input != nil {
		add("%s", e.Input)
	}
	if e.Text != "" {
		add("%q", e.Text)
	}
	if e.Retry != nil {
		add("%d of %d after %d", e.Retry.Attempt, e.Retry.Max, e.Retry.Status)
	}
	if r := e.Result; r != nil {
		add("%s %q $%v", r.Subtype, r.Text, r.CostUSD)
	}
	if e.IsError {
		add("error")
	}
	return out
}

// fakeCLI plays the CLI's side.
type fakeCLI struct {
	t      *testing.T
	conn   net.Conn
	in     *bufio.Reader
	chunk  int
	cancel func()
	names  map[string]string
}

func (f *fakeCLI) play(steps []txtar.File) {
	for _, step := range steps {
		verb, arg, _ := strings.Cut(step.Name, " ")
		switch verb {
		case "handshake":
			f.handshake()
		case "client":
			for line := range strings.Lines(strings.TrimSpace(string(step.Data))) {
				if !f.expect(line) {
					return
				}
			}
		case "cli":
			data := step.Data
			if arg == "without newline" {
				data = bytes.TrimRight(data, "\n")
			}
			f.say(string(data))
		case "sleep":
			d, err := time.ParseDuration(arg)
			assert.NoError(f.t, err)
			time.Sleep(d)
		case "cancel":
			synctest.Wait()
			f.cancel()
		case "eof":
			return
		default:
			assert.Fail(f.t, "unknown section", step.Name)
		}
	}
	f.obey()
}

func (f *fakeCLI) handshake() {
	f.expect(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`)
	f.say(`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"claude_code_version":"2.1.329"}}}` + "\n")
	f.expect(`{"type":"control_request","request_id":"2","request":{"subtype":"get_settings"}}`)
	f.say(`{"type":"control_response","response":{"subtype":"success","request_id":"2","response":{"effective":{}}}}` + "\n")
}

// obey answers end_session and nothing else.
func (f *fakeCLI) obey() {
	for {
		line, err := f.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r controlRequest
		assert.NoError(f.t, json.Unmarshal(line, &r))
		if r.Request["subtype"] == "end_session" {
			f.say(`{"type":"control_response","response":{"subtype":"success","request_id":"` + r.RequestID + `"}}` + "\n")
			return
		}
	}
}

func (f *fakeCLI) expect(want string) bool {
	line, err := f.in.ReadBytes('\n')
	if !assert.NoError(f.t, err, "the session should have written %s", want) {
		return false
	}
	var w, got any
	return assert.NoError(f.t, json.Unmarshal([]byte(want), &w)) && assert.NoError(f.t, json.Unmarshal(line, &got)) &&
		assert.True(f.t, f.holds(w, got), "want %s\ngot %s", want, line)
}

// holds says whether got has all of want.
func (f *fakeCLI) holds(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for key, value := range want {
			ok = ok && f.holds(value, object[key])
		}
		return ok
	case string:
		if text, ok := got.(string); ok && strings.HasPrefix(want, "$") {
			f.names[want] = text
			return true
		}
	}
	return reflect.DeepEqual(want, got)
}

func (f *fakeCLI) say(text string) {
	for name, value := range f.names {
		text = strings.ReplaceAll(text, `"`+name+`"`, `"`+value+`"`)
	}
	for len(text) > 0 {
		n := min(len(text), f.chunk)
		if _, err := io.WriteString(f.conn, text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
}
