package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Script is what a scripted model says, turn by turn. It is inert data: a [Server] plays it and never changes it.
type Script struct {
	File        string // where it came from, for messages
	Description string
	Turns       []Turn
}

// Turn is one answer of the model. Its zero value is an empty answer.
type Turn struct {
	Line       int           // line in the script, 0 when unknown
	Agent      string        // binds the turn to conversations whose first user text contains this; "": the main one
	Expect     Expect        // what the request must say
	Delay      time.Duration // before the first byte, errors included
	Error      *Failure      // answered before the blocks, if there are any; nil: none
	Blocks     []Block       // the content, in order
	StopReason string        // "": tool_use when there is such a block, else end_turn
	Usage      Usage
	ChunkBytes int           // bytes of text or JSON in a stream event; 0: pieces of 32 bytes, larger ones for long texts
	ChunkDelay time.Duration // before each such event
	Cut        *int          // the first stream breaks off after this many bytes of content; nil: it does not
}

// Expect is an assertion on the last thing that the request says: the user's text and the tool results after the last
// assistant message. The zero value asserts nothing.
type Expect struct {
	Contains []string // every one of them must be there
	Lacks    []string // none of them may be there
}

// Failure is an error answer of the API.
type Failure struct {
	Status     int           // 400 to 599
	Type       string        // "overloaded_error"
	Message    string        //
	RetryAfter time.Duration // whole seconds in a retry-after header; 0: no header
	Retry      *bool         // the x-should-retry header; nil: no header
	Repeat     int           // how many requests get it; 0: all of them until the conversation has moved on
}

// Block is one content block: "text" and "thinking" use Text, "tool_use" uses Name, ID and Input.
type Block struct {
	Type      string
	Text      string
	Signature string          // of a thinking block; "": made up
	Name      string          // the tool
	ID        string          // of the tool call; "": made up
	Input     json.RawMessage // a JSON object
}

// Usage is what the answer claims to have cost, in tokens. Nil fields: 100 in, a quarter of the answer's bytes out.
type Usage struct {
	Input, Output, CacheRead, CacheWrite *int
}

// ScriptError says what is wrong with a script, and where.
type ScriptError struct {
	File    string
	Line    int    // 0 when unknown
	Key     string // "turn 2: tools 1: name"; "" for the script as a whole
	Problem string
}

func (e *ScriptError) Error() string {
	var b strings.Builder
	b.WriteString("script " + e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	return b.String() + ": " + e.Problem
}

// LoadScript reads the script in the file path; see [ParseScript].
func LoadScript(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return ParseScript(path, data)
}

// ParseScript parses data as JSON if name ends in .json or data starts with a brace, else as TOML. The package
// documentation describes the keys. The error is a [*ScriptError]; name is only used in it and in [Script.File].
func ParseScript(name string, data []byte) (*Script, error) {
	root, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	s := &Script{File: name}
	if err := readScript(root, s); err != nil {
		err.File = name
		return nil, err
	}
	return s, nil
}

func parseTree(name string, data []byte) (*node, error) {
	if filepath.Ext(name) == ".json" || strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		return parseJSON(name, data)
	}
	return parseTOML(name, data)
}

// lane returns the name of the list of turns that serves a conversation opened by text: "" is the main one.
func (s *Script) lane(text string) string {
	for _, t := range s.turns() {
		if t.Agent != "" && strings.Contains(text, t.Agent) {
			return t.Agent
		}
	}
	return ""
}

func (s *Script) turns() []Turn {
	if s == nil {
		return nil
	}
	return s.Turns
}

func (s *Script) file() string {
	if s == nil {
		return "(none)"
	}
	return s.File
}
