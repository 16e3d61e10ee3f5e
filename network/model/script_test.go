package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ptrTo[T any](v T) *T { return &v }

func TestLoadScript(t *testing.T) {
	s, err := LoadScript("testdata/everything.json")
	require.NoError(t, err)
	assert.Equal(t, &Script{
		File:        "testdata/everything.json",
		Description: "every key there is, in JSON",
		Turns: []Turn{{
			Line: 4,
			Blocks: []Block{
				{Type: "thinking", Text: "Two tools, with a word between.", Signature: "c2ln"},
				{Type: "tool_use", Name: "Read", Input: json.RawMessage(`{"file_path":"ä.txt","limit":10}`), ID: "toolu_mine"},
				{Type: "text", Text: "And <now> & then:"},
				{Type: "tool_use", Name: "Bash", Input: json.RawMessage(`{}`)},
			},
			Usage:      Usage{Input: ptrTo(1), Output: ptrTo(2), CacheRead: ptrTo(3), CacheWrite: ptrTo(4)},
			ChunkBytes: 10,
		}, {
			Line:   15,
			Expect: Expect{Contains: []string{"a", "b"}, Lacks: []string{"c"}},
			Error: &Failure{
				Status: 529, Type: "overloaded_error", Message: "Overloaded",
				RetryAfter: time.Second, Retry: ptrTo(true), Repeat: 2,
			},
			Blocks:     []Block{{Type: "text", Text: "grüße, einmal unterbrochen"}},
			Cut:        ptrTo(4),
			StopReason: "max_tokens",
		}, {
			Line:   23,
			Agent:  "helper",
			Blocks: []Block{{Type: "thinking"}, {Type: "text"}},
		}, {
			Line:   24,
			Blocks: []Block{},
		}},
	}, s)
}

func TestLoadScriptExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		_, err := LoadScript(f)
		assert.NoError(t, err)
	}
	_, err = LoadScript("testdata/absent.toml")
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "read script: open testdata/absent.toml")
}

