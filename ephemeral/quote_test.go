package ephemeral

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuoteName(t *testing.T) {
	for name, want := range map[string]string{
		"plain":        "plain",
		"with space":   "with space",
		"tab\t":        `"tab\t"`,
		"new\nline":    `"new\nline"`,
		"q\"b\\":       `"q\"b\\"`,
		"\a\b\v\f\r":   `"\a\b\v\f\r"`,
		"\x01\x7f\xff": `"\001\177\377"`,
		"ü":            `"\303\274"`,
		"end /slash":   `"end /slash"`,
	} {
		assert.Equal(t, want, quoteName(name))
	}
	assert.Equal(t, "a b\t", labelName("a b"))
	assert.Equal(t, `"a \n"`, labelName("a \n"))
}

// unquoteName is the reader's side, after unquote_c_style in git's quote.c.
func unquoteName(t *testing.T, quoted string) string {
	inner, ok := strings.CutPrefix(quoted, `"`)
	if !ok {
		return quoted
	}
	inner, ok = strings.CutSuffix(inner, `"`)
	require.True(t, ok)
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		require.True(t, inner[i] >= ' ' && inner[i] < 0x7f && inner[i] != '"', quoted)
		if inner[i] != '\\' {
			b.WriteByte(inner[i])
			continue
		}
		i++
		if at := strings.IndexByte("abtnvfr", inner[i]); at >= 0 {
			b.WriteByte('\a' + byte(at))
		} else if strings.IndexByte(`"\`, inner[i]) >= 0 {
			b.WriteByte(inner[i])
		} else {
			n, err := strconv.ParseUint(inner[i:i+3], 8, 8)
			require.NoError(t, err)
			b.WriteByte(byte(n))
			i += 2
		}
	}
	return b.String()
}

func FuzzQuoteName(f *testing.F) {
	for _, seed := range []string{"a b", "\x00\xff\"\\", "ü\n", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		assert.Equal(t, name, unquoteName(t, quoteName(name)))
	})
}

func TestGitRefuses(t *testing.T) {
	for path, want := range map[string]bool{
		".git/config": true, "sub/.git/x": true, "sub/.git": true, ".GIT/x": true, "git~1/x": true, ".git. /x": true,
		".git::$INDEX_ALLOCATION/x": true, ".gitignore": false, "a.git/x": false, "git": false, ".gitmodules": false,
	} {
		assert.Equal(t, want, gitRefuses(path, false), path)
	}
	assert.True(t, gitRefuses("sub/.gitmodules", true))
}
