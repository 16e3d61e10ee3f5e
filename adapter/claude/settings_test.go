package claude

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNotInForce(t *testing.T) {
	for _, tt := range []struct {
		want, have string
		lost       []string
	}{
		{`{}`, `{}`, nil},
		{`{}`, `{"a":1}`, nil},
		{`{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[0,{"c":2},1],"x":1},"y":2}`, nil},
		{`{"a":null}`, `{}`, nil},
		{`{"a":[]}`, `{}`, []string{"a"}},
		{`{"a":true}`, `{"a":"true"}`, []string{"a"}},
		{`{"a":1}`, `{"a":{}}`, []string{"a"}},
		{`{"a":{"b":1}}`, `{"a":[]}`, []string{"a"}},
		{`{"a":[1]}`, `{"a":{"0":1}}`, []string{"a"}},
		{`{"z":1,"a":{"b":1,"c":[2]}}`, `{"a":{"c":[[2]]}}`, []string{"a.b", "a.c", "z"}},
	} {
		lost, err := notInForce(json.RawMessage(tt.want), json.RawMessage(tt.have))
		assert.NoError(t, err)
		assert.Equal(t, tt.lost, lost, "%s in %s", tt.want, tt.have)
	}
	_, err := notInForce(json.RawMessage(`{}`), nil)
	assert.Error(t, err)
	_, err = notInForce(json.RawMessage(`{`), json.RawMessage(`{}`))
	assert.Error(t, err)
}

func TestCheckVersion(t *testing.T) {
	for _, ok := range []string{"2.1.219", "2.1.329", "2.1.1000", "2.2.0", "3.0.0", "2.1.400 (Claude Code)", "2.1.219-beta"} {
		assert.NoError(t, checkVersion(ok), ok)
	}
	for _, bad := range []string{"2.1.218", "2.0.999", "1.9.999", "", "2.1", "x", "v2.1.329"} {
		assert.Error(t, checkVersion(bad), bad)
	}
}
