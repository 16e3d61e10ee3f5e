package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLineTooLong is the cause of a [DecodeError] for a line over [Options].MaxLine.
var ErrLineTooLong = errors.New("line too long")

// lines cuts the CLI's output into lines, without a bound of its own that a long answer could run into, and with one
// that keeps memory finite.
type lines struct {
	r       *bufio.Reader
	max     int
	partial bool // the last line had no newline: the CLI may have died while writing it
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// next returns the next line that is not blank, without its line ending, in memory of its own. Output that stops
// without a newline is a line; the error comes with the call after it.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, ErrLineTooLong):
			return line, err
		case len(line) > 0:
			l.partial = err != nil
			return line, nil
		case err != nil:
			return nil, err
		}
	}
}

// read returns one line with its ending, or what there was of it.
func (l *lines) read() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > l.max:
			return line[:l.max], ErrLineTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
