package ephemeral

import (
	"bytes"
	"fmt"
	"io"
)

const (
	hunkContext  = 3
	maxDiffLines = 400_000 // of both sides, without what they have in common at the ends; above, one hunk replaces all
)

// run is a stretch of a hunk: lines that are kept (" "), gone ("-") or added ("+").
type run struct {
	sign string
	text []byte
}

// writeHunks writes the difference of two texts as unified hunks.
func writeHunks(w io.Writer, before, after []byte) error {
	head := commonHead(before, after)
	tail := commonTail(before[head:], after[head:])
	from := backLines(before[:head], hunkContext)
	to := tail - aheadLines(before[len(before)-tail:], hunkContext)
	line := countLines(before[:from]) + 1
	if countLines(before[head:len(before)-tail])+countLines(after[head:len(after)-tail]) > maxDiffLines {
		return writeHunk(w, line, line, []run{
			{" ", before[from:head]},
			{"-", before[head : len(before)-tail]},
			{"+", after[head : len(after)-tail]},
			{" ", before[len(before)-tail : len(before)-to]},
		})
	}
	return writeWindow(w, line, before[from:len(before)-to], after[from:len(after)-to])
}

// writeWindow writes the hunks of a part of two texts that starts at the same line in both.
func writeWindow(w io.Writer, line int, before, after []byte) error {
	a, b := splitLines(before), splitLines(after)
	ids := make(map[string]int32)
	e := diffLines(number(a, ids), number(b, ids), diffBudget)
	for i, j := 0, 0; ; {
		for i < len(a) && j < len(b) && !e.gone[i] && !e.added[j] {
			i, j = i+1, j+1
		}
		if i == len(a) && j == len(b) {
			return nil
		}
		start := min(i, hunkContext)
		h := hunk{a: a, b: b, e: e, i: i - start, j: j - start}
		h.collect()
		if err := writeHunk(w, line+i-start, line+j-start, h.runs); err != nil {
			return err
		}
		i, j = h.i, h.j
	}
}

// hunk grows from its first line, which i and j hold on both sides, until no change follows within its context.
type hunk struct {
	a, b [][]byte
	e    edits
	i, j int
	runs []run
}

func (h *hunk) collect() {
	for {
		kept := 0
		for h.i+kept < len(h.a) && h.j+kept < len(h.b) && !h.e.gone[h.i+kept] && !h.e.added[h.j+kept] {
			kept++
		}
		atEnd := h.i+kept == len(h.a) && h.j+kept == len(h.b)
		if last := len(h.runs) > 0; last && (atEnd || kept > 2*hunkContext) {
			h.keep(min(kept, hunkContext))
			return
		}
		h.keep(kept)
		h.change()
	}
}

func (h *hunk) keep(n int) {
	for range n {
		h.runs = append(h.runs, run{" ", h.a[h.i]})
		h.i, h.j = h.i+1, h.j+1
	}
}

func (h *hunk) change() {
	for h.i < len(h.a) && h.e.gone[h.i] {
		h.runs = append(h.runs, run{"-", h.a[h.i]})
		h.i++
	}
	for h.j < len(h.b) && h.e.added[h.j] {
		h.runs = append(h.runs, run{"+", h.b[h.j]})
		h.j++
	}
}

// writeHunk writes one hunk that starts at the given lines, counted from one.
func writeHunk(w io.Writer, lineA, lineB int, runs []run) error {
	var countA, countB int
	for _, r := range runs {
		n := countLines(r.text)
		if r.sign != "+" {
			countA += n
		}
		if r.sign != "-" {
			countB += n
		}
	}
	if _, err := fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(lineA, countA), hunkRange(lineB, countB)); err != nil {
		return err
	}
	for _, r := range runs {
		if err := writeRun(w, r); err != nil {
			return err
		}
	}
	return nil
}

// hunkRange spells start and length; an empty range is named by the line before it.
func hunkRange(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

func writeRun(w io.Writer, r run) error {
	for line := range bytes.Lines(r.text) {
		if _, err := io.WriteString(w, r.sign); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		if line[len(line)-1] != '\n' {
			if _, err := io.WriteString(w, "\n\\ No newline at end of file\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// splitLines divides a text into lines with their newlines; the last may lack one.
func splitLines(text []byte) [][]byte {
	lines := make([][]byte, 0, countLines(text))
	for line := range bytes.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}

// number gives equal lines equal numbers.
func number(lines [][]byte, ids map[string]int32) []int32 {
	numbers := make([]int32, len(lines))
	for i, line := range lines {
		id, ok := ids[string(line)]
		if !ok {
			id = int32(len(ids))
			ids[string(line)] = id
		}
		numbers[i] = id
	}
	return numbers
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// commonHead is the length of the whole lines that both texts start with.
func commonHead(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return bytes.LastIndexByte(a[:n], '\n') + 1
}

// commonTail is the length of the whole lines that both texts end with.
func commonTail(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	newline := bytes.IndexByte(a[len(a)-n:], '\n')
	if newline < 0 {
		return 0
	}
	return n - newline - 1
}

// backLines is the offset at which the last n lines of a text start.
func backLines(text []byte, n int) int {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}

// aheadLines is the length of the first n lines of a text.
func aheadLines(text []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		newline := bytes.IndexByte(text[at:], '\n')
		if newline < 0 {
			return len(text)
		}
		at += newline + 1
	}
	return at
}