func TestParseScriptDefaults(t *testing.T) {
	tests := []struct {
		name, turn string
		want       Turn
	}{
		{"order of the short form", `
			tools = [{ name = "Bash" }]
			text = "b"
			thinking = "a"`,
			Turn{Blocks: []Block{{Type: "thinking", Text: "a"}, {Type: "text", Text: "b"}, {Type: "tool_use", Name: "Bash", Input: json.RawMessage("{}")}}}},
		{"an overload comes once", `error = { status = 529 }`,
			Turn{Error: &Failure{Status: 529, Type: "overloaded_error", Message: "scripted overloaded_error", Repeat: 1}}},
		{"a rate limit comes once", `error = { status = 429, retry_after = 3 }`,
			Turn{Error: &Failure{Status: 429, Type: "rate_limit_error", Message: "scripted rate_limit_error", RetryAfter: 3 * time.Second, Repeat: 1}}},
		{"a bad request stays one", `error = { status = 400, message = "no" }`,
			Turn{Error: &Failure{Status: 400, Type: "invalid_request_error", Message: "no"}}},
		{"unless content follows", "error = { status = 400, message = \"no\" }\ntext = \"yes\"",
			Turn{Error: &Failure{Status: 400, Type: "invalid_request_error", Message: "no", Repeat: 1}, Blocks: []Block{{Type: "text", Text: "yes"}}}},
		{"one string to expect", "expect = { contains = \"x\" }\nblocks = []", Turn{Expect: Expect{Contains: []string{"x"}}, Blocks: []Block{}}},
		{"input is JSON", "[[turns.tools]]\nname = \"T\"\ninput = { b = [1, 2.5, true], a = { c = \"<x>\" } }",
			Turn{Blocks: []Block{{Type: "tool_use", Name: "T", Input: json.RawMessage(`{"a":{"c":"<x>"},"b":[1,2.5,true]}`)}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseScript("x.toml", []byte("[[turns]]\n"+tt.turn))
			require.NoError(t, err)
			tt.want.Line = 1
			assert.Equal(t, []Turn{tt.want}, s.Turns)
		})
	}
}

func TestParseScriptErrors(t *testing.T) {
	tests := []struct {
		name, file, data, want string
	}{
		{"empty", "x.toml", "", `script x.toml: no turns: a script needs at least one [[turns]]`},
		{"only a comment", "x.toml", "# nothing\n", `script x.toml: no turns: a script needs at least one [[turns]]`},
		{"no turns in JSON", "x.json", `{"turns": []}`, `script x.json: no turns: a script needs at least one [[turns]]`},
		{"empty JSON", "x.json", "", `script x.json:1: not JSON: the text ends too early`},
		{"not a table", "x.json", `[]`, `script x.json:1: a list is not a table`},

		{"misspelt at the top", "x.toml", "[[turn]]\ntext = 'a'\n", `script x.toml:1: turn: unknown key; did you mean "turns"?`},
		{"misspelt in a turn", "x.toml", "[[turns]]\ntext = 'a'\n\n[[turns]]\ntxet = 'b'\n", `script x.toml:5: turn 2: txet: unknown key; did you mean "text"?`},
		{"unlike any key", "x.toml", "[[turns]]\ntext = 'a'\nexpect = { regexp = 'x' }", `script x.toml:3: turn 1: expect: regexp: unknown key; known here: contains, lacks`},
		{"misspelt in a tool", "x.toml", "[[turns]]\n[[turns.tools]]\nname = 'a'\n[[turns.tools]]\nname = 'a'\ninputs = {}", `script x.toml:6: turn 1: tools 2: inputs: unknown key; did you mean "input"?`},
		{"misspelt in JSON", "x.json", "{\"turns\": [\n{\"text\": \"a\"},\n{\"text\": \"b\",\n\"dealy\": \"1s\"}]}", `script x.json:4: turn 2: dealy: unknown key; did you mean "delay"?`},
		{"a key of another block", "x.toml", "[[turns]]\nblocks = [{ type = 'text', text = 'a', name = 'b' }]", `script x.toml:2: turn 1: blocks 1: name: unknown key; known here: type, text`},

		{"a number for a string", "x.toml", "[[turns]]\ntext = 1", `script x.toml:2: turn 1: text: 1 is not a string`},
		{"a string for a number", "x.toml", "[[turns]]\ntext = ''\ncut = 'all'", `script x.toml:3: turn 1: cut: "all" is not a whole number`},
		{"a fraction for a number", "x.toml", "[[turns]]\ntext = ''\ncut = 1.5", `script x.toml:3: turn 1: cut: 1.5 is not a whole number`},
		{"a number out of range", "x.toml", "[[turns]]\ntext = ''\nchunk_bytes = 0", `script x.toml:3: turn 1: chunk_bytes: 0 is not between 1 and 2147483647`},
		{"a table for a list", "x.toml", "[turns]\ntext = 'a'", `script x.toml:1: turns: a table is not a list`},
		{"a string for a table", "x.toml", "[[turns]]\nerror = 'overloaded'", `script x.toml:2: turn 1: error: "overloaded" is not a table`},
		{"a string for true", "x.toml", "[[turns]]\nerror = { status = 500, retry = 'no' }", `script x.toml:2: turn 1: error: retry: "no" is not true or false`},
		{"a bare duration", "x.toml", "[[turns]]\ntext = ''\ndelay = 200", `script x.toml:3: turn 1: delay: 200 is not a duration in quotes, such as "200ms"`},
		{"no duration", "x.toml", "[[turns]]\ntext = ''\ndelay = '2 parsecs'", `script x.toml:3: turn 1: delay: "2 parsecs" is not a duration such as "200ms" or "1.5s"`},
		{"a negative duration", "x.toml", "[[turns]]\ntext = ''\ndelay = '-1s'", `script x.toml:3: turn 1: delay: "-1s" is not a duration such as "200ms" or "1.5s"`},
		{"input as text", "x.toml", "[[turns]]\ntools = [{ name = 'Bash', input = 'ls' }]", `script x.toml:2: turn 1: tools 1: input: "ls" is not a table`},
		{"a date in input", "x.toml", "[[turns]]\ntools = [{ name = 'Bash', input = { a = 2026-01-01T00:00:00Z } }]", `script x.toml:2: turn 1: tools 1: input: a: 2026-01-01 00:00:00 +0000 UTC has no JSON form: put it in quotes`},
		{"infinity in input", "x.toml", "[[turns]]\ntools = [{ name = 'Bash', input = { a = [inf] } }]", `script x.toml:2: turn 1: tools 1: input: a 1: +Inf has no JSON form: put it in quotes`},

		{"says nothing", "x.toml", "[[turns]]\ndelay = '1s'", `script x.toml:1: turn 1: says nothing: give it text, tools, blocks or error (blocks = [] for an empty answer)`},
		{"both forms", "x.toml", "[[turns]]\ntext = ''\nblocks = []", `script x.toml:1: turn 1: text, thinking and tools cannot be mixed with blocks, which has the order`},
		{"cut of nothing", "x.toml", "[[turns]]\nerror = { status = 500 }\ncut = 1", `script x.toml:1: turn 1: cut has nothing to cut: the turn has no content`},
		{"a tool without a name", "x.toml", "[[turns]]\n[[turns.tools]]\ninput = {}", `script x.toml:2: turn 1: tools 1: needs the name of a tool`},
		{"a block without a type", "x.toml", "[[turns]]\nblocks = [{ text = 'a' }]", `script x.toml:2: turn 1: blocks 1: needs a type: "text", "thinking" or "tool_use"`},
		{"a type that is none", "x.toml", "[[turns]]\nblocks = [{ type = 'tooluse' }]", `script x.toml:2: turn 1: blocks 1: type: "tooluse" is not one of ["text" "thinking" "tool_use"]; did you mean "tool_use"?`},
		{"a stop reason that is none", "x.toml", "[[turns]]\ntext = ''\nstop_reason = 'endturn'", `script x.toml:3: turn 1: stop_reason: "endturn" is not one of ["end_turn" "tool_use" "max_tokens" "stop_sequence" "pause_turn" "refusal" "model_context_window_exceeded"]; did you mean "end_turn"?`},
		{"an error without a status", "x.toml", "[[turns]]\nerror = { message = 'x' }", `script x.toml:2: turn 1: error: needs a status, for example 529`},
		{"a status that is no error", "x.toml", "[[turns]]\nerror = { status = 200 }", `script x.toml:2: turn 1: error: status: 200 is not between 400 and 599`},

		{"lines after a long string", "x.toml", "[[turns]]\ntext = \"\"\"\n[[turns]]\nx = 1\n\"\"\"\n[[turns]]\ntest = 1", `script x.toml:7: turn 2: test: unknown key; did you mean "text"?`},
		{"a broken string", "x.toml", "[[turns]]\ntext = \"a\n", `script x.toml:2: not TOML: strings cannot contain newlines`},
		{"a key twice", "x.toml", "[[turns]]\ntext = ''\ntext = ''", `script x.toml:3: not TOML: Key 'turns.text' has already been defined`},
		{"a key twice in JSON", "x.json", "{\"turns\": [{\"text\": \"a\",\n\"text\": \"b\"}]}", `script x.json:2: turn 1: text: the key comes twice`},
		{"JSON that ends", "x.json", "{\"turns\":\n[{\"text\": \"a\"", `script x.json:2: not JSON: the text ends too early`},
		{"JSON with more after it", "x.toml", "{\"turns\": [{\"text\": \"a\"}]}\n{}", `script x.toml:2: not JSON: text after the closing brace`},
		{"broken JSON", "x.json", "{\"turns\":\n tru}", `script x.json:2: not JSON: invalid character '}' in literal true (expecting 'e')`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseScript(tt.file, []byte(tt.data))
			assert.Nil(t, s)
			var e *ScriptError
			require.ErrorAs(t, err, &e)
			assert.EqualError(t, err, tt.want)
			assert.Equal(t, tt.file, e.File)
		})
	}
}

func TestTOMLLines(t *testing.T) {
	text := `# [[turns]]
a = "[x]" # "
[[turns]]
'b' = """
c = 1
\""" d = 2""" # '''
e = '''f''' + "'''"
[[turns.tools]]
name = 1
[[turns.tools]]
name = 2
[[turns]]
[turns.expect]
contains = ""
[[turns.tools]]
name = 3
`
	lines := tomlLines(text)
	for path, want := range map[string]int{
		"a": 2, "turn 1": 3, "turn 1: b": 4, "turn 1: c": 3, "turn 1: e": 7,
		"turn 1: tools 1": 8, "turn 1: tools 1: name": 9, "turn 1: tools 2: name": 11,
		"turn 2": 12, "turn 2: expect": 13, "turn 2: expect: contains": 14, "turn 2: tools 1: name": 16,
		"turn 2: tools 1: input: deep: down": 15, "nowhere": 0,
	} {
		assert.Equal(t, want, lines.find(path), path)
	}
}
