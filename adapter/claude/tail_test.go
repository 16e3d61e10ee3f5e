package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"key sk-ant-api03-a_b-C9 end":            "key sk-ant-*** end",
		"ANTHROPIC_API_KEY=x FOO=bar baz":        "ANTHROPIC_API_KEY=*** FOO=*** baz",
		"authorization:  bearer abc.def\"":       "authorization:  bearer ***\"",
		`{"Authorization: Bearer tok"}`:          `{"Authorization: Bearer ***"}`,
		"lower=case stays, and so does sk-other": "lower=case stays, and so does sk-other",
	} {
		assert.Equal(t, want, Redact(in))
	}
}

func TestTail(t *testing.T) {
	var tail Tail
	assert.Empty(t, tail.String())
	fmt.Fprint(&tail, "starting with KEY=sec")
	fmt.Fprint(&tail, "ret\n")
	assert.Equal(t, "starting with KEY=***\n", tail.String(), "a secret in two writes")
}

func TestTailKeepsTheEnd(t *testing.T) {
	for _, size := range []int{1, 100, tailSize, 5 * tailSize} {
		var tail Tail
		text := strings.Repeat("noise ", 60000) + "TOKEN=abc" + strings.Repeat(" 0123456", 8191) + " end"
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			wrote, err := tail.Write([]byte(rest[:n]))
			assert.NoError(t, err)
			assert.Equal(t, n, wrote)
			rest = rest[n:]
		}
		got := tail.String()
		assert.LessOrEqual(t, len(got), tailSize)
		assert.Greater(t, len(got), tailSize-100)
		assert.True(t, strings.HasSuffix(got, " 0123456 end"))
		assert.NotContains(t, got, "abc", "the cut goes through a secret")
	}
}

func TestTailWithoutBlanks(t *testing.T) {
	var tail Tail
	tail.Write([]byte(strings.Repeat("x", 3*tailSize)))
	assert.Len(t, tail.String(), tailSize-4096)
}
