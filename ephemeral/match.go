package ephemeral

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Patterns are a parsed list of protected_paths.
type Patterns struct {
	list     []pattern
	defaults bool // "default" was in the list
}

// pattern matches paths name by name; "**" stands for any number of names.
type pattern struct {
	text  string
	names []string
}

// ParsePatterns parses patterns. One without a slash matches a name at any depth; one with a slash, except at its end,
// matches from the top. Names may hold *, ? and [] as in path.Match, and a whole name may be **. A pattern covers what it
// matches and everything below. Letters match in either case, because the host's file system may think so too. The
// element "default" stands for DefaultProtected.
func ParsePatterns(texts []string) (Patterns, error) {
	var ps Patterns
	for _, text := range texts {
		if text == "default" {
			ps.defaults = true
			ps.list = append(ps.list, defaultProtected...)
			continue
		}
		p, err := parsePattern(text)
		if err != nil {
			return Patterns{}, err
		}
		ps.list = append(ps.list, p)
	}
	return ps, nil
}

// Match returns the first pattern that covers a path.
func (ps Patterns) Match(path string) (pattern string, ok bool) {
	names := strings.Split(foldCase(path), "/")
	for _, p := range ps.list {
		if matchNames(p.names, names) {
			return p.text, true
		}
	}
	return "", false
}

func parsePattern(text string) (pattern, error) {
	trimmed := strings.TrimSuffix(text, "/")
	if !strings.Contains(trimmed, "/") {
		trimmed = "**/" + trimmed
	}
	p := pattern{text: text, names: strings.Split(foldCase(strings.TrimPrefix(trimmed, "/")), "/")}
	for _, name := range p.names {
		if _, err := path.Match(name, ""); err != nil || slices.Contains([]string{"", ".", ".."}, name) {
			return pattern{}, fmt.Errorf("protected path %q: name %q is not a pattern", text, name)
		}
	}
	return p, nil
}

func mustPatterns(texts ...string) []pattern {
	list := make([]pattern, len(texts))
	for i, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		list[i] = p
	}
	return list
}

// matchNames reports whether the names of a pattern match the path or a directory above it.
func matchNames(pattern, names []string) bool {
	for i, want := range pattern {
		if want == "**" {
			for skip := range len(names) + 1 {
				if matchNames(pattern[i+1:], names[skip:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 {
			return false
		}
		if ok, _ := path.Match(want, names[0]); !ok {
			return false
		}
		names = names[1:]
	}
	return true
}

// foldCase lowers the ASCII letters and leaves every other byte alone, invalid UTF-8 included.
func foldCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
