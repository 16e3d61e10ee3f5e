package model

import (
	"bytes"
	"encoding/json"
)

// compactJSON is json.Marshal without escapes for HTML. v must have a JSON form.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: encode " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// sample makes the smallest value that a JSON Schema of the simple kind allows: its first enum value, its required
// properties. What it does not understand becomes "ok".
func sample(schema json.RawMessage, depth int) any {
	var s struct {
		Type       string
		Enum       []any
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil || depth > 20 {
		return "ok"
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Type {
	case "object":
		o := object{}
		for _, key := range s.Required {
			o[key] = sample(s.Properties[key], depth+1)
		}
		return o
	case "array":
		return []any{}
	case "boolean":
		return false
	case "integer", "number":
		return 0
	case "null":
		return nil
	}
	return "ok"
}
