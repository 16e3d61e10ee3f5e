package model

import "strings"

// lineIndex maps the path of a TOML key or table to the line where it stands. The TOML package keeps positions per key
// name and not per list item, so this reads headers and keys once more, roughly: what it misses gets its table's line.
type lineIndex map[string]int

func (l lineIndex) find(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		i := strings.LastIndexAny(path, ": ")
		path = strings.TrimRight(path[:max(i, 0)], ": ")
	}
	return 0
}

// add keeps the first line of a path.
func (l lineIndex) add(path string, line int) {
	if l[path] == 0 {
		l[path] = line
	}
}

func tomlLines(text string) lineIndex {
	index, counts := lineIndex{}, map[string]int{}
	table, open := "", ""
	for i, line := range strings.Split(text, "\n") {
		if open == "" {
			line = strings.TrimSpace(line)
			if header, ok := strings.CutPrefix(line, "["); ok {
				var list string
				list, table = headerPath(header, counts)
				index.add(list, i+1)
				index.add(table, i+1)
			} else if key, _, ok := strings.Cut(line, "="); ok {
				index.add(childPath(table, bareKey(key)), i+1)
			}
		}
		open = openString(line, open)
	}
	return index
}

// headerPath resolves what follows the first bracket of "[a.b]" or "[[a.b]]", counting the items of lists. For an item,
// list is the path of the whole list.
func headerPath(header string, counts map[string]int) (list, path string) {
	inner, isItem := strings.CutPrefix(header, "[")
	name, _, _ := strings.Cut(inner, "]")
	keys := strings.Split(name, ".")
	for i, key := range keys {
		path = childPath(path, bareKey(key))
		list = path
		if isItem && i == len(keys)-1 {
			counts[path]++
		}
		if n := counts[path]; n > 0 {
			path = itemPath(path, n-1)
		}
	}
	return list, path
}

func bareKey(key string) string {
	return strings.Trim(strings.TrimSpace(key), `"'`)
}

// openString returns the delimiter of the multi-line string that is open after line, given the one open before it.
func openString(line, open string) string {
	for i := 0; i < len(line); {
		rest := line[i:]
		switch {
		case open == "" && rest[0] == '#':
			return ""
		case strings.HasPrefix(open, `"`) && rest[0] == '\\':
			i++
		case open != "" && strings.HasPrefix(rest, open):
			i += len(open) - 1
			open = ""
		case open == "":
			open = delimiter(rest)
			i += max(len(open)-1, 0)
		}
		i++
	}
	if len(open) == 1 { // a string in one line cannot stay open
		return ""
	}
	return open
}

func delimiter(s string) string {
	for _, d := range []string{`"""`, `'''`, `"`, `'`} {
		if strings.HasPrefix(s, d) {
			return d
		}
	}
	return ""
}
