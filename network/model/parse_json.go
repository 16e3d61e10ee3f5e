package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deeply values of a JSON script nest at most; the parser recurses.
const maxDepth = 100

// jsonParser turns JSON text into nodes, by token, to know lines and to see keys that come twice.
type jsonParser struct {
	name string
	data []byte
	dec  *json.Decoder
}

func parseJSON(name string, data []byte) (*node, error) {
	p := &jsonParser{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	root, err := p.value("", 0)
	if err != nil {
		return nil, p.wrap(err)
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, p.wrap(errors.New("text after the closing brace"))
	}
	return root, nil
}

func (p *jsonParser) line() int {
	return 1 + bytes.Count(p.data[:p.dec.InputOffset()], []byte("\n"))
}

func (p *jsonParser) wrap(err error) error {
	if e := (*ScriptError)(nil); errors.As(err, &e) {
		e.File = p.name
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the text ends too early")
	}
	line := p.line()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line = 1 + bytes.Count(p.data[:min(int(syntax.Offset), len(p.data))], []byte("\n"))
	}
	return &ScriptError{File: p.name, Line: line, Problem: "not JSON: " + err.Error()}
}

func (p *jsonParser) value(path string, depth int) (*node, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{path: path, line: p.line(), value: token}
	if depth > maxDepth {
		return nil, n.fail("nested more than %d deep", maxDepth)
	}
	switch token {
	case json.Delim('{'):
		n.value, err = p.object(path, depth+1)
	case json.Delim('['):
		n.value, err = p.list(path, depth+1)
	}
	return n, err
}

func (p *jsonParser) object(path string, depth int) (map[string]*node, error) {
	m := map[string]*node{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v where a key was expected", token)
		}
		n, err := p.value(childPath(path, key), depth)
		if err != nil {
			return nil, err
		}
		if m[key] != nil {
			return nil, n.fail("the key comes twice")
		}
		m[key] = n
	}
	_, err := p.dec.Token() // the closing brace
	return m, err
}

func (p *jsonParser) list(path string, depth int) ([]*node, error) {
	items := []*node{}
	for p.dec.More() {
		n, err := p.value(itemPath(path, len(items)), depth)
		if err != nil {
			return nil, err
		}
		items = append(items, n)
	}
	_, err := p.dec.Token() // the closing bracket
	return items, err
}
