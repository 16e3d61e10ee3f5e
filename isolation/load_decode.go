package isolation

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder puts a tree of TOML values into a Config. Other than the TOML library it takes no key for another that
// differs in case, converts no types, reports everything that is wrong, and always in the same order.
type decoder struct {
	faults
}

type tomlUnmarshaler interface{ UnmarshalTOML(any) error }

// value decodes data, which stands at key, into the settable rv.
func (d *decoder) value(key string, data any, rv reflect.Value) {
	if rv.Kind() == reflect.Pointer {
		rv.Set(reflect.New(rv.Type().Elem()))
		d.value(key, data, rv.Elem())
		return
	}
	if d.unmarshal(key, data, rv) {
		return
	}
	switch rv.Kind() {
	case reflect.Struct:
		d.table(key, data, rv)
	case reflect.Map:
		d.entries(key, data, rv)
	case reflect.Slice:
		d.array(key, data, rv)
	default:
		d.plain(key, data, rv)
	}
}

// unmarshal lets a type read its own value. Text goes to UnmarshalText, and so do integers if the type is one: a port
// is 443, not "443".
func (d *decoder) unmarshal(key string, data any, rv reflect.Value) bool {
	var err error
	switch u := rv.Addr().Interface().(type) {
	case tomlUnmarshaler:
		err = u.UnmarshalTOML(data)
	case encoding.TextUnmarshaler:
		text, ok := textFor(data, rv.Kind())
		if !ok && isTable(data) && rv.Kind() == reflect.Struct && len(fieldNames(rv.Type())) > 0 {
			return false
		}
		if !ok {
			d.mismatch(key, data, rv.Type())
			return true
		}
		err = u.UnmarshalText([]byte(text))
	default:
		return false
	}
	if err != nil {
		d.reject(key, data, err)
		return true
	}
	d.inRange(key, data, rv)
	return true
}

// textFor returns the text that a value of kind is read from.
func textFor(data any, kind reflect.Kind) (string, bool) {
	unsigned := kind >= reflect.Uint && kind <= reflect.Uint64
	switch v := data.(type) {
	case string:
		return v, !unsigned
	case int64:
		return strconv.FormatInt(v, 10), unsigned || kind >= reflect.Int && kind <= reflect.Int64
	}
	return "", false
}

// reject records that a type refused its value. Its message may quote what must not be shown.
func (d *decoder) reject(key string, data any, err error) {
	text := errorText(key, data)
	if text == redacted && !hidden(key) {
		d.add(key, text, "the value looks like a secret, and is not what belongs here")
		return
	}
	d.add(key, text, "%s", err).Err = err
}

func (d *decoder) mismatch(key string, data any, t reflect.Type) {
	e := d.add(key, errorText(key, data), "want %s, not %s", typeName(t), kindName(data))
	if _, ok := data.(time.Time); ok {
		e.Hint = "put the time in quotes"
	}
}

func isTable(data any) bool { _, ok := data.(map[string]any); return ok }

// table decodes into a struct.
func (d *decoder) table(key string, data any, rv reflect.Value) {
	tree, ok := data.(map[string]any)
	if !ok {
		d.mismatch(key, data, rv.Type())
		return
	}
	for _, name := range sortedKeys(tree) {
		field, ok := fieldNamed(rv, name)
		if !ok {
			d.unknown(key, name, tree[name], rv.Type())
			continue
		}
		d.value(joinKey(key, name), tree[name], field)
	}
}

func (d *decoder) unknown(table, name string, data any, t reflect.Type) {
	key := joinKey(table, name)
	e := d.add(key, errorText(key, data), "unknown key")
	names := fieldNames(t)
	if e.Near = nearest(strings.ToLower(name), names); e.Near == "" {
		e.Near = otherTable(name)
	}
	if e.Near == "" {
		e.Hint = "the keys here are " + strings.Join(names, ", ")
	}
}

func (d *decoder) entries(key string, data any, rv reflect.Value) {
	tree, ok := data.(map[string]any)
	if !ok {
		d.mismatch(key, data, rv.Type())
		return
	}
	rv.Set(reflect.MakeMapWithSize(rv.Type(), len(tree)))
	for _, name := range sortedKeys(tree) {
		elem := reflect.New(rv.Type().Elem()).Elem()
		d.value(joinKey(key, name), tree[name], elem)
		rv.SetMapIndex(reflect.ValueOf(name), elem)
	}
}

func (d *decoder) array(key string, data any, rv reflect.Value) {
	list, ok := elements(data)
	if !ok {
		d.mismatch(key, data, rv.Type())
		return
	}
	rv.Set(reflect.MakeSlice(rv.Type(), len(list), len(list)))
	for i, elem := range list {
		d.value(indexKey(key, i), elem, rv.Index(i))
	}
}

// elements returns the elements of an array, be they tables with headers of their own or values.
func elements(data any) ([]any, bool) {
	if tables, ok := data.([]map[string]any); ok {
		list := make([]any, len(tables))
		for i, t := range tables {
			list[i] = t
		}
		return list, true
	}
	list, ok := data.([]any)
	return list, ok
}

// plain decodes a value without a type of its own.
func (d *decoder) plain(key string, data any, rv reflect.Value) {
	ok := false
	switch rv.Kind() {
	case reflect.Bool:
		var v bool
		if v, ok = data.(bool); ok {
			rv.SetBool(v)
		}
	case reflect.String:
		var v string
		if v, ok = data.(string); ok {
			rv.SetString(v)
		}
	case reflect.Int, reflect.Int64:
		var v int64
		if v, ok = data.(int64); ok && !rv.OverflowInt(v) {
			rv.SetInt(v)
		}
	case reflect.Float64:
		var v float64
		if v, ok = finite(data); ok {
			rv.SetFloat(v)
		}
	default:
		panic(fmt.Sprintf("BUG: %s has type %s", key, rv.Type()))
	}
	if !ok {
		d.mismatch(key, data, rv.Type())
		return
	}
	d.inRange(key, data, rv)
}

func finite(data any) (float64, bool) {
	switch v := data.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

// inRange checks what the table of keys says about explicit values.
func (d *decoder) inRange(key string, data any, rv reflect.Value) {
	info := infoOf(key)
	if rv.Kind() == reflect.String && info.words != "" {
		if words := strings.Fields(info.words); !slices.Contains(words, rv.String()) {
			wrongWord(&d.faults, key, errorText(key, data), rv.String(), words)
		}
	}
	if n, ok := number(rv); ok && info.positive && n < 1 {
		d.add(key, errorText(key, data), "want a number above zero").Hint = "remove the key for the default"
	} else if ok && n < 0 && !info.signed {
		d.add(key, errorText(key, data), "want zero or more")
	}
}

func wrongWord(f *faults, key, text, word string, words []string) {
	e := f.add(key, text, "want %s", quotedList(words, "or"))
	e.Near = nearest(word, words)
}

func number(rv reflect.Value) (float64, bool) {
	switch {
	case rv.CanInt():
		return float64(rv.Int()), true
	case rv.CanFloat():
		return rv.Float(), true
	}
	return 0, false
}

// fieldNamed returns the field of a struct with this TOML name.
func fieldNamed(rv reflect.Value, name string) (reflect.Value, bool) {
	t := rv.Type()
	for i := range t.NumField() {
		if tomlName(t.Field(i)) == name && name != "" {
			return rv.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := tomlName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// tomlName returns the key that a field is read from, or "".
func tomlName(f reflect.StructField) string {
	if name := f.Tag.Get("toml"); name != "-" {
		return name
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
