package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// notInForce compares a settings file with what the CLI says it goes by, and names the keys of want that have does
// not hold as they are. Lists may hold more: the CLI joins those of several files. Values are not named, they may be
// secret.
func notInForce(want, have json.RawMessage) ([]string, error) {
	var w, h any
	if err := json.Unmarshal(want, &w); err != nil {
		return nil, fmt.Errorf("parse settings: %w", err)
	}
	if err := json.Unmarshal(have, &h); err != nil {
		return nil, fmt.Errorf("parse effective settings: %w", err)
	}
	return missing("", w, h), nil
}

func missing(path string, want, have any) []string {
	switch want := want.(type) {
	case map[string]any:
		return missingKeys(path, want, have)
	case []any:
		return missingItems(path, want, have)
	}
	if want == have {
		return nil
	}
	return []string{path}
}

func missingKeys(path string, want map[string]any, have any) []string {
	object, ok := have.(map[string]any)
	if !ok {
		return []string{path}
	}
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		under := key
		if path != "" {
			under = path + "." + key
		}
		lost = append(lost, missing(under, want[key], object[key])...)
	}
	return lost
}

func missingItems(path string, want []any, have any) []string {
	list, ok := have.([]any)
	for _, item := range want {
		if !slices.ContainsFunc(list, func(x any) bool { return reflect.DeepEqual(item, x) }) {
			ok = false
		}
	}
	if ok {
		return nil
	}
	return []string{path}
}
