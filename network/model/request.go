package model

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	Output struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
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
	Content   json.RawMessage `json:"content,omitempty"` // of a result: text, blocks, or what a tool of the server returned
	IsError   bool            `json:"is_error,omitempty"`
}

func (b wireBlock) result() ToolResult {
	var content wireContent
	if json.Unmarshal(b.Content, &content) != nil {
		content = nil
	}
	return ToolResult{ID: b.ToolUseID, Text: content.text(), IsError: b.IsError}
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
	r.FirstText = w.firstText()
	r.LastText, r.ToolResults = lastSaid(w.Messages)
	return r
}

func (w *wireRequest) firstText() string {
	for _, m := range w.Messages {
		if m.Role == "user" {
			return m.Content.text()
		}
	}
	return ""
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
				results = append(results, b.result())
			}
		}
	}
	return strings.Join(texts, "\n"), results
}

// fingerprint identifies a conversation up to some point.
type fingerprint [sha256.Size]byte

// print is that of the conversation so far, whatever way it is asked to continue: a retry without streaming, without
// betas or with cache marks moved has the same, the next round of the same session another.
func (w *wireRequest) print() fingerprint {
	said := slices.DeleteFunc(slices.Clone(w.Messages), func(m wireMessage) bool { return m.Role == "system" })
	return sha256.Sum256(compactJSON(said))
}

// kind tells the CLI's own questions from the conversation's. The class header comes only when the CLI believes that it
// talks to api.anthropic.com (2.1.329 says main, subagent, auxiliary or compaction); elsewhere its questions are known by
// their form: an answer in JSON asked of no tools, and the order that opens a compaction.
func (w *wireRequest) kind(h http.Header, counting bool) Kind {
	class := h.Get("x-claude-code-request-class")
	switch {
	case counting:
		return KindCount
	case *w.MaxTokens == 1:
		return KindProbe
	case class == "auxiliary", class == "compaction":
		return KindAside
	case class == "" && (len(w.Tools) == 0 && w.schema() != nil || w.compacts()):
		return KindAside
	}
	return KindTurn
}

func (w *wireRequest) compacts() bool {
	last := w.Messages[len(w.Messages)-1]
	return slices.ContainsFunc(last.Content, func(b wireBlock) bool {
		return strings.HasPrefix(b.Text, "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.")
	})
}

// schema is the JSON Schema that the answer shall have, if any.
func (w *wireRequest) schema() json.RawMessage { return w.Output.Format.Schema }
