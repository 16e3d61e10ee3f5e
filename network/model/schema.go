package model

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// stopReasons are those of the Messages API.
var stopReasons = []string{"end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded"}

// errorTypes are those of the Messages API, by the status that they come with.
var errorTypes = []struct {
	status int
	kind   string
}{
	{http.StatusBadRequest, "invalid_request_error"},
	{http.StatusUnauthorized, "authentication_error"},
	{http.StatusPaymentRequired, "billing_error"},
	{http.StatusForbidden, "permission_error"},
	{http.StatusNotFound, "not_found_error"},
	{http.StatusRequestEntityTooLarge, "request_too_large"},
	{http.StatusTooManyRequests, "rate_limit_error"},
	{http.StatusInternalServerError, "api_error"},
	{http.StatusGatewayTimeout, "timeout_error"},
	{529, "overloaded_error"},
}

func readScript(n *node, s *Script) *ScriptError {
	err := n.object([]field{
		{"description", str(&s.Description)},
		{"turns", list(&s.Turns, readTurn)},
	})
	if err == nil && len(s.Turns) == 0 {
		return &ScriptError{Problem: "no turns: a script needs at least one [[turns]]"}
	}
	return err
}

// turnText holds the short spellings of a turn's blocks until it is known that they are not mixed with the long one.
type turnText struct {
	text, thinking *string
	tools          []Block
	blocks         *node
}

func readTurn(n *node, t *Turn) *ScriptError {
	var say turnText
	t.Line = n.line
	err := n.object([]field{
		{"text", ptr(&say.text, str)},
		{"thinking", ptr(&say.thinking, str)},
		{"tools", list(&say.tools, readTool)},
		{"blocks", func(n *node) *ScriptError { say.blocks = n; return list(&t.Blocks, readBlock)(n) }},
		{"agent", str(&t.Agent)},
		{"expect", table(&t.Expect, readExpect)},
		{"delay", duration(&t.Delay)},
		{"error", func(n *node) *ScriptError { t.Error = new(Failure); return readFailure(n, t.Error) }},
		{"stop_reason", oneOf(&t.StopReason, stopReasons)},
		{"usage", table(&t.Usage, readUsage)},
		{"chunk_bytes", integer(&t.ChunkBytes, 1, math.MaxInt32)},
		{"chunk_delay", duration(&t.ChunkDelay)},
		{"cut", ptr(&t.Cut, func(v *int) setter { return integer(v, 0, math.MaxInt32) })},
	})
	if err != nil {
		return err
	}
	return say.into(t, n)
}

// into puts the short spellings into the turn: thinking, then text, then tools, as a model would.
func (say turnText) into(t *Turn, n *node) *ScriptError {
	short := say.text != nil || say.thinking != nil || say.tools != nil
	switch {
	case short && say.blocks != nil:
		return n.fail("text, thinking and tools cannot be mixed with blocks, which has the order")
	case !short && say.blocks == nil && t.Error == nil:
		return n.fail("says nothing: give it text, tools, blocks or error (blocks = [] for an empty answer)")
	case !short && say.blocks == nil && t.Cut != nil:
		return n.fail("cut has nothing to cut: the turn has no content")
	}
	if say.thinking != nil {
		t.Blocks = append(t.Blocks, Block{Type: "thinking", Text: *say.thinking})
	}
	if say.text != nil {
		t.Blocks = append(t.Blocks, Block{Type: "text", Text: *say.text})
	}
	t.Blocks = append(t.Blocks, say.tools...)
	if t.Error != nil && t.Error.Repeat == unsaid {
		t.Error.Repeat = t.Error.repeats(len(t.Blocks) > 0)
	}
	return nil
}

func readTool(n *node, b *Block) *ScriptError {
	b.Type = "tool_use"
	err := n.object(toolFields(b))
	return finishTool(n, b, err)
}

func toolFields(b *Block) []field {
	return []field{{"name", str(&b.Name)}, {"id", str(&b.ID)}, {"input", rawObject(&b.Input)}}
}

func finishTool(n *node, b *Block, err *ScriptError) *ScriptError {
	if err == nil && b.Name == "" {
		return n.fail("needs the name of a tool")
	}
	if b.Input == nil {
		b.Input = json.RawMessage("{}")
	}
	return err
}

func readBlock(n *node, b *Block) *ScriptError {
	kind := n.member("type")
	if kind == nil {
		return n.fail(`needs a type: "text", "thinking" or "tool_use"`)
	}
	setType := oneOf(&b.Type, []string{"text", "thinking", "tool_use"})
	if err := setType(kind); err != nil {
		return err
	}
	fields := []field{{"type", setType}, {"text", str(&b.Text)}}
	switch b.Type {
	case "thinking":
		fields = append(fields, field{"signature", str(&b.Signature)})
	case "tool_use":
		return finishTool(n, b, n.object(append(toolFields(b), fields[0])))
	}
	return n.object(fields)
}

func readExpect(n *node, e *Expect) *ScriptError {
	return n.object([]field{{"contains", stringOrList(&e.Contains)}, {"lacks", stringOrList(&e.Lacks)}})
}

func readUsage(n *node, u *Usage) *ScriptError {
	tokens := func(v *int) setter { return integer(v, 0, math.MaxInt32) }
	return n.object([]field{
		{"input", ptr(&u.Input, tokens)}, {"output", ptr(&u.Output, tokens)},
		{"cache_read", ptr(&u.CacheRead, tokens)}, {"cache_write", ptr(&u.CacheWrite, tokens)},
	})
}

func readFailure(n *node, f *Failure) *ScriptError {
	f.Repeat = unsaid
	var seconds int
	err := n.object([]field{
		{"status", integer(&f.Status, 400, 599)},
		{"type", str(&f.Type)},
		{"message", str(&f.Message)},
		{"retry_after", integer(&seconds, 0, 24*60*60)},
		{"retry", ptr(&f.Retry, boolean)},
		{"repeat", integer(&f.Repeat, 1, math.MaxInt32)},
	})
	if err == nil && f.Status == 0 {
		return n.fail("needs a status, for example 529")
	}
	f.RetryAfter = time.Duration(seconds) * time.Second
	if f.Type == "" {
		f.Type = errorType(f.Status)
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("scripted %s", f.Type)
	}
	return err
}

// unsaid is the Repeat of an error in a script that does not say it, until the whole turn is known.
const unsaid = -1

// repeats is how often an error comes when the script does not say: one that a retry may get over, or that content
// follows, once; one that says no for good, to everyone who asks.
func (f *Failure) repeats(content bool) int {
	switch f.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return 1
	}
	if content || f.Status >= 500 {
		return 1
	}
	return 0
}

// errorType is the type that the API gives to errors of status.
func errorType(status int) string {
	for _, t := range errorTypes {
		if t.status == status {
			return t.kind
		}
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

func oneOf(v *string, words []string) setter {
	return func(n *node) *ScriptError {
		if err := str(v)(n); err != nil {
			return err
		}
		if !slices.Contains(words, *v) {
			return n.fail("%q is not one of %q%s", *v, words, didYouMean(*v, words))
		}
		return nil
	}
}

func duration(v *time.Duration) setter {
	return func(n *node) *ScriptError {
		text, ok := n.value.(string)
		if !ok {
			return n.wrongType("a duration in quotes, such as \"200ms\"")
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return n.fail("%q is not a duration such as \"200ms\" or \"1.5s\"", text)
		}
		*v = d
		return nil
	}
}
