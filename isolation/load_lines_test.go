package isolation

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyLines(t *testing.T) {
	text := `version = 1 # one
"quoted \"key\"" = 2
'literal' = 3
dotted.key.here = 4
list = [ # comment ] "
  "a", 'b',
  { x = 1,
    y = 2 },
]
text = """
[not.a.table] """"
raw = '''
x = 1
'''

[table]
  a = {b.c = 1, d = [1, 2]}
[ spaced . "name" ]
k = true
[[array]]
one = 1
[[array]]
two = 2
[array.sub]
three = 3
[[array.deep]]
four = 2026-01-01T00:00:00Z
`
	want := map[string]int{
		"version": 1, `"quoted \"key\""`: 2, "literal": 3, "dotted": 4, "dotted.key": 4, "dotted.key.here": 4,
		"list": 5, "list[0]": 6, "list[1]": 6, "list[2]": 7, "list[2].x": 7, "list[2].y": 8,
		"text": 10, "raw": 12, "table": 16, "table.a": 17, "table.a.b": 17, "table.a.b.c": 17, "table.a.d": 17, "table.a.d[0]": 17, "table.a.d[1]": 17,
		"spaced": 18, "spaced.name": 18, "spaced.name.k": 19,
		"array": 20, "array[0]": 20, "array[0].one": 21, "array[1]": 22, "array[1].two": 23,
		"array[1].sub": 24, "array[1].sub.three": 25, "array[1].deep": 26, "array[1].deep[0]": 26, "array[1].deep[0].four": 27,
	}
	for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text} {
		got, deep := keyLines(text)
		assert.Equal(t, want, got)
		assert.Zero(t, deep)
	}
}

func TestKeyLinesEndsWhereItGetsDeep(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("a.", maxNesting) + "a = 1", "[" + strings.Repeat("a.", maxNesting) + "a]",
		"a = " + strings.Repeat("[", maxNesting+1), "a = " + strings.Repeat("{a = ", maxNesting+1),
	} {
		_, deep := keyLines("version = 1\n" + text)
		assert.Equal(t, 2, deep, text)
		_, err := Parse("p.toml", []byte("version = 1\n"+text))
		assert.EqualError(t, err, "p.toml:2: nested deeper than 32")
	}
	_, deep := keyLines("a = " + strings.Repeat("[", maxNesting-1) + strings.Repeat("]", maxNesting-1))
	assert.Zero(t, deep)
	_, err := Inspect("no-network", "a="+strings.Repeat("[", maxNesting+1))
	assert.ErrorContains(t, err, "nested deeper than 32")
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`a`: "a", `\"\\`: `"\`, `\n\t\b\f\r\e`: "\n\t\b\f\r\x1b", `\u00e9\U0001F600`: "é😀", `\x41`: "A", `x\`: `x\`, `\u12`: "\x12"} {
		assert.Equal(t, want, unescape(in), in)
	}
}

func TestParentKey(t *testing.T) {
	for key, want := range map[string]string{"a": "", "a.b": "a", "a[0]": "a", "a[0].b": "a[0]", `a."b.c"`: "a", `a."b\".c"`: "a", `a."\\".c`: `a."\\"`, `"a.b"`: "", "": ""} {
		assert.Equal(t, want, parentKey(key), key)
	}
}

// FuzzKeyLines: for a text that the TOML library accepts, every key that it reads has a line.
func FuzzKeyLines(f *testing.F) {
	for _, tt := range policyErrors {
		f.Add(tt.policy)
	}
	for _, text := range []string{Starter, "a = [[1], [{b=2}]]", "a.b.c = {}\n[a.b.d]\n", "[[a]]\n[[a.b]]\n[[a]]\n[[a.b]]\nc=1", "a='''\n''''\nb=1", "\"\\u0061\" = 1", "a=\"\"\"\\\n  x\\\"\"\"\"\"\nb=2", "\"\" = 1", "a = {\n b = 1,\n # }\n c = [\n]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, deep := keyLines(text)
		last := strings.Count(text, "\n") + 1
		for key, line := range lines {
			require.True(t, line >= 1 && line <= last, "%s at %d of %d", key, line, last)
		}
		if deep > 0 {
			return
		}
		var tree map[string]any
		if _, err := toml.Decode(text, &tree); err == nil {
			requireLines(t, lines, "", tree)
		}
	})
}

func requireLines(t *testing.T, lines map[string]int, key string, data any) {
	if key != "" {
		require.Contains(t, lines, key)
	}
	if tree, ok := data.(map[string]any); ok {
		for name, value := range tree {
			requireLines(t, lines, joinKey(key, name), value)
		}
	}
	if list, ok := elements(data); ok {
		for i, elem := range list {
			requireLines(t, lines, indexKey(key, i), elem)
		}
	}
}
