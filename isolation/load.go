package isolation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sandboxrun/sandboxrun/policies"
)

// Load reads a policy to run with: a preset when nameOrPath is a bare word, a file when it has a slash or ends in
// ".toml". What is not valid and what this release does not enforce is an error, one [PolicyError] for each.
func Load(nameOrPath string) (*Config, error) { return LoadWith(nameOrPath) }

// LoadWith is [Load] with overrides of the form key=value, the value being TOML, applied in order on top of the file:
//
//	LoadWith("api-only", `agent.model="claude-opus-4-6"`, "limits.pids=64")
func LoadWith(nameOrPath string, sets ...string) (*Config, error) {
	cfg, err := Inspect(nameOrPath, sets...)
	if err != nil {
		return nil, err
	}
	return enforceable(cfg)
}

// Inspect is [LoadWith] without the question whether this release enforces the policy: to show and explain it. Ask
// [Config.Enforceable] before running anything.
func Inspect(nameOrPath string, sets ...string) (*Config, error) {
	l := loader{readFile: readPolicy}
	doc, err := l.open(nameOrPath, "")
	if err != nil {
		return nil, err
	}
	return l.load(doc, sets)
}

// Parse is [Load] of a text, without touching the file system. The policy may extend presets; errors call it name.
func Parse(name string, data []byte) (*Config, error) {
	cfg, err := inspectText(name, data)
	if err != nil {
		return nil, err
	}
	return enforceable(cfg)
}

func inspectText(name string, data []byte) (*Config, error) {
	l := loader{readFile: func(path string) ([]byte, error) {
		return nil, fmt.Errorf("open %s: the policy is not read from a file, so it can extend presets only", path)
	}}
	doc, err := parseDocument(name, "", data)
	if err != nil {
		return nil, err
	}
	return l.load(doc, nil)
}

func enforceable(cfg *Config) (*Config, error) {
	if err := cfg.Enforceable(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// maxPolicy bounds what is read of a policy file.
const maxPolicy = 1 << 20

func readPolicy(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err == nil && len(data) > maxPolicy {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return data, err
}

// document is one TOML text: its values, and where they stand.
type document struct {
	name string // as printed
	dir  string // where its relative paths start
	tree map[string]any
	at   map[string]place
}

// parseDocument reads TOML; a document without the right version is an error.
func parseDocument(name, dir string, data []byte) (*document, error) {
	lines, deep := keyLines(string(data))
	if deep > 0 {
		return nil, &PolicyError{File: name, Line: deep, Msg: fmt.Sprintf("nested deeper than %d", maxNesting)}
	}
	doc := &document{name: name, dir: dir, at: map[string]place{"": {name, dir, 1}}}
	if _, err := toml.Decode(string(data), &doc.tree); err != nil {
		return nil, syntaxError(name, err)
	}
	for key, line := range lines {
		doc.at[key] = place{name, dir, line}
	}
	return doc, doc.checkVersion()
}

func syntaxError(name string, err error) *PolicyError {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return &PolicyError{File: name, Line: 1, Msg: err.Error(), Err: err}
	}
	e := &PolicyError{File: name, Line: max(parse.Position.Line, 1), Key: parse.LastKey, Msg: parse.Message, Err: err}
	if mayBeSecret(e.Key) { // the message quotes what it did not expect
		e.Msg, e.Err = "not a TOML value; strings stand in quotes", nil
	}
	return e
}

func (d *document) checkVersion() error {
	f := faults{origin: &origin{at: d.at}}
	version, ok := d.tree["version"]
	switch n, isInt := version.(int64); {
	case !ok:
		d.missingVersion(&f)
	case !isInt:
		f.add("version", errorText("version", version), "want an integer, not %s", kindName(version))
	case n != 1:
		f.add("version", errorText("version", version), "this release reads version 1")
	default:
		return nil
	}
	return f.err()
}

// missingVersion blames a key that was perhaps meant to be the version.
func (d *document) missingVersion(f *faults) {
	if typo := nearest("version", sortedKeys(d.tree)); typo != "" {
		f.add(joinKey("", typo), errorText(typo, d.tree[typo]), "unknown key").Near = "version"
		return
	}
	f.add("version", "", "missing").Hint = "start the file with: version = 1"
}

// loader turns documents into a Config.
type loader struct {
	readFile func(path string) ([]byte, error)
}

// open finds a preset or file by the name that dir's document, or the user, gave it.
func (l loader) open(nameOrPath, dir string) (*document, error) {
	if !isPath(nameOrPath) {
		data, ok := policies.Read(nameOrPath)
		if !ok {
			return nil, noPreset(nameOrPath)
		}
		return parseDocument(nameOrPath, "", data)
	}
	path := resolveIn(dir, nameOrPath)
	data, err := l.readFile(path)
	if err != nil {
		return nil, &PolicyError{Msg: "read policy: " + err.Error(), Err: err}
	}
	return parseDocument(path, filepath.Dir(path), data)
}

func isPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
}

func noPreset(name string) *PolicyError {
	presets := policies.Names()
	return &PolicyError{
		Msg:  fmt.Sprintf("no preset is called %q; the presets are %s", name, strings.Join(presets, ", ")),
		Near: nearest(name, presets),
		Hint: "write a policy file with a slash or .toml: ./" + name,
	}
}

// load merges the chain of extends and the overrides, decodes the whole and checks it.
func (l loader) load(doc *document, sets []string) (*Config, error) {
	merged, err := l.extend(doc)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if err := merged.override(set); err != nil {
			return nil, err
		}
	}
	merged.origin.name = doc.name
	cfg := &Config{}
	d := decoder{faults{origin: merged.origin}}
	d.value("", merged.tree, reflect.ValueOf(cfg).Elem())
	if err := d.err(); err != nil {
		return nil, err
	}
	cfg.origin = merged.origin
	return cfg, cfg.Validate()
}
