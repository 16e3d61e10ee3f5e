package claude

import (
	"encoding/json"
	"strings"
)

type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *Usage          `json:"usage"`
}

type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	ToolID   string          `json:"tool_use_id"`
	Content  json.RawMessage `json:"content"`
	IsError  bool            `json:"is_error"`
}

// messageEvents makes an event of each block. The CLI sends one block a frame at present, with the same message id.
func (f *frame) messageEvents(e Event) []Event {
	var m message
	fill(f.Message, &m)
	e.MessageID, e.Model, e.Error, e.IsError = m.ID, m.Model, f.Error, f.Error != ""
	var events []Event
	for i, b := range contentBlocks(m.Content) {
		one := e
		one.Block = i
		b.event(&one)
		events = append(events, one)
	}
	if len(events) == 0 {
		events = append(events, e)
	}
	events[0].Usage = m.Usage
	return events
}

func (b *block) event(e *Event) {
	switch b.Type {
	case "text":
		e.Kind, e.Text = KindText, b.Text
		if e.Type == "user" {
			e.Kind = KindUser
		}
	case "thinking":
		e.Kind, e.Text = KindThinking, b.Thinking
	case "tool_use", "server_tool_use", "mcp_tool_use":
		e.Kind, e.ToolID, e.ToolName, e.Input = KindToolUse, b.ID, b.Name, b.Input
	case "tool_result":
		e.Kind, e.ToolID, e.Text, e.IsError = KindToolResult, b.ToolID, contentText(b.Content), b.IsError
	default:
		e.Subtype = b.Type
	}
}

// contentBlocks reads a message's content, which is a list of blocks or plain text.
func contentBlocks(content json.RawMessage) []block {
	var text string
	var blocks []block
	switch {
	case len(content) > 0 && content[0] == '"':
		fill(content, &text)
		return []block{{Type: "text", Text: text}}
	case len(content) > 0 && content[0] == '[':
		fill(content, &blocks)
	}
	return blocks
}

// contentText is the text in a message's content; images and the like have none.
func contentText(content json.RawMessage) string {
	var texts []string
	for _, b := range contentBlocks(content) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}
