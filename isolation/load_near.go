package isolation

// nearest returns the word of words that word was perhaps meant to be, or "": the one with the fewest edits, if those
// are few for its length. Of several the first wins.
func nearest(word string, words []string) string {
	best, fewest := "", max(1, len(word)/3)+1
	for _, w := range words {
		if n := edits(word, w); n < fewest {
			best, fewest = w, n
		}
	}
	return best
}

// edits is the number of bytes to insert, delete, replace or swap with a neighbour to make b of a (optimal string
// alignment).
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
