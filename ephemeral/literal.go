package ephemeral

import (
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// writeLiteral writes content as one part of a "GIT binary patch": deflated, in base 85, in lines whose first letter is
// their length, closed by an empty line. See gitformat-patch in git's documentation of diff formats and base85.c.
func writeLiteral(w io.Writer, size int64, content io.Reader) error {
	if _, err := fmt.Fprintf(w, "literal %d\n", size); err != nil {
		return err
	}
	lines := base85Writer{w: w}
	deflate := zlib.NewWriter(&lines)
	if _, err := io.CopyN(deflate, content, size); err != nil {
		return err
	}
	if err := deflate.Close(); err != nil {
		return err
	}
	if err := lines.flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// base85Writer collects bytes into lines of 52.
type base85Writer struct {
	w    io.Writer
	line [52]byte
	n    int
}

func (b *base85Writer) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := copy(b.line[b.n:], p)
		b.n += n
		p = p[n:]
		if b.n == len(b.line) {
			if err := b.flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

// flush writes what is collected as a line; nothing when there is nothing.
func (b *base85Writer) flush() error {
	if b.n == 0 {
		return nil
	}
	clear(b.line[b.n:])
	out := []byte{lengthLetter(b.n)}
	for i := 0; i < b.n; i += 4 {
		out = appendBase85(out, binary.BigEndian.Uint32(b.line[i:]))
	}
	b.n = 0
	_, err := b.w.Write(append(out, '\n'))
	return err
}

func lengthLetter(n int) byte {
	if n <= 26 {
		return byte('A' + n - 1)
	}
	return byte('a' + n - 27)
}

func appendBase85(out []byte, v uint32) []byte {
	var digits [5]byte
	for i := 4; i >= 0; i-- {
		digits[i] = base85[v%85]
		v /= 85
	}
	return append(out, digits[:]...)
}
