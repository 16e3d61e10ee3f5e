package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"unicode/utf8"
)

// answer is one delivery of a turn: everything is decided, so that the same answer has the same bytes.
type answer struct {
	turn   Turn
	model  string
	serial serial
	cut    int // bytes of content after which the stream breaks off; -1: none
}

// serial makes the ids of one answer. They count what repeats between runs (not requests, whose order may vary) and
// include the length of the conversation, so that a resumed session gets new ones.
type serial struct {
	messages, turn, attempt int
}

// id has the length of the API's: prefix, "01" and 22 digits.
func (s serial) id(prefix string, block int) string {
	return fmt.Sprintf("%s_01%06d%06d%05d%05d", prefix, s.messages, s.turn, s.attempt, block)
}

// The API's objects, in its order of keys.
type (
	wireUsage struct {
		Input         int            `json:"input_tokens"`
		CacheWrite    int            `json:"cache_creation_input_tokens"`
		CacheRead     int            `json:"cache_read_input_tokens"`
		CacheCreation *cacheCreation `json:"cache_creation,omitempty"`
		Output        int            `json:"output_tokens"`
		ServiceTier   string         `json:"service_tier,omitempty"`
	}
	cacheCreation struct {
		FiveMinutes int `json:"ephemeral_5m_input_tokens"`
		OneHour     int `json:"ephemeral_1h_input_tokens"`
	}
	wireAnswer struct {
		Model        string    `json:"model"`
		ID           string    `json:"id"`
		Type         string    `json:"type"`
		Role         string    `json:"role"`
		Content      []any     `json:"content"`
		StopReason   *string   `json:"stop_reason"`
		StopSequence *string   `json:"stop_sequence"`
		Usage        wireUsage `json:"usage"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	toolBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// event is one server-sent event.
type event struct {
	name string
	data any
}

func (e event) bytes() []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.name, compactJSON(e.data))
}

// message is the answer in one piece.
func (a answer) message() wireAnswer {
	m := a.start()
	m.Usage = a.usage()
	for i, b := range a.turn.Blocks {
		m.Content = append(m.Content, a.block(i, b, true))
	}
	reason := a.stopReason()
	m.StopReason = &reason
	return m
}

// start is the message before it has content.
func (a answer) start() wireAnswer {
	m := wireAnswer{Model: a.model, ID: a.serial.id("msg", 0), Type: "message", Role: "assistant", Content: []any{}, Usage: a.usage()}
	m.Usage.Output = min(1, m.Usage.Output)
	return m
}

func (a answer) stopReason() string {
	if a.turn.StopReason != "" {
		return a.turn.StopReason
	}
	for _, b := range a.turn.Blocks {
		if b.Type == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

func (a answer) usage() wireUsage {
	length := 0
	for _, b := range a.turn.Blocks {
		length += len(b.Text) + len(b.Input)
	}
	u := a.turn.Usage
	write := or(u.CacheWrite, 0)
	return wireUsage{
		Input: or(u.Input, 100), Output: or(u.Output, (length+3)/4),
		CacheWrite: write, CacheRead: or(u.CacheRead, 0),
		CacheCreation: &cacheCreation{FiveMinutes: write}, ServiceTier: "standard",
	}
}

func or(v *int, otherwise int) int {
	if v == nil {
		return otherwise
	}
	return *v
}

// block is the i-th content block, whole or as it is announced before its deltas.
func (a answer) block(i int, b Block, whole bool) any {
	text, signature, input := b.Text, a.signature(i, b), b.Input
	if !whole {
		text, signature, input = "", "", nil
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	switch b.Type {
	case "thinking":
		return thinkingBlock{"thinking", text, signature}
	case "tool_use":
		return toolBlock{"tool_use", a.toolID(i, b), b.Name, input}
	}
	return textBlock{"text", text}
}

func (a answer) toolID(i int, b Block) string {
	if b.ID != "" {
		return b.ID
	}
	return a.serial.id("toolu", i)
}

func (a answer) signature(i int, b Block) string {
	if b.Signature != "" {
		return b.Signature
	}
	return base64.StdEncoding.EncodeToString([]byte("sandboxrun " + a.serial.id("thinking", i)))
}

// object is a JSON object of an event; encoding/json sorts its keys.
type object = map[string]any

// events is the answer as a stream. A cut ends it early; that nothing comes after is all that the client gets to know.
func (a answer) events() iter.Seq[event] {
	return func(yield func(event) bool) {
		left := a.cut
		if !yield(event{"message_start", object{"type": "message_start", "message": a.start()}}) {
			return
		}
		for i, b := range a.turn.Blocks {
			for e := range a.blockEvents(i, b, &left) {
				if !yield(e) {
					return
				}
			}
			if left == 0 {
				return
			}
		}
		if a.cut >= 0 {
			return
		}
		for _, e := range a.ending() {
			if !yield(e) {
				return
			}
		}
	}
}

func (a answer) ending() []event {
	delta := object{"stop_reason": a.stopReason(), "stop_sequence": nil}
	u := a.usage()
	u.CacheCreation, u.ServiceTier = nil, ""
	return []event{
		{"message_delta", object{"type": "message_delta", "delta": delta, "usage": u}},
		{"message_stop", object{"type": "message_stop"}},
	}
}

// blockEvents streams one block. *left is how many bytes of content may still come: it is counted down unless negative,
// and at 0 the block stays open.
func (a answer) blockEvents(i int, b Block, left *int) iter.Seq[event] {
	return func(yield func(event) bool) {
		start := object{"type": "content_block_start", "index": i, "content_block": a.block(i, b, false)}
		if !yield(event{"content_block_start", start}) {
			return
		}
		if i == 0 && !yield(event{"ping", object{"type": "ping"}}) {
			return
		}
		for _, piece := range pieces(b.content(), a.turn.ChunkBytes) {
			if *left == 0 {
				return
			}
			if *left > 0 {
				piece = piece[:runeStart(piece, min(*left, len(piece)))]
				*left = max(*left-max(len(piece), 1), 0)
			}
			if piece != "" && !yield(deltaEvent(i, b.delta(piece))) {
				return
			}
		}
		if *left == 0 {
			return
		}
		if b.Type == "thinking" {
			signature := object{"type": "signature_delta", "signature": a.signature(i, b)}
			if !yield(deltaEvent(i, signature)) {
				return
			}
		}
		yield(event{"content_block_stop", object{"type": "content_block_stop", "index": i}})
	}
}

func deltaEvent(i int, delta object) event {
	return event{"content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta}}
}

// content is what the block's deltas add up to.
func (b Block) content() string {
	if b.Type == "tool_use" {
		return string(b.Input)
	}
	return b.Text
}

func (b Block) delta(piece string) object {
	switch b.Type {
	case "thinking":
		return object{"type": "thinking_delta", "thinking": piece}
	case "tool_use":
		return object{"type": "input_json_delta", "partial_json": piece}
	}
	return object{"type": "text_delta", "text": piece}
}

// pieces splits s at rune boundaries into pieces of about size bytes. Size 0: 32, or more where that makes over 256.
func pieces(s string, size int) []string {
	if size == 0 {
		size = max(32, len(s)/256)
	}
	var out []string
	for s != "" {
		n := runeStart(s, min(size, len(s)))
		if n == 0 { // a rune longer than size
			_, n = utf8.DecodeRuneInString(s)
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// runeStart is the last place at or before n where a rune begins or s ends.
func runeStart(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
