package model

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

func parseTOML(name string, data []byte) (*node, error) {
	var m map[string]any
	if _, err := toml.Decode(string(data), &m); err != nil {
		return nil, tomlError(name, err)
	}
	lines := tomlLines(string(data))
	return tomlNode("", lines, m), nil
}

func tomlError(name string, err error) error {
	e := &ScriptError{File: name, Problem: "not TOML: " + err.Error()}
	if parse := (toml.ParseError{}); errors.As(err, &parse) {
		e.Line, e.Problem = parse.Position.Line, "not TOML: "+strings.TrimSuffix(parse.Message, ".")
		if parse.Message == "" { // errors of the lexer say it only in Error()
			_, text, _ := strings.Cut(parse.Error(), ": ")
			e.Problem = "not TOML: " + text
		}
	}
	return e
}

// tomlNode turns what the TOML package decoded into nodes; whatever has no JSON form stays as it is, for a message.
func tomlNode(path string, lines lineIndex, value any) *node {
	n := &node{path: path, line: lines.find(path), value: value}
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]*node, len(v))
		for key, member := range v {
			m[key] = tomlNode(childPath(path, key), lines, member)
		}
		n.value = m
	case []map[string]any:
		n.value = tomlItems(path, lines, v)
	case []any:
		n.value = tomlItems(path, lines, v)
	case int64:
		n.value = json.Number(strconv.FormatInt(v, 10))
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			n.value = json.Number(strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return n
}

func tomlItems[T any](path string, lines lineIndex, items []T) []*node {
	nodes := make([]*node, len(items))
	for i, item := range items {
		nodes[i] = tomlNode(itemPath(path, i), lines, item)
	}
	return nodes
}
