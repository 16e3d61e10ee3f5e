package ephemeral

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Omitted counts the changes that a patch cannot say.
type Omitted struct {
	GitFiles   int // below .git, which git refuses to patch
	EmptyDirs  int // directories without files, made or removed
	Modes      int // permissions other than the owner's execute bit, and those of directories
	Special    int // FIFOs, sockets, devices
	TooLarge   int // files of more than 1 GiB, and what comes after 8 GiB in all
	Unreadable int // host files that the caller may not read
	Blocked    int // what hangs on one of the above: the file in a directory's place, when something of that stays
}

// Total is the number of all that a patch leaves out.
func (o Omitted) Total() int {
	return o.GitFiles + o.EmptyDirs + o.Modes + o.Special + o.TooLarge + o.Unreadable + o.Blocked
}

// WritePatch writes the changes as a patch for "git apply --binary", which then makes the new tree out of the old one.
// Text is shown line by line; what holds a NUL byte early, or is larger than 16 MiB, is binary. Memory is bounded by a
// few times that size. Git has no word for some changes: these are counted and left out.
func (c *Changes) WritePatch(w io.Writer) (Omitted, error) {
	buf := bufio.NewWriter(w)
	p := newPatcher(buf, c)
	for _, change := range c.List {
		if err := p.change(change); err != nil {
			return p.omitted, fmt.Errorf("write patch: %q: %w", change.Path, err)
		}
	}
	if err := buf.Flush(); err != nil {
		return p.omitted, fmt.Errorf("write patch: %w", err)
	}
	return p.omitted, nil
}

// patcher is one run of WritePatch.
type patcher struct {
	w       io.Writer
	layers  Layers
	large   map[string]bool // files to leave out
	filled  map[string]bool // directories that come and go with the files in them
	stuck   map[string]bool // directories in which something stays that the run removed
	solid   map[string]bool // files and directories that stay where the run made something else
	omitted Omitted
	implied int
}

func newPatcher(w io.Writer, c *Changes) *patcher {
	p := &patcher{
		w: w, layers: c.layers, large: largeFiles(c.List),
		filled: make(map[string]bool), stuck: make(map[string]bool), solid: make(map[string]bool),
	}
	for _, change := range c.List {
		if p.unspeakable(change) == nil {
			markAbove(p.filled, change.Path)
		}
	}
	for _, change := range c.List {
		counter := p.unspeakable(change)
		switch {
		case counter == nil || counter == &p.implied:
		case change.New == nil:
			markAbove(p.stuck, change.Path)
		case isDir(change.New) != isDir(change.Old):
			p.solid[change.Path] = true
		}
	}
	return p
}

// largeFiles are the files that are too large for a patch, by themselves or together with those before them.
func largeFiles(list []Change) map[string]bool {
	large := make(map[string]bool)
	room := int64(maxPatchSize)
	for _, c := range list {
		size := max(sizeOf(c.Old), sizeOf(c.New))
		if size > maxPatchFile || size > room {
			large[c.Path] = true
			continue
		}
		room -= size
	}
	return large
}

// markAbove adds the directories above a path.
func markAbove(dirs map[string]bool, path string) {
	for dir, _ := splitPath(path); dir != "" && !dirs[dir]; dir, _ = splitPath(dir) {
		dirs[dir] = true
	}
}

// unspeakable returns the counter for a change that no patch can hold; nil when one can.
func (p *patcher) unspeakable(c Change) *int {
	switch {
	case gitRefuses(c.Path, isLink(c.New) || isLink(c.Old)):
		return &p.omitted.GitFiles
	case c.Kind == Special, c.Old != nil && isSpecial(c.Old.Mode):
		return &p.omitted.Special
	case c.Kind == ModeChanged && (isDir(c.New) || gitMode(c.Old) == gitMode(c.New)):
		return &p.omitted.Modes
	case gitMode(c.Old) == "" && gitMode(c.New) == "":
		if p.filled[c.Path] {
			return &p.implied
		}
		return &p.omitted.EmptyDirs
	case p.large[c.Path]:
		return &p.omitted.TooLarge
	}
	return nil
}

// blocked reports whether a change would find its place taken by what the patch leaves alone.
func (p *patcher) blocked(c Change) bool {
	if c.New != nil && p.stuck[c.Path] {
		return true
	}
	for dir, _ := splitPath(c.Path); dir != ""; dir, _ = splitPath(dir) {
		if p.solid[dir] {
			return true
		}
	}
	return false
}

func (p *patcher) change(c Change) error {
	counter := p.unspeakable(c)
	if counter == nil && p.blocked(c) {
		counter = &p.omitted.Blocked
	}
	if counter != nil {
		*counter++
		return nil
	}
	before, err := readBlob(c.Old, c.Path, p.layers.openLower)
	if errors.Is(err, fs.ErrPermission) {
		p.omitted.Unreadable++
		return nil
	}
	if err != nil {
		return err
	}
	after, err := readBlob(c.New, c.Path, p.layers.openUpper)
	if err != nil {
		return err
	}
	if c.Kind != Retyped || before.absent() || after.absent() {
		return writeDiff(p.w, c.Path, before, after)
	}
	if err := writeDiff(p.w, c.Path, before, noBlob); err != nil {
		return err
	}
	return writeDiff(p.w, c.Path, noBlob, after)
}

// writeDiff writes the patch of one path.
func writeDiff(w io.Writer, path string, before, after blob) error {
	if err := writeHeader(w, path, before, after); err != nil || before.sum == after.sum {
		return err
	}
	if before.data == nil || after.data == nil || isBinary(before.data) || isBinary(after.data) {
		return writeBinary(w, before, after)
	}
	if before.size == 0 && after.size == 0 {
		return nil // an empty file comes or goes
	}
	if _, err := fmt.Fprintf(w, "--- %s\n+++ %s\n", before.label("a/"+path), after.label("b/"+path)); err != nil {
		return err
	}
	return writeHunks(w, before.data, after.data)
}

func writeHeader(w io.Writer, path string, before, after blob) error {
	var h bytes.Buffer
	fmt.Fprintf(&h, "diff --git %s %s\n", quoteName("a/"+path), quoteName("b/"+path))
	suffix := ""
	switch {
	case before.absent():
		fmt.Fprintf(&h, "new file mode %s\n", after.mode)
	case after.absent():
		fmt.Fprintf(&h, "deleted file mode %s\n", before.mode)
	case before.mode != after.mode:
		fmt.Fprintf(&h, "old mode %s\nnew mode %s\n", before.mode, after.mode)
	default:
		suffix = " " + before.mode
	}
	if before.sum != after.sum {
		fmt.Fprintf(&h, "index %x..%x%s\n", before.sum, after.sum, suffix)
	}
	_, err := h.WriteTo(w)
	return err
}

// writeBinary writes both contents, the old one for "git apply -R", unless it is large.
func writeBinary(w io.Writer, before, after blob) error {
	if _, err := io.WriteString(w, "GIT binary patch\n"); err != nil {
		return err
	}
	if err := after.writeLiteral(w); err != nil || before.data == nil {
		return err
	}
	return before.writeLiteral(w)
}
