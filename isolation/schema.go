package isolation

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"

	"github.com/sandboxrun/sandboxrun/ephemeral"
	"github.com/sandboxrun/sandboxrun/network"
)

// schema is a JSON Schema of draft 2020-12, as far as policies need it. Fields marshal in this order.
type schema struct {
	Schema               string             `json:"$schema,omitempty"`
	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	OneOf                []*schema          `json:"oneOf,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Const                any                `json:"const,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Format               string             `json:"format,omitempty"`
	Minimum              *int               `json:"minimum,omitempty"`
	Maximum              *int               `json:"maximum,omitempty"`
	Default              any                `json:"default,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	MinProperties        int                `json:"minProperties,omitempty"`
	MaxProperties        int                `json:"maxProperties,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
}

// Schema returns a JSON Schema of policy files for editors, made from the types. It knows fewer rules than [Load].
func Schema() ([]byte, error) {
	g := schemaMaker{defaults: map[string]any{}}
	for _, l := range leaves((&Config{}).WithDefaults()) {
		g.defaults[l.key] = l.data
	}
	root := g.of("", reflect.TypeFor[Config]())
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "sandboxrun policy"
	root.Required = []string{"version"}
	root.Properties["version"].Const = 1
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(root)
	return b.Bytes(), err
}

type schemaMaker struct {
	defaults map[string]any
}

// of returns the schema of the values of a type at a key.
func (g schemaMaker) of(key string, t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := g.ofType(key, t)
	info := infoOf(key)
	s.Description, s.Default = info.doc, g.defaults[key]
	if info.words != "" {
		s.Enum = strings.Fields(info.words)
	}
	if s.Type == "integer" || s.Type == "number" {
		switch {
		case info.positive:
			s.Minimum = new(1)
		case s.Minimum == nil && !info.signed:
			s.Minimum = new(0)
		}
	}
	return s
}

func (g schemaMaker) ofType(key string, t reflect.Type) *schema {
	if known := knownSchema(t); known != nil {
		return known
	}
	switch kind := t.Kind(); kind {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice:
		return &schema{Type: "array", Items: g.of(key+"[]", t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: g.of(key+".*", t.Elem())}
	case reflect.Struct:
		return g.table(key, t)
	}
	return &schema{Type: "string"}
}

func (g schemaMaker) table(key string, t reflect.Type) *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: false}
	for i := range t.NumField() {
		if name := tomlName(t.Field(i)); name != "" {
			s.Properties[name] = g.of(joinKey(key, name), t.Field(i).Type)
		}
	}
	if t == reflect.TypeFor[Source]() {
		s.MinProperties, s.MaxProperties = 1, 1
		return &schema{OneOf: []*schema{{Type: "string"}, s}}
	}
	return s
}

// knownSchema returns the schema of a type that reads its own text, or nil.
func knownSchema(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[network.Port]():
		return &schema{Type: "integer", Minimum: new(1), Maximum: new(65535)}
	case reflect.TypeFor[network.Rule]():
		return &schema{Type: "string", Pattern: `^[^\s/@A-Z]+$`}
	case reflect.TypeFor[netip.Prefix]():
		return &schema{Type: "string", Pattern: `^[0-9a-f.:]+/[0-9]{1,3}$`}
	case reflect.TypeFor[netip.Addr]():
		return &schema{Type: "string", Pattern: `^[0-9a-f.:]+$`}
	case reflect.TypeFor[Duration]():
		return &schema{Type: "string", Pattern: `^([0-9]+(h|m|s|ms))+$`}
	case reflect.TypeFor[ephemeral.Size]():
		return &schema{OneOf: []*schema{{Type: "string", Pattern: `^[0-9]+([KMGT]iB)?$`}, {Type: "integer", Minimum: new(0)}}}
	case reflect.TypeFor[network.UnixSockets]():
		return &schema{OneOf: []*schema{{Type: "boolean"}, {Type: "array", Items: &schema{Type: "string", Pattern: "^/"}}}}
	case reflect.TypeFor[RunAs]():
		return &schema{OneOf: []*schema{{Type: "string"}, {Type: "integer", Minimum: new(0)}}}
	}
	return nil
}
