package isolation

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandboxrun/sandboxrun/network"
)

// leaf is one key of a Config that says something.
type leaf struct {
	key   string
	data  any  // as the TOML library would read it; nil for an empty table whose presence counts
	empty bool // an empty list that means what an absent one means
}

// text returns the value as TOML for people: shortened, and "[redacted]" for what is or looks like a secret.
func (l leaf) text() string { return dataText(l.key, l.data) }

// leaves lists what a Config says, in the order of its fields: every key that is not zero, nil standing for absent. A
// literal api_key is "[redacted]".
func leaves(c *Config) []leaf {
	var list []leaf
	walk("", reflect.ValueOf(c).Elem(), func(key string, rv reflect.Value) bool {
		data, whole := valueData(rv)
		if whole {
			list = append(list, leaf{key, data, rv.Kind() == reflect.Slice && rv.Len() == 0})
		}
		return !whole
	})
	return list
}

// walk visits rv and, where visit says so, what is below it.
func walk(key string, rv reflect.Value, visit func(string, reflect.Value) bool) {
	if key != "" && (rv.IsZero() || !visit(key, rv)) {
		return
	}
	for rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	switch rv.Kind() {
	case reflect.Struct:
		for i := range rv.NumField() {
			if name := tomlName(rv.Type().Field(i)); name != "" {
				walk(joinKey(key, name), rv.Field(i), visit)
			}
		}
	case reflect.Map:
		for _, k := range sortedMapKeys(rv) {
			walk(joinKey(key, k.String()), rv.MapIndex(k), visit)
		}
	case reflect.Slice:
		for i := range rv.Len() {
			walk(indexKey(key, i), rv.Index(i), visit)
		}
	}
}

func sortedMapKeys(rv reflect.Value) []reflect.Value {
	keys := rv.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// textAt returns the value of c at key as TOML for an error, or "".
func textAt(c *Config, key string) string {
	found := ""
	walk("", reflect.ValueOf(c).Elem(), func(k string, rv reflect.Value) bool {
		if data, whole := valueData(rv); k == key && whole {
			found = errorText(k, data)
		}
		return k != key && within(key, k)
	})
	return found
}

// valueData returns a value as the TOML library would have read it, if it is written in one piece: neither a table nor
// an array of tables. An empty table is in one piece, and nil.
func valueData(rv reflect.Value) (any, bool) {
	if rv.Kind() == reflect.Pointer && !rv.IsNil() {
		return valueData(rv.Elem())
	}
	if data, ok := plainData(rv); ok {
		return data, true
	}
	if rv.Kind() != reflect.Slice || hasTables(rv.Type().Elem()) {
		return nil, rv.Kind() == reflect.Struct && rv.IsZero()
	}
	list := make([]any, rv.Len())
	for i := range list {
		list[i], _ = plainData(rv.Index(i))
	}
	return list, true
}

// hasTables reports whether t is a struct with keys of its own.
func hasTables(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && len(fieldNames(t)) > 0
}

// plainData returns what the TOML library would have read for a scalar.
func plainData(rv reflect.Value) (any, bool) {
	switch v := rv.Interface().(type) {
	case Source:
		return redacted, v.kind() == "literal"
	case network.UnixSockets:
		if len(v.Paths) > 0 {
			return anyList(v.Paths), true
		}
		return v.All, true
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if n, convErr := strconv.ParseInt(string(text), 10, 64); convErr == nil && rv.Kind() != reflect.String {
			return n, err == nil
		}
		return string(text), err == nil
	}
	switch rv.Kind() {
	case reflect.Bool:
		return rv.Bool(), true
	case reflect.String:
		return rv.String(), true
	case reflect.Int, reflect.Int64:
		return rv.Int(), true
	case reflect.Float64:
		return rv.Float(), true
	}
	return nil, false
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, t := range texts {
		list[i] = t
	}
	return list
}

// hidden reports whether the value at key may be a secret by its place alone.
func hidden(key string) bool {
	return key == "api_key" || within(key, "env") && key != "env" || within(key, "credentials") && strings.HasSuffix(key, ".source")
}

// mayBeSecret reports whether the value of a key, which need not be one of ours, should stay out of errors: people put
// secrets where their names belong.
func mayBeSecret(key string) bool {
	name := key[len(parentKey(key)):]
	return hidden(key) || within(key, "api_key") || strings.Contains(key, ".source.") || infoOf(key).key == "" && isSecretName(name)
}

// errorText is dataText for errors, which go to logs.
func errorText(key string, data any) string {
	text := dataText(key, data)
	if text != "" && mayBeSecret(key) {
		return redacted
	}
	return text
}

// maxText keeps values on one line.
const maxText = 200

// dataText returns a TOML value as TOML, shortened: "" for tables, "[redacted]" for what is or looks like a secret.
func dataText(key string, data any) string {
	if data == nil || isTable(data) {
		return ""
	}
	if hidden(key) {
		return redacted
	}
	text := rawText(data)
	if isSecretValue(text) {
		return redacted
	}
	return shorten(text)
}

func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func rawText(data any) string {
	switch v := data.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case string:
		return quoteTOML(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	list, ok := elements(data)
	if !ok {
		return "{…}"
	}
	texts := make([]string, len(list))
	for i, elem := range list {
		texts[i] = rawText(elem)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func floatText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strconv.FormatFloat(v, 'f', -1, 64), "+")
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// quoteTOML writes a basic string, whose escapes are those of JSON.
func quoteTOML(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: " + err.Error())
	}
	return strings.TrimSuffix(strings.ReplaceAll(b.String(), "\x7f", `\u007f`), "\n")
}

// typeName names what a type is written as.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return `a duration such as "1h30m"`
	case reflect.TypeFor[Source]():
		return "a string or a table with env, file or command"
	}
	switch kind := t.Kind(); {
	case kind == reflect.Bool:
		return "a boolean"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "an integer"
	case kind == reflect.Float64:
		return "a finite number"
	case kind == reflect.Slice:
		return "an array"
	case kind == reflect.Map, hasTables(t):
		return "a table"
	}
	return "a string"
}

// kindName names the TOML type of a value.
func kindName(data any) string {
	switch data.(type) {
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	}
	return "an array"
}

// quotedList joins words for a sentence: "a", "b" or "c".
func quotedList(words []string, conjunction string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " " + conjunction + " " + quoted[last]
}
