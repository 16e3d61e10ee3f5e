package isolation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxExtends is how many policies may stand one on another.
const maxExtends = 8

// layered is a tree made of several documents.
type layered struct {
	tree   map[string]any
	origin *origin
}

// extend reads what doc extends, and what that extends, and lays the documents one over another.
func (l loader) extend(doc *document) (*layered, error) {
	chain := []*document{doc}
	for {
		last := chain[len(chain)-1]
		base, ok, err := last.base()
		if err != nil {
			return nil, err
		}
		if !ok {
			return layer(chain), nil
		}
		next, err := l.open(base, last.dir)
		if err != nil {
			return nil, last.extendsError(base, err)
		}
		if slices.ContainsFunc(chain, func(d *document) bool { return d.name == next.name }) {
			return nil, last.chainError(base, "the chain of extends is a cycle", append(chain, next))
		}
		if chain = append(chain, next); len(chain) > maxExtends {
			return nil, last.chainError(base, fmt.Sprintf("the chain of extends is longer than %d", maxExtends), chain)
		}
	}
}

// base returns what the document extends.
func (d *document) base() (string, bool, error) {
	value, ok := d.tree["extends"]
	if !ok {
		return "", false, nil
	}
	name, isString := value.(string)
	if isString && name != "" {
		return name, true, nil
	}
	f := faults{origin: &origin{at: d.at}}
	f.add("extends", errorText("extends", value), "want the name of a preset or a file")
	return "", false, f.err()
}

// extendsError puts the trouble of opening base where the document says extends. An error inside base stays as it is.
func (d *document) extendsError(base string, err error) error {
	inner := PolicyErrors(err)
	if len(inner) != 1 || inner[0].File != "" {
		return err
	}
	at := d.at["extends"]
	e := *inner[0]
	e.File, e.Line, e.Key, e.Value = at.file, at.line, "extends", quoteTOML(base)
	return &e
}

func (d *document) chainError(base, what string, chain []*document) error {
	names := make([]string, len(chain))
	for i, doc := range chain {
		names[i] = doc.name
	}
	f := faults{origin: &origin{at: d.at}}
	f.add("extends", quoteTOML(base), "%s: %s", what, strings.Join(names, " -> "))
	return f.err()
}

// layer merges documents, the first being the topmost. Description and extends are about one file and do not pass on.
func layer(chain []*document) *layered {
	m := &layered{tree: map[string]any{}, origin: &origin{at: map[string]place{}}}
	for i, doc := range slices.Backward(chain) {
		tree := maps.Clone(doc.tree)
		if i > 0 {
			delete(tree, "description")
			delete(tree, "extends")
		}
		m.merge("", m.tree, tree, doc.at)
		m.origin.at[""] = doc.at[""]
	}
	for _, doc := range chain {
		m.origin.files = append(m.origin.files, doc.name)
	}
	return m
}

// merge puts the values of from into to: tables key by key, anything else as a whole. at says where from's keys stand.
func (m *layered) merge(table string, to, from map[string]any, at map[string]place) {
	for name, value := range from {
		key := joinKey(table, name)
		below, isTable := value.(map[string]any)
		if old, wasTable := to[name].(map[string]any); isTable && wasTable && key != "api_key" {
			m.origin.at[key] = at[key]
			m.merge(key, old, below, at)
			continue
		}
		if isTable {
			value = cloneTree(below) // a later merge must not write into a document
		}
		to[name] = value
		m.place(key, at)
	}
}

// place replaces what is known about where key and everything below it stand.
func (m *layered) place(key string, at map[string]place) {
	inside := func(k string, _ place) bool { return within(k, key) }
	maps.DeleteFunc(m.origin.at, inside)
	for k, p := range at {
		if inside(k, p) {
			m.origin.at[k] = p
		}
	}
}

func cloneTree(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	for name, value := range tree {
		if below, ok := value.(map[string]any); ok {
			tree[name] = cloneTree(below)
		}
	}
	return tree
}

// override lays one --set key=value on top.
func (m *layered) override(set string) error {
	doc, err := parseSet(set)
	if err != nil {
		return err
	}
	m.merge("", m.tree, doc.tree, doc.at)
	return nil
}

// parseSet reads key=value as a document of its own, without a line number.
func parseSet(set string) (*document, error) {
	key, value, ok := strings.Cut(set, "=")
	key = strings.TrimSpace(key)
	name := "--set " + key + "=" + strings.TrimSpace(value)
	if isSecretValue(value) || mayBeSecret(key) {
		name = "--set " + key + "=" + redacted
	}
	if !ok || key == "" {
		return nil, &PolicyError{File: oneLine("--set " + set), Msg: "want key=value", Hint: `for example: --set limits.wall_time='"10m"'`}
	}
	if strings.ContainsAny(set, "\r\n") {
		return nil, &PolicyError{File: oneLine(name), Msg: "want key=value on one line"}
	}
	if key == "version" || key == "extends" {
		return nil, &PolicyError{File: oneLine(name), Key: key, Msg: "can be set in a file only"}
	}
	doc := &document{name: shorten(name), at: map[string]place{}}
	lines, deep := keyLines(key + " = " + value)
	if deep > 0 {
		return nil, &PolicyError{File: oneLine(doc.name), Msg: fmt.Sprintf("nested deeper than %d", maxNesting)}
	}
	if _, err := toml.Decode(key+" = "+value, &doc.tree); err != nil {
		return nil, setError(doc.name, key, value, err)
	}
	for k := range lines {
		doc.at[k] = place{file: doc.name}
	}
	return doc, nil
}

func setError(name, key, value string, err error) error {
	e := syntaxError(name, err)
	e.Line, e.Key = 0, key
	value = strings.TrimSpace(value)
	switch {
	case isSecretValue(value) || mayBeSecret(key):
		e.Msg, e.Err = "not a TOML value; strings stand in quotes", nil
	case value != "" && !strings.ContainsAny(value, `"'[{`):
		e.Hint = "quote a string for TOML and the shell: --set '" + key + `="` + value + `"'`
	}
	return e
}
