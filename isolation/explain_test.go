package isolation

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplainThePresets(t *testing.T) {
	for _, name := range Presets() {
		cfg, err := Inspect(name)
		require.NoError(t, err)
		golden(t, "explain/"+name+".txt", Explain(cfg))
	}
}

const everyKey = `version = 1
description = "every key that explain has words for"
include_host_env = true
pass_env = ["GITHUB_TOKEN"]
api_key = "sk-ant-api03-secret"
[env]
B = "2"
A = "sk-ant-api03-secret"
[network_policy]
allowed_domains = ["a.test", "*.b.test"]
denied_domains = ["bad.b.test"]
allowed_ports = [443, 8443]
allow_resolved = ["10.0.0.0/8"]
hosts = { "db.a.test" = "10.0.0.1" }
[sandbox]
writable_paths = ["../cache"]
readable_paths = ["/opt/tools"]
hidden_paths = ["/opt/tools/keys"]
protected_paths = []
agent_sandbox = "on"
[limits]
memory = "4GiB"
[workspace]
mode = "bind"
[agent]
allowed_tools = []
disallowed_tools = ["WebFetch"]
[agent.permissions]
[[credentials]]
name = "github"
source = { env = "GITHUB_TOKEN" }
hosts = ["api.github.com"]
header = "Authorization: Bearer {secret}"
[model]
source = "script"
path = "turns.toml"
`

func TestExplainEveryKey(t *testing.T) {
	cfg, err := inspectText("every.toml", []byte(everyKey))
	require.NoError(t, err)
	golden(t, "explain/every.txt", Explain(cfg))
	assert.NotContains(t, Explain(cfg), "sk-ant")
	assert.Contains(t, Explain(&Config{}), "No host can be reached")
}

func TestSchema(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	golden(t, "schema.json", string(text))
}

// The schema accepts what Load accepts: the presets, the starter, a policy with every key.
func TestSchemaAcceptsPolicies(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	var root map[string]any
	require.NoError(t, json.Unmarshal(text, &root))
	policies := []string{Starter, everyKey}
	for _, name := range Presets() {
		preset, err := PresetText(name)
		require.NoError(t, err)
		policies = append(policies, string(preset))
	}
	for _, policy := range policies {
		var tree map[string]any
		_, err := toml.Decode(policy, &tree)
		require.NoError(t, err)
		assert.Empty(t, violations("", root, asJSON(t, tree)), policy)
	}
	for policy, want := range map[string]string{
		"": ": version is missing", "version = 2": "version: not 1", "version = 1\nx = 1": "x: unknown", "version = 1\nlimits.pids = 0": "limits.pids: below 1",
		"version = 1\nworkspace.mode = \"x\"": "workspace.mode: not a word", "version = 1\nlimits.memory = \"1GB\"": "limits.memory: 0 of 2 match",
		"version = 1\napi_key = { env = \"A\", file = \"b\" }": "api_key: 0 of 2 match", "version = 1\npass_env = [1]": "pass_env[]: not a string",
	} {
		var tree map[string]any
		_, err := toml.Decode(policy, &tree)
		require.NoError(t, err)
		assert.Equal(t, []string{want}, violations("", root, asJSON(t, tree)))
	}
}

func asJSON(t *testing.T, v any) any {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// violations is as much of a JSON Schema validator as Schema needs.
func violations(key string, s map[string]any, v any) []string {
	if one, ok := s["oneOf"].([]any); ok {
		matches := 0
		for _, alt := range one {
			if len(violations(key, alt.(map[string]any), v)) == 0 {
				matches++
			}
		}
		if matches != 1 {
			return []string{key + ": 0 of 2 match"}
		}
		return nil
	}
	switch s["type"] {
	case "object":
		return objectViolations(key, s, v)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return []string{key + ": not an array"}
		}
		var all []string
		for _, elem := range list {
			all = append(all, violations(key+"[]", s["items"].(map[string]any), elem)...)
		}
		return all
	}
	return scalarViolations(key, s, v)
}

func objectViolations(key string, s map[string]any, v any) []string {
	tree, ok := v.(map[string]any)
	if !ok {
		return []string{key + ": not an object"}
	}
	var all []string
	if required, ok := s["required"].([]any); ok && tree[required[0].(string)] == nil {
		all = append(all, key+": "+required[0].(string)+" is missing")
	}
	if most, ok := s["maxProperties"].(float64); ok && len(tree) > int(most) {
		all = append(all, key+": too many")
	}
	properties, _ := s["properties"].(map[string]any)
	for name, value := range tree {
		if p, ok := properties[name].(map[string]any); ok {
			all = append(all, violations(joinKey(key, name), p, value)...)
		} else if more, ok := s["additionalProperties"].(map[string]any); ok {
			all = append(all, violations(joinKey(key, name), more, value)...)
		} else {
			all = append(all, joinKey(key, name)+": unknown")
		}
	}
	return all
}

func scalarViolations(key string, s map[string]any, v any) []string {
	kinds := map[string]reflect.Kind{"string": reflect.String, "boolean": reflect.Bool, "integer": reflect.Float64, "number": reflect.Float64}
	if reflect.TypeOf(v).Kind() != kinds[s["type"].(string)] {
		return []string{key + ": not a " + s["type"].(string)}
	}
	n, _ := v.(float64)
	text, _ := v.(string)
	switch {
	case s["const"] != nil && s["const"] != v:
		return []string{key + ": not 1"}
	case s["minimum"] != nil && n < s["minimum"].(float64):
		return []string{key + ": below 1"}
	case s["pattern"] != nil && !regexp.MustCompile(s["pattern"].(string)).MatchString(text):
		return []string{key + ": does not match"}
	case s["enum"] != nil && !assert.ObjectsAreEqual(true, contains(s["enum"].([]any), v)):
		return []string{key + ": not a word"}
	}
	return nil
}

func contains(list []any, v any) bool {
	for _, elem := range list {
		if elem == v {
			return true
		}
	}
	return false
}
