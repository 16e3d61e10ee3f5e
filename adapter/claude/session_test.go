package claude

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openFake returns a session and the CLI's side of it, behind the handshake. The CLI obeys an end of the session when
// the test is done with it.
func openFake(t *testing.T, opts Options) (*Session, *fakeCLI) {
	ours, theirs := net.Pipe()
	cli := &fakeCLI{t: t, conn: theirs, in: bufio.NewReader(theirs), chunk: 1 << 20, names: map[string]string{}}
	go cli.handshake()
	s, err := Open(t.Context(), ours, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		synctest.Wait()
		go cli.obey()
		assert.NoError(t, s.Close())
		theirs.Close()
	})
	return s, cli
}

const (
	userLine = `{"type":"user","uuid":"$id"}`
	doneLine = `{"type":"result","subtype":"success","is_error":false,"result":"done","user_message_uuid":"$id"}` + "\n"
	idleLine = `{"type":"system","subtype":"session_state_changed","state":"idle"}` + "\n"
)

func TestLongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{})
		long := strings.Repeat("ü", 5<<20)
		go func() {
			cli.expect(userLine)
			cli.say(`{"type":"assistant","message":{"content":[{"type":"text","text":"` + long + `"}]}}` + "\n" + doneLine + idleLine)
		}()
		var got []string
		for e, err := range s.Turn(t.Context(), "go") {
			require.NoError(t, err)
			got = append(got, e.Text)
		}
		assert.Equal(t, []string{long, "", "idle"}, got)
	})
}

// A loop that stands still makes the CLI wait, until the loop wants an answer from it.
func TestSlowLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{})
		const lines = 12
		s.events.limit = 1 << 20
		wrote := 0
		go func() {
			cli.expect(userLine)
			for range lines {
				cli.say(`{"type":"x","pad":"` + strings.Repeat("x", 1<<17) + `"}` + "\n")
				wrote++
			}
			cli.expect(`{"type":"control_request","request_id":"3","request":{"subtype":"set_model","model":"m"}}`)
			cli.say(`{"type":"control_response","response":{"subtype":"success","request_id":"3"}}` + "\n")
			cli.say(doneLine + idleLine)
		}()
		seen := 0
		for _, err := range s.Turn(t.Context(), "go") {
			require.NoError(t, err)
			if seen++; seen == 1 {
				synctest.Wait()
				assert.Less(t, wrote, lines)
				require.NoError(t, s.SetModel(t.Context(), "m"))
				assert.Equal(t, lines, wrote)
			}
		}
		assert.Equal(t, lines+2, seen)
	})
}

func TestOneTurnAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{})
		go func() {
			cli.expect(userLine)
			cli.say(doneLine + idleLine)
		}()
		for range s.Turn(t.Context(), "go") {
			for _, err := range s.Turn(t.Context(), "another") {
				assert.ErrorIs(t, err, ErrBusy)
			}
		}
	})
}

func TestControlErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{})
		go func() {
			cli.expect(`{"request":{"subtype":"set_permission_mode","mode":"bypassPermissions"}}`)
			cli.say(`{"type":"control_response","response":{"subtype":"error","request_id":"3","error":"no","error_code":"bypass_not_launched"}}` + "\n")
			cli.expect(`{"request":{"subtype":"interrupt"}}`)
		}()
		var refused *ControlError
		require.ErrorAs(t, s.SetPermissionMode(t.Context(), ModeBypassPermissions), &refused)
		assert.Equal(t, ControlError{"set_permission_mode", "no", "bypass_not_launched"}, *refused)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, s.Interrupt(ctx), context.DeadlineExceeded)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{StopTimeout: 3 * time.Second})
		go io.Copy(io.Discard, cli.conn) // hears, but does not obey
		began := time.Now()
		require.NoError(t, s.Close())
		assert.Equal(t, 3*time.Second, time.Since(began))
		require.NoError(t, s.Close(), "again")

		var none *NoResultError
		for _, err := range s.Turn(t.Context(), "go") {
			assert.ErrorAs(t, err, &none)
		}
		assert.ErrorIs(t, s.Interrupt(t.Context()), ErrEnded)
	})
}

// A CLI that does not read its input cannot hold up anyone for longer than their context.
func TestDeafCLI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := openFake(t, Options{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		for _, err := range s.Turn(ctx, "go") {
			assert.EqualError(t, err, "enough")
		}
		assert.NoError(t, t.Context().Err())
	})
}

func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cli := openFake(t, Options{Ask: func(ctx context.Context, _ ToolRequest) Answer {
			<-ctx.Done()
			return Answer{}
		}})
		go func() {
			cli.expect(userLine)
			for i := range asking + 1 {
				cli.say(fmt.Sprintf(`{"type":"control_request","request_id":"%d","request":{"subtype":"can_use_tool"}}`+"\n", i))
			}
		}()
		var last error
		for _, err := range s.Turn(t.Context(), "go") {
			last = err
		}
		assert.ErrorIs(t, last, errFlood)
	})
}

func TestTimeAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		s, cli := openFake(t, Options{
			Now: func() time.Time { return now },
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		go func() {
			cli.expect(userLine)
			cli.say("warning: SECRET_KEY=abc\n" + doneLine + idleLine)
		}()
		for e, err := range s.Turn(t.Context(), "go") {
			require.NoError(t, err)
			assert.Equal(t, now, e.Time)
		}
		assert.Equal(t, 1, s.Skipped())
		assert.Contains(t, log.String(), "SECRET_KEY=***")
		assert.Equal(t, "2.1.329", s.Info().Version)
	})
}

// FuzzSession: whatever the CLI writes, a run ends with its context at the latest, without a panic and without
// leaving a goroutine behind (synctest would say so).
func FuzzSession(f *testing.F) {
	f.Add([]byte(doneLine), true, 10)
	f.Add([]byte("{\n"), true, 1)
	f.Add([]byte("\xff\xfe\n\r\n{}\n"), false, 3)
	f.Add([]byte(`{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool"}}`+"\n"), true, 100)
	f.Add([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"3"}}`+"\n"+idleLine), true, 100)
	f.Add([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"claude_code_version":"9.9.9"}}}`+"\n"), false, 100)
	f.Fuzz(func(t *testing.T, output []byte, greet bool, chunk int) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			heard := make(chan struct{})
			go func() {
				defer close(heard)
				io.Copy(io.Discard, theirs)
			}()
			go func() {
				cli := &fakeCLI{t: t, conn: theirs, chunk: max(chunk, 1)}
				if greet {
					cli.say(`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"claude_code_version":"9.9.9"}}}` + "\n")
					cli.say(`{"type":"control_response","response":{"subtype":"success","request_id":"2","response":{"effective":{}}}}` + "\n")
				}
				cli.say(string(output))
			}()
			const limit = 20 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			for _, err := range Run(ctx, ours, Options{MaxLine: 1 << 16}, "go") {
				_ = err
			}
			assert.LessOrEqual(t, time.Since(began), limit+10*time.Second, "an interrupt and an end at most")
			theirs.Close()
			<-heard
		})
	})
}
