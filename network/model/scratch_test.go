package model

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

func logging(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		fmt.Println(">>>", time.Now().Format("05.000"), r.Method, r.URL, len(b), "class", r.Header["X-Claude-Code-Request-Class"], r.Header["X-Claude-1p-Request-Class"], r.Header["X-Claude-Code-Auxiliary-Type"], "agent", r.Header["X-Claude-Code-Agent-Type"], r.Header["X-Claude-Code-Agent-Id"], r.Header["X-Stainless-Retry-Count"], r.Header["X-Stainless-Timeout"])
		if r.Method == "POST" && len(b) > 0 {
			wr, e := readRequest(b, true)
			if e == nil {
				s := wr.summary()
				fmt.Printf("    %+v stream=%v first=%q last=%q res=%d tools=%d max=%d print=%x\n", s.Model, s.Stream, clip(s.FirstText, 80), clip(s.LastText, 300), len(s.ToolResults), len(s.Tools), s.MaxTokens, wr.print())
			}
			if i := bytes.Index(b, []byte(`"system":`)); i >= 0 {
				fmt.Printf("    %s\n", clip(string(b[i:]), 500))
			}
			if d := os.Getenv("BODIES"); d != "" {
				os.WriteFile(fmt.Sprintf("%s/%d.json", d, time.Now().UnixNano()), b, 0o600)
			}
		}
		h.ServeHTTP(w, r)
	})
}

func (a *agent) firstParty(h http.Handler) {
	web := httptest.NewServer(h)
	a.t.Cleanup(web.Close)
	a.env = append(a.env, "ANTHROPIC_BASE_URL=http://api.anthropic.com", "HTTP_PROXY="+web.URL, "HTTPS_PROXY="+web.URL)
}

func TestScratch(t *testing.T) {
	for _, fp := range []bool{false, true} {
		t.Run(fmt.Sprint(fp), func(t *testing.T) {
			a := newAgent(t, `
[[turns]]
[[turns.tools]]
name="Agent"
input={description="look", prompt="SUBTASK please", subagent_type="general-purpose"}
[[turns]]
agent="SUBTASK"
text="sub done"
[[turns]]
text="one"
[[turns]]
text="two"
[[turns]]
text="three"
[[turns]]
text="four"
[[turns]]
text="five"
[[turns]]
text="six"
[[turns]]
text="seven"
`)
			a.listen(logging(a.server))
			if fp {
				a.firstParty(logging(a.server))
			}
			a.start()
			req := func(id string, v object) {
				fmt.Println("#### ", time.Now().Format("05.000"), v)
				a.send(object{"type": "control_request", "request_id": id, "request": v})
				f := a.until("reply", func(f frame) bool { return f.Type == "control_response" && f.Response.RequestID == id })
				fmt.Println("   reply", clip(f.raw, 300))
			}
			req("0", object{"subtype": "initialize"})
			a.prompt("do it please")
			fmt.Println("RESULT", a.result().Result)
			req("1", object{"subtype": "set_model", "model": "claude-haiku-4-5"})
			req("2", object{"subtype": "get_context_usage"})
			req("3", object{"subtype": "generate_session_title", "description": "fix the bug", "persist": true})
			req("4", object{"subtype": "side_question", "question": "what are you doing?"})
			a.send(object{"type": "user", "message": object{"role": "user", "content": "/compact"}})
			fmt.Println("RESULT", a.result().raw)
			a.prompt("again")
			fmt.Println("RESULT", a.result().Result)
			fmt.Println(a.server.Err(), a.server.Unused())
			for _, r := range a.server.Requests() {
				fmt.Printf("%v turn=%d att=%d agent=%q said=%s\n", r.Kind, r.Turn, r.Attempt, r.Agent, clip(r.brief(), 100))
			}
		})
	}
}
