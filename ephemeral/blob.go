package ephemeral

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
)

const (
	maxTextFile  = 16 << 20 // larger files are not compared by line, and read twice instead of held
	maxPatchFile = 1 << 30  // larger files are left out: git would have to hold them in memory
	maxPatchSize = 8 << 30  // of all files; a run can make any number that are large and take no room
)

// blob is one side of a patch.
type blob struct {
	mode string // as gitMode
	sum  [sha1.Size]byte
	size int64
	data []byte                         // nil when too large to hold
	open func(string) (*os.File, error) // for those
	path string
}

func (b blob) absent() bool { return b.mode == "" }

// label names the side in --- and +++ lines.
func (b blob) label(name string) string {
	if b.absent() {
		return "/dev/null"
	}
	return labelName(name)
}

// noBlob is the side of a file that is not there.
var noBlob = blob{data: []byte{}}

// gitMode is the mode that git has for an entry; "" for directories, FIFOs and nil, which it does not track.
func gitMode(e *Entry) string {
	switch {
	case e == nil || e.Mode.IsDir() || isSpecial(e.Mode):
		return ""
	case isLink(e):
		return "120000"
	case e.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// sizeOf is how much of a file has to be read.
func sizeOf(e *Entry) int64 {
	if e == nil {
		return 0
	}
	return e.Size
}

// readBlob reads an entry of the layer that open opens files of.
func readBlob(e *Entry, path string, open func(string) (*os.File, error)) (blob, error) {
	mode := gitMode(e)
	switch mode {
	case "":
		return noBlob, nil
	case "120000":
		return heldBlob(mode, []byte(e.Target)), nil
	}
	b := blob{mode: mode, size: e.Size, open: open, path: path}
	f, err := open(path)
	if err != nil {
		return blob{}, err
	}
	defer f.Close()
	if e.Size > maxTextFile {
		return b, b.hash(f)
	}
	data := make([]byte, e.Size)
	if _, err := io.ReadFull(f, data); err != nil {
		return blob{}, fmt.Errorf("read: %w", err)
	}
	return heldBlob(mode, data), nil
}

func heldBlob(mode string, data []byte) blob {
	b := blob{mode: mode, size: int64(len(data)), data: data}
	if err := b.hash(bytes.NewReader(data)); err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// hash sets the sum that git knows the content by. See "Object Storage" in gitcore-tutorial(7).
func (b *blob) hash(content io.Reader) error {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", b.size)
	if _, err := io.CopyN(h, content, b.size); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	h.Sum(b.sum[:0])
	return nil
}

func (b blob) writeLiteral(w io.Writer) error {
	if b.data != nil || b.absent() {
		return writeLiteral(w, b.size, bytes.NewReader(b.data))
	}
	f, err := b.open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return writeLiteral(w, b.size, f)
}

// isBinary reports what git thinks of content: a NUL byte among the first 8000 makes it binary.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}
