package isolation

import (
	"strconv"
	"strings"
)

// keyLines returns the line of every key, table and array element of a TOML text, by key: "agent.model",
// "credentials[1].hosts[0]". The TOML library reads the values and has the last word on syntax, but it does not say
// where they stand. For a text that it accepts the keys are the same (FuzzKeyLines); for any other this returns some
// keys and does not panic. deep is the line of the first key or value below maxNesting others, where the scan ends, or
// 0: the library takes minutes for some of those.
func keyLines(text string) (lines map[string]int, deep int) {
	s := &lineScanner{text: strings.TrimPrefix(text, "\ufeff"), line: 1, lines: map[string]int{}, tables: map[string]int{}}
	table := ""
	for s.skipBlank(); s.pos < len(s.text); s.skipBlank() {
		start := s.pos
		switch {
		case strings.HasPrefix(s.text[s.pos:], "[["):
			table = s.header(2)
		case s.peek() == '[':
			table = s.header(1)
		default:
			s.pair(table)
		}
		if s.pos == start { // not TOML
			s.pos++
		}
	}
	return s.lines, s.deep
}

// maxNesting is the depth that a text may have; the deepest key of a policy has 4 parts.
const maxNesting = 32

type lineScanner struct {
	text   string
	pos    int
	line   int
	lines  map[string]int
	tables map[string]int // elements so far of each array of tables
	depth  int
	deep   int
}

// giveUp ends the scan.
func (s *lineScanner) giveUp() {
	if s.deep == 0 {
		s.deep = s.line
	}
	s.pos = len(s.text)
}

func (s *lineScanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// skipBlank passes white space, line ends and comments.
func (s *lineScanner) skipBlank() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		case '#':
			s.skipLine()
			continue
		default:
			return
		}
		s.pos++
	}
}

func (s *lineScanner) skipSpace() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.pos++
	}
}

func (s *lineScanner) skipLine() {
	for s.pos < len(s.text) && s.text[s.pos] != '\n' {
		s.pos++
	}
}

// header reads [table] or, with two brackets, [[table]], and returns its key.
func (s *lineScanner) header(brackets int) string {
	s.pos += brackets
	table := ""
	for parts := s.key(); len(parts) > 0; parts = parts[1:] {
		table = joinKey(table, parts[0])
		s.record(table)
		if n := s.tables[table]; len(parts) == 1 && brackets == 2 {
			s.tables[table] = n + 1
			table = indexKey(table, n)
			s.record(table)
		} else if n > 0 {
			table = indexKey(table, n-1)
		}
	}
	s.skipLine()
	return table
}

// pair reads key = value, the key being relative to table.
func (s *lineScanner) pair(table string) {
	key := table
	for _, part := range s.key() {
		key = joinKey(key, part)
		s.record(key)
	}
	s.skipSpace()
	if s.peek() == '=' {
		s.pos++
	}
	s.skipSpace()
	s.value(key)
}

// key reads a dotted key.
func (s *lineScanner) key() []string {
	var parts []string
	for {
		s.skipSpace()
		part, ok := s.keyPart()
		if !ok {
			return parts
		}
		if parts = append(parts, part); len(parts) > maxNesting {
			s.giveUp()
		}
		s.skipSpace()
		if s.peek() != '.' {
			return parts
		}
		s.pos++
	}
}

func (s *lineScanner) keyPart() (string, bool) {
	if c := s.peek(); c == '"' || c == '\'' {
		return s.str(), true
	}
	start := s.pos
	for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n.=]#,{}[\"'", rune(s.text[s.pos])) {
		s.pos++
	}
	return s.text[start:s.pos], s.pos > start
}

// record keeps the first line of a key.
func (s *lineScanner) record(key string) {
	if _, ok := s.lines[key]; !ok {
		s.lines[key] = s.line
	}
}

func (s *lineScanner) value(key string) {
	if s.depth++; s.depth > maxNesting {
		s.giveUp()
	}
	defer func() { s.depth-- }()
	switch s.peek() {
	case '"', '\'':
		s.str()
	case '[':
		s.array(key)
	case '{':
		s.inlineTable(key)
	default:
		for s.pos < len(s.text) && !strings.ContainsRune(",]}#\n", rune(s.text[s.pos])) {
			s.pos++
		}
	}
}

func (s *lineScanner) array(key string) {
	s.pos++
	for i := 0; ; i++ {
		s.skipBlank()
		if s.pos >= len(s.text) || s.peek() == ']' {
			s.pos++
			return
		}
		s.record(indexKey(key, i))
		start := s.pos
		s.value(indexKey(key, i))
		s.separator(start)
	}
}

func (s *lineScanner) inlineTable(key string) {
	s.pos++
	for {
		s.skipBlank()
		if s.pos >= len(s.text) || s.peek() == '}' {
			s.pos++
			return
		}
		start := s.pos
		s.pair(key)
		s.separator(start)
	}
}

// separator passes a comma, and one byte of what is not TOML, so that every turn of a loop gets on.
func (s *lineScanner) separator(start int) {
	s.skipBlank()
	if s.peek() == ',' || s.pos == start {
		s.pos++
	}
}

// str reads a string of any of the four kinds and returns its text. Only keys need that, which are never multi-line, so
// the text of multi-line strings keeps its escapes.
func (s *lineScanner) str() string {
	quote := s.text[s.pos]
	if triple := strings.Repeat(string(quote), 3); strings.HasPrefix(s.text[s.pos:], triple) {
		return s.multiline(quote, triple)
	}
	s.pos++
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] != quote && s.text[s.pos] != '\n' {
		if quote == '"' && s.text[s.pos] == '\\' {
			s.pos++
		}
		s.pos++
	}
	end := min(s.pos, len(s.text))
	s.pos = min(end+1, len(s.text))
	if quote == '\'' {
		return s.text[start:end]
	}
	return unescape(s.text[start:end])
}

func (s *lineScanner) multiline(quote byte, triple string) string {
	s.pos += 3
	start := s.pos
	for s.pos < len(s.text) && !strings.HasPrefix(s.text[s.pos:], triple) {
		if quote == '"' && s.text[s.pos] == '\\' && s.pos+1 < len(s.text) && s.text[s.pos+1] != '\n' {
			s.pos++
		}
		if s.text[s.pos] == '\n' {
			s.line++
		}
		s.pos++
	}
	end := min(s.pos, len(s.text))
	s.pos = min(end+3, len(s.text))
	for n := 0; n < 2 && s.peek() == quote; n++ { // up to two quotes may stand before the closing three
		s.pos++
	}
	return s.text[start:end]
}

// unescape replaces the escapes of a basic string.
func unescape(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			return b.String() + s
		}
		b.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		if j := strings.IndexByte(`btnfre"\`, c); j >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[j])
			continue
		}
		digits := min(map[byte]int{'x': 2, 'u': 4, 'U': 8}[c], len(s))
		r, _ := strconv.ParseUint(s[:digits], 16, 32)
		b.WriteRune(rune(r))
		s = s[digits:]
	}
}
