package model

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestPieces(t *testing.T) {
	tests := []struct {
		text string
		size int
		want []string
	}{
		{"", 3, nil},
		{"abcdef", 4, []string{"abcd", "ef"}},
		{"äöü", 3, []string{"ä", "ö", "ü"}},
		{"€", 1, []string{"€"}},
		{"a€b", 2, []string{"a", "€", "b"}},
		{"\x80\x80", 1, []string{"\x80", "\x80"}},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, pieces(tt.text, tt.size), "%q by %d", tt.text, tt.size)
	}
	long := pieces(strings.Repeat("€", 1<<20), 0)
	assert.LessOrEqual(t, len(long), 258, "a long text does not come in a million events")
	for _, p := range long {
		assert.True(t, utf8.ValidString(p))
	}
}

func TestAnswerCut(t *testing.T) {
	turn := Turn{Blocks: []Block{{Type: "text", Text: "äbc"}, {Type: "text", Text: "def"}}, ChunkBytes: 2}
	for cut, want := range map[int]string{
		-1: "äbcdef", 0: "", 1: "", 2: "ä", 3: "äb", 4: "äbc", 5: "äbcd", 7: "äbcdef", 99: "äbcdef",
	} {
		text, stops := "", 0
		for e := range (answer{turn: turn, cut: cut}).events() {
			switch e.name {
			case "content_block_delta":
				text += e.data.(object)["delta"].(object)["text"].(string)
			case "content_block_stop", "message_stop":
				stops++
			}
		}
		assert.Equal(t, want, text, "cut %d", cut)
		assert.Equal(t, cut < 0, stops == 3, "cut %d", cut)
	}
}
