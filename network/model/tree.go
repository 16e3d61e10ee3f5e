package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// node is a value of a script, in either notation. value is a string, bool, json.Number, []*node, map[string]*node,
// or anything else, which no key accepts.
type node struct {
	path  string // "turn 2: tools 1: name"
	line  int
	value any
}

// setter reads a node into a variable that it knows.
type setter func(*node) *ScriptError

// field is a key that an object may have.
type field struct {
	key string
	set setter
}

func (n *node) fail(format string, args ...any) *ScriptError {
	return &ScriptError{Line: n.line, Key: n.path, Problem: fmt.Sprintf(format, args...)}
}

func (n *node) wrongType(want string) *ScriptError {
	return n.fail("%s is not %s", n.describe(), want)
}

// describe shows the value as far as it fits into a message.
func (n *node) describe() string {
	switch v := n.value.(type) {
	case map[string]*node:
		return "a table"
	case []*node:
		return "a list"
	case string:
		return clip(strconv.Quote(v), 60)
	default:
		return fmt.Sprint(v)
	}
}

// member returns the value of key if the node is an object that has it, else nil.
func (n *node) member(key string) *node {
	m, _ := n.value.(map[string]*node)
	return m[key]
}

// object reads the node's keys by fields, in alphabetical order of keys, so that the same script fails the same way.
func (n *node) object(fields []field) *ScriptError {
	m, ok := n.value.(map[string]*node)
	if !ok {
		return n.wrongType("a table")
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			return m[key].fail("unknown key%s", unknownKey(key, fields))
		}
		if err := fields[i].set(m[key]); err != nil {
			return err
		}
	}
	return nil
}

func unknownKey(key string, fields []field) string {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	if hint := didYouMean(key, known); hint != "" {
		return hint
	}
	return "; known here: " + strings.Join(known, ", ")
}

func list[T any](into *[]T, read func(*node, *T) *ScriptError) setter {
	return func(n *node) *ScriptError {
		items, ok := n.value.([]*node)
		if !ok {
			return n.wrongType("a list")
		}
		*into = make([]T, len(items))
		for i, item := range items {
			if err := read(item, &(*into)[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func table[T any](into *T, read func(*node, *T) *ScriptError) setter {
	return func(n *node) *ScriptError { return read(n, into) }
}

// ptr makes a setter for a key whose absence matters.
func ptr[T any](into **T, set func(*T) setter) setter {
	return func(n *node) *ScriptError {
		*into = new(T)
		return set(*into)(n)
	}
}

func str(into *string) setter {
	return func(n *node) *ScriptError {
		v, ok := n.value.(string)
		if !ok {
			return n.wrongType("a string")
		}
		*into = v
		return nil
	}
}

func boolean(into *bool) setter {
	return func(n *node) *ScriptError {
		v, ok := n.value.(bool)
		if !ok {
			return n.wrongType("true or false")
		}
		*into = v
		return nil
	}
}

func integer(into *int, least, most int64) setter {
	return func(n *node) *ScriptError {
		v, ok := n.value.(json.Number)
		if !ok {
			return n.wrongType("a whole number")
		}
		i, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return n.wrongType("a whole number")
		}
		if i < least || i > most || i > math.MaxInt {
			return n.fail("%d is not between %d and %d", i, least, most)
		}
		*into = int(i)
		return nil
	}
}

func stringOrList(into *[]string) setter {
	return func(n *node) *ScriptError {
		if _, ok := n.value.([]*node); ok {
			return list(into, func(n *node, s *string) *ScriptError { return str(s)(n) })(n)
		}
		*into = make([]string, 1)
		return str(&(*into)[0])(n)
	}
}

// rawObject keeps an object as JSON text, its keys sorted.
func rawObject(into *json.RawMessage) setter {
	return func(n *node) *ScriptError {
		if _, ok := n.value.(map[string]*node); !ok {
			return n.wrongType("a table")
		}
		plain, err := n.plain()
		if err != nil {
			return err
		}
		*into = compactJSON(plain)
		return nil
	}
}

// plain returns the value as encoding/json wants it.
func (n *node) plain() (any, *ScriptError) {
	switch v := n.value.(type) {
	case map[string]*node:
		return plainMap(v)
	case []*node:
		return plainList(v)
	case nil, string, bool, json.Number:
		return v, nil
	default:
		return nil, n.fail("%v has no JSON form: put it in quotes", v)
	}
}

func plainMap(m map[string]*node) (any, *ScriptError) {
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v, err := m[key].plain()
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

func plainList(l []*node) (any, *ScriptError) {
	out := make([]any, len(l))
	for i, item := range l {
		v, err := item.plain()
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// childPath names a key below path. Turns are counted from one, as people do.
func childPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + ": " + key
}

func itemPath(path string, i int) string {
	if path == "turns" {
		path = "turn"
	}
	return path + " " + strconv.Itoa(i+1)
}
