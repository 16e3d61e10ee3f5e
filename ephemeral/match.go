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

// Match returns the pattern that covers a path.
func (ps Patterns) Match(path string) (pattern string, ok bool) {
	pattern = newCover(ps.find).of(path)
	return pattern, pattern != ""
}

// find returns the first pattern that matches a path itself.
func (ps Patterns) find(names []string) string {
	for _, p := range ps.list {
		if matchNames(p.names, names) {
			return p.text
		}
	}
	return ""
}

// cover extends what matches paths to everything below them, and remembers the directories.
type cover struct {
	find func(names []string) string
	dirs map[string]string
}

func newCover(find func(names []string) string) *cover {
	return &cover{find: find, dirs: map[string]string{"": ""}}
}

// of returns what find says of the topmost directory on the path that it says something of, or of the path.
func (c *cover) of(path string) string {
	dir, _ := splitPath(path)
	found, known := c.dirs[dir]
	if !known {
		found = c.of(dir)
		c.dirs[dir] = found
	}
	if found == "" {
		found = c.find(strings.Split(foldCase(path), "/"))
	}
	return found
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

// matchNames reports whether a pattern matches a path, from the end, where most differ.
func matchNames(pattern, names []string) bool {
	for len(pattern) > 0 {
		rest, last := pattern[:len(pattern)-1], pattern[len(pattern)-1]
		if last == "**" {
			return matchAnyDepth(rest, names)
		}
		if len(names) == 0 || !matchName(last, names[len(names)-1]) {
			return false
		}
		pattern, names = rest, names[:len(names)-1]
	}
	return len(names) == 0
}

// matchAnyDepth reports whether a pattern matches a path or a directory above it.
func matchAnyDepth(pattern, names []string) bool {
	if len(pattern) == 0 {
		return true
	}
	for n := range len(names) + 1 {
		if matchNames(pattern, names[:n]) {
			return true
		}
	}
	return false
}

func matchName(pattern, name string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern == name
	}
	ok, _ := path.Match(pattern, name)
	return ok
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
