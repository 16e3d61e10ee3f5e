package ephemeral

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHunks(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"same":        {"a\n", "a\n", ""},
		"create":      {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		"remove":      {"a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"in between":  {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"newline won": {"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"no newline":  {"a\nb", "A\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"},
		"two hunks": {
			"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n",
			"@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+nine\n",
		},
		"one hunk": {
			"1\n2\n3\n4\n5\n6\n7\n8\n", "one\n2\n3\n4\n5\n6\n7\neight\n",
			"@@ -1,8 +1,8 @@\n-1\n+one\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+eight\n",
		},
		"minimal": {"a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, writeHunks(&out, []byte(c.before), []byte(c.after)))
			assert.Equal(t, c.after, applyHunks(t, c.before, out.String()))
			if name == "minimal" { // the example of Myers' paper, figure 2
				assert.Equal(t, 5, strings.Count("\n"+out.String(), "\n-")+strings.Count("\n"+out.String(), "\n+"))
				return
			}
			assert.Equal(t, c.want, out.String())
		})
	}
}

// applyHunks is what patch(1) does, without fuzz: every line of context and every removed line must be there.
func applyHunks(t testing.TB, before, hunks string) string {
	var out strings.Builder
	old, at := strings.SplitAfter(before, "\n"), 0
	take := func() string {
		require.Less(t, at, len(old), hunks)
		at++
		return old[at-1]
	}
	lines := strings.SplitAfter(hunks, "\n")
	for i, line := range lines {
		body, noNewline := strings.TrimPrefix(line, ""), i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\")
		if len(line) > 0 {
			body = line[1:]
		}
		if noNewline {
			body = strings.TrimSuffix(body, "\n")
		}
		switch {
		case line == "" || line[0] == '\\':
		case line[0] == '@':
			start, count := oldRange(t, line)
			if count > 0 {
				start--
			}
			for at < start {
				out.WriteString(take())
			}
			require.Equal(t, start, at, "hunks in order")
		case line[0] == '+':
			out.WriteString(body)
		default:
			require.Equal(t, take(), body)
			if line[0] == ' ' {
				out.WriteString(body)
			}
		}
	}
	for at < len(old) {
		out.WriteString(take())
	}
	return out.String()
}

func oldRange(t testing.TB, header string) (start, count int) {
	field := strings.TrimPrefix(strings.Fields(header)[1], "-")
	first, length, found := strings.Cut(field, ",")
	start, err := strconv.Atoi(first)
	require.NoError(t, err)
	if !found {
		return start, 1
	}
	count, err = strconv.Atoi(length)
	require.NoError(t, err)
	return start, count
}

func FuzzHunks(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte("b\nc"))
	f.Add([]byte("x\nx\nx\ny\nx\n"), []byte("x\ny\nx\nx\n\n"))
	f.Add([]byte(""), []byte("\r\n\x00"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		var out bytes.Buffer
		require.NoError(t, writeHunks(&out, before, after))
		assert.Equal(t, string(after), applyHunks(t, string(before), out.String()))
	})
}

// The edit script gives the new sequence, and is as short as the textbook's quadratic table says.
func TestDiffIsShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		a, b := randomSequence(r), randomSequence(r)
		e := diffLines(a, b, diffBudget)
		edits, kept := 0, []int32{}
		for i, gone := range e.gone {
			if gone {
				edits++
			} else {
				kept = append(kept, a[i])
			}
		}
		for j, added := range e.added {
			if added {
				edits++
				continue
			}
			require.NotEmpty(t, kept)
			require.Equal(t, kept[0], b[j])
			kept = kept[1:]
		}
		require.Empty(t, kept)
		require.Equal(t, len(a)+len(b)-2*commonLength(a, b), edits, "%v %v", a, b)
	}
}

func randomSequence(r *rand.Rand) []int32 {
	s := make([]int32, r.IntN(25))
	for i := range s {
		s[i] = r.Int32N(5)
	}
	return s
}

func commonLength(a, b []int32) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// What would take too long or too much memory shows as replaced, and is right all the same.
func TestHunksOfHugeTexts(t *testing.T) {
	t.Run("all different", func(t *testing.T) {
		var a, b strings.Builder
		for i := range 60_000 {
			fmt.Fprintln(&a, "old", i%30_000)
			fmt.Fprintln(&b, "new", i, i%7)
		}
		var out bytes.Buffer
		require.NoError(t, writeHunks(&out, []byte(a.String()), []byte(b.String())))
		assert.Equal(t, b.String(), applyHunks(t, a.String(), out.String()))
	})
	t.Run("too many lines", func(t *testing.T) {
		a := "head\n1\n2\n3\n" + strings.Repeat("\n", maxDiffLines) + "tail\n"
		b := "head\n1\n2\n3\nx\n" + strings.Repeat("y\n", maxDiffLines) + "tail\n"
		var out bytes.Buffer
		require.NoError(t, writeHunks(&out, []byte(a), []byte(b)))
		assert.Equal(t, 1, strings.Count(out.String(), "@@ -"))
		assert.Equal(t, b, applyHunks(t, a, out.String()))
	})
	t.Run("one line in many", func(t *testing.T) {
		a := strings.Repeat("line\n", 1_000_000)
		b := a[:len(a)/2] + "new\n" + a[len(a)/2:]
		var out bytes.Buffer
		require.NoError(t, writeHunks(&out, []byte(a), []byte(b)))
		assert.Less(t, out.Len(), 100)
		assert.Equal(t, b, applyHunks(t, a, out.String()))
	})
}

func BenchmarkDiffRewrittenFile(b *testing.B) {
	var old, rewritten strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&old, "old", i)
		fmt.Fprintln(&rewritten, "new", i)
	}
	for b.Loop() {
		if err := writeHunks(new(bytes.Buffer), []byte(old.String()), []byte(rewritten.String())); err != nil {
			b.Fatal(err)
		}
	}
}
