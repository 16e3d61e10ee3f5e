package ephemeral

import "strings"

// quoteName spells a path as git does in patches with core.quotePath on: as it is, or in double quotes with C escapes when
// a byte of it is a quote, a backslash, a control character or not ASCII. See git-config(1). A path with a space
// before a slash is quoted too: git does not, and then cannot read its own patch of an empty file there (2.39).
func quoteName(name string) string {
	const escapes = "abtnvfr" // of bytes 7 to 13
	var b strings.Builder
	quoted := strings.Contains(name, " /")
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case '\a' <= c && c <= '\r':
			b.Write([]byte{'\\', escapes[c-'\a']})
		case c < ' ' || c >= 0x7f:
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
		default:
			b.WriteByte(c)
			continue
		}
		quoted = true
	}
	if quoted {
		return `"` + b.String() + `"`
	}
	return name
}

// labelName is quoteName for the --- and +++ lines, where a tab ends a name that holds spaces.
func labelName(name string) string {
	quoted := quoteName(name)
	if quoted == name && strings.Contains(name, " ") {
		return name + "\t"
	}
	return quoted
}

// gitRefuses reports whether git takes no such path from a patch: a component that is .git, in the spellings that
// case-insensitive and Windows file systems take for it too, or a .gitmodules that is a link. One of them makes git apply
// refuse the whole patch. See verify_path in git's read-cache.c.
func gitRefuses(path string, link bool) bool {
	for name := range strings.SplitSeq(foldCase(path), "/") {
		name, _, _ = strings.Cut(name, ":")
		switch strings.TrimRight(name, " .") {
		case ".git", "git~1":
			return true
		case ".gitmodules", "gitmod~1":
			if link {
				return true
			}
		}
	}
	return false
}
