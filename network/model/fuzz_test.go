package model

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzParseScript(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(filepath.Base(file), data)
		}
	}
	f.Add("x.toml", []byte("[[turns]]\n[turns.error]\nstatus = 529\n[[turns.blocks]]\ntype = 'text'"))
	f.Add("x.json", []byte(`{"turns":[{"tools":[{"name":"a","input":{"b":[1e400,null]}}]}]}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		s, err := ParseScript(name, data)
		if e := (*ScriptError)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("error of type %T", err)
		}
		if (s == nil) == (err == nil) {
			t.Fatal("neither a script nor an error, or both")
		}
		if s == nil {
			return
		}
		for i, turn := range s.Turns {
			a := answer{turn: turn, cut: -1, serial: serial{turn: i + 1}}
			if !json.Valid(compactJSON(a.message())) {
				t.Fatal("an answer that is no JSON")
			}
			for e := range a.events() {
				e.bytes()
			}
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(conversation(true, "a", "b", "c")))
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":{}}]}]}`))
	f.Add([]byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":""}],"output_config":{"format":{"schema":{"type":"object","required":["a"]}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			s := &Server{Script: &Script{Turns: []Turn{{Blocks: []Block{{Type: "text", Text: "x"}}}}}}
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", path, strings.NewReader(string(body)))
			r.Header.Set("x-api-key", "x")
			r.Header.Set("anthropic-version", "x")
			s.ServeHTTP(w, r)
			stream := strings.HasPrefix(w.Header().Get("content-type"), "text/event-stream")
			if stream && w.Code == 200 {
				continue
			}
			if !json.Valid(w.Body.Bytes()) {
				t.Fatalf("status %d, body %q", w.Code, w.Body)
			}
			if w.Code != 200 && !strings.HasPrefix(w.Body.String(), `{"type":"error","error":{"type":"`) {
				t.Fatalf("status %d, body %q", w.Code, w.Body)
			}
		}
	})
}
