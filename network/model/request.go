package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind says what a request was for, as far as the server can tell.
type Kind string

const (
	KindTurn  Kind = "turn"         // a conversation: served from the script
	KindProbe Kind = "probe"        // max_tokens 1: does the model exist, is the key good
	KindCount Kind = "count_tokens" // how long is this
	KindAside Kind = "aside"        // the CLI's own small questions: a title, a summary
)

// Request is what one request said, for tests and logs. Its texts leave out <system-reminder> blocks, which are the
// CLI's and change with its version.
type Request struct {
	Time        time.Time
	Kind        Kind
	Turn        int    // 1 is the script's first; 0 if none served it
	Attempt     int    // how often that turn had been asked for, this one included
	Agent       string // of the turns that it was served from
	Model       string
	MaxTokens   int
	Stream      bool
	Messages    int          // in the conversation
	FirstText   string       // of the first user message
	LastText    string       // of the user after the last assistant message
	ToolResults []ToolResult // after the last assistant message
	Tools       []string     // names offered
}

// ToolResult is the result of a tool call as the model would see it; anything but text is left out.
type ToolResult struct {
	ID      string
	Text    string
	IsError bool
}

// said is the text that [Expect] looks at.
func (r *Request) said() string {
	parts := []string{r.LastText}
	for _, t := range r.ToolResults {
		parts = append(parts, t.Text)
	}
	return strings.Join(parts, "\n")
}

// wireRequest is the part of a Messages API request that matters here.
type wireRequest struct {
	Model     string        `json:"model"`
	MaxTokens *int          `json:"max_tokens"`
	Messages  []wireMessage `json:"messages"`
	Stream    bool          `json:"stream"`
	Tools     []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

type wireMessage struct {
	Role    string      `json:"role"`
	Content wireContent `json:"content"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   wireContent     `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// wireContent is a list of blocks, or a string that stands for one text block.
type wireContent []wireBlock

func (c *wireContent) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*c = wireContent{{Type: "text"}}
		return json.Unmarshal(data, &(*c)[0].Text)
	}
	return json.Unmarshal(data, (*[]wireBlock)(c))
}

// text joins the text blocks that people or programs wrote.
func (c wireContent) text() string {
	var parts []string
	for _, b := range c {
		if b.Type == "text" && !strings.HasPrefix(b.Text, "<system-reminder>") {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// readRequest parses and checks a body as the API does. counting: max_tokens may be missing.
func readRequest(body []byte, counting bool) (*wireRequest, *apiError) {
	w := &wireRequest{}
	if err := json.Unmarshal(body, w); err != nil {
		return nil, badRequest(jsonProblem(err))
	}
	switch {
	case w.Model == "":
		return nil, badRequest("model: Field required")
	case w.MaxTokens == nil && !counting:
		return nil, badRequest("max_tokens: Field required")
	case w.MaxTokens != nil && *w.MaxTokens < 1:
		return nil, badRequest("max_tokens: Input should be greater than or equal to 1")
	case w.Messages == nil:
		return nil, badRequest("messages: Field required")
	case len(w.Messages) == 0:
		return nil, badRequest("messages: at least one message is required")
	}
	return w, checkMessages(w.Messages)
}

// checkMessages allows the role "system" in messages, which the CLI uses by a beta header.
func checkMessages(messages []wireMessage) *apiError {
	for i, m := range messages {
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return badRequest(fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i))
		}
		if m.Content == nil {
			return badRequest(fmt.Sprintf("messages.%d.content: Field required", i))
		}
	}
	return nil
}

func jsonProblem(err error) string {
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) && e.Field != "" {
		return fmt.Sprintf("%s: Input should be a valid %s", e.Field, strings.TrimLeft(e.Type.String(), "*"))
	}
	return "The request body is not valid JSON: " + err.Error()
}

// summary is the request for [Server.Requests].
func (w *wireRequest) summary() Request {
	r := Request{Model: w.Model, Stream: w.Stream, Messages: len(w.Messages)}
	if w.MaxTokens != nil {
		r.MaxTokens = *w.MaxTokens
	}
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range w.Messages {
		if m.Role == "user" {
			r.FirstText = m.Content.text()
			break
		}
	}
	r.LastText, r.ToolResults = lastSaid(w.Messages)
	return r
}

// lastSaid collects the user's messages after the assistant's last one.
func lastSaid(messages []wireMessage) (string, []ToolResult) {
	var texts []string
	var results []ToolResult
	for _, m := range messages {
		if m.Role == "assistant" {
			texts, results = nil, nil
		}
		if m.Role != "user" {
			continue
		}
		if text := m.Content.text(); text != "" {
			texts = append(texts, text)
		}
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				results = append(results, ToolResult{ID: b.ToolUseID, Text: b.Content.text(), IsError: b.IsError})
			}
		}
	}
	return strings.Join(texts, "\n"), results
}

// print identifies the conversation so far, whatever way it is asked to continue: a retry without streaming or with
// cache marks moved has the same print, the next round of the same session another.
func (w *wireRequest) print() [sha256.Size]byte {
	return sha256.Sum256(compactJSON(w.Messages))
}

// kind tells the CLI's own questions from the conversation's. The class header comes only when the CLI believes that it
// talks to api.anthropic.com (seen in 2.1.329: main, subagent, auxiliary); other servers must guess.
func (w *wireRequest) kind(h http.Header) Kind {
	switch {
	case *w.MaxTokens == 1:
		return KindProbe
	case h.Get("x-claude-code-request-class") == "auxiliary":
		return KindAside
	}
	return KindTurn
}

// compactJSON is json.Marshal without escapes for HTML. v must have a JSON form.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: encode " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// apiError is an error answer: a status, the API's body, and headers that steer clients.
type apiError struct {
	status  int
	kind    string
	message string
	header  map[string]string
}

func badRequest(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", message: message}
}

// final marks the error as one that clients shall not retry.
func (e *apiError) final() *apiError {
	e.header = map[string]string{"x-should-retry": "false"}
	return e
}

// scripted is the answer for a failure in a script.
func (f *Failure) scripted() *apiError {
	e := &apiError{status: f.Status, kind: f.Type, message: f.Message, header: map[string]string{}}
	if f.RetryAfter > 0 {
		e.header["retry-after"] = strconv.Itoa(int(f.RetryAfter.Round(time.Second).Seconds()))
	}
	if f.Retry != nil {
		e.header["x-should-retry"] = strconv.FormatBool(*f.Retry)
	}
	return e
}

type errorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

func (e *apiError) write(w http.ResponseWriter) {
	body := errorBody{Type: "error", RequestID: w.Header().Get("request-id")}
	body.Error.Type, body.Error.Message = e.kind, e.message
	for key, value := range e.header {
		w.Header().Set(key, value)
	}
	writeJSON(w, e.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	w.Write(compactJSON(body)) // a client that has gone needs no answer
}
