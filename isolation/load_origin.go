package isolation

import (
	"slices"
	"strconv"
	"strings"
)

// place is where a key was set.
type place struct {
	file string // as printed
	dir  string // where its relative paths start; "" is the current directory
	line int
}

// origin remembers how a Config came to be. It does not change once Load has returned.
type origin struct {
	name  string
	files []string // the policy first, then what it extends
	at    map[string]place
}

// find returns where key, or the nearest table or array around it, was set; at worst the top of the policy.
func (o *origin) find(key string) place {
	if o == nil {
		return place{}
	}
	for ; key != ""; key = parentKey(key) {
		if p, ok := o.at[key]; ok {
			return p
		}
	}
	return o.at[""]
}

// order ranks files so that the policy comes before what it extends, and both before --set.
func (o *origin) order(file string) int {
	if o == nil {
		return 0
	}
	if i := slices.Index(o.files, file); i >= 0 {
		return i
	}
	return len(o.files)
}

// Name returns what the policy was loaded as: a preset's name or a file's path; "" for a literal.
func (c *Config) Name() string {
	if c.origin == nil {
		return ""
	}
	return c.origin.name
}

// Files returns the files and presets that make up the policy: itself first, then what it extends.
func (c *Config) Files() []string {
	if c.origin == nil {
		return nil
	}
	return slices.Clone(c.origin.files)
}

// Dir returns the directory of the file that set key, where the relative paths of extends, model.path and the files of
// secrets start. "" is the current directory: that of presets, of --set, and of a literal.
func (c *Config) Dir(key string) string { return c.origin.find(key).dir }

// joinKey appends a part to a key, quoted when TOML wants it so.
func joinKey(table, part string) string {
	if !isBareKey(part) {
		part = strconv.Quote(part)
	}
	if table == "" {
		return part
	}
	return table + "." + part
}

func indexKey(array string, i int) string { return array + "[" + strconv.Itoa(i) + "]" }

// parentKey cuts the last part or index off a key.
func parentKey(key string) string {
	quoted := false
	for i := len(key) - 1; i > 0; i-- {
		switch c := key[i]; {
		case c == '"' && !escaped(key, i):
			quoted = !quoted
		case !quoted && (c == '.' || c == '['):
			return key[:i]
		}
	}
	return ""
}

// escaped reports whether an odd number of backslashes stands before key[i].
func escaped(key string, i int) bool {
	n := 0
	for ; i > n && key[i-1-n] == '\\'; n++ {
	}
	return n%2 == 1
}

// within reports whether key is top, or below it.
func within(key, top string) bool {
	rest, ok := strings.CutPrefix(key, top)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func isBareKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
