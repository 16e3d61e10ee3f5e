package ephemeral

// edits marks the lines of two sequences that are not part of their common subsequence.
type edits struct {
	gone, added []bool
}

// diffBudget bounds the steps of one comparison. A file rewritten throughout spends it, and shows as replaced where it ran out.
const diffBudget = 20_000_000

// diffLines compares two sequences of line numbers by Myers' algorithm in linear space ("An O(ND) Difference Algorithm and
// Its Variations", 1986, section 4b). Applied, the result always gives b; it is the shortest while the budget lasts.
func diffLines(a, b []int32, budget int) edits {
	d := differ{
		a: a, b: b, budget: budget,
		edits:    edits{gone: make([]bool, len(a)), added: make([]bool, len(b))},
		forward:  make([]int, len(a)+len(b)+5),
		backward: make([]int, len(a)+len(b)+5),
	}
	d.box(0, len(a), 0, len(b))
	return d.edits
}

type differ struct {
	a, b              []int32
	edits             edits
	forward, backward []int
	budget            int
}

// box compares a[aLo:aHi] with b[bLo:bHi].
func (d *differ) box(aLo, aHi, bLo, bHi int) {
	for aLo < aHi && bLo < bHi && d.a[aLo] == d.b[bLo] {
		aLo, bLo = aLo+1, bLo+1
	}
	for aLo < aHi && bLo < bHi && d.a[aHi-1] == d.b[bHi-1] {
		aHi, bHi = aHi-1, bHi-1
	}
	if aLo < aHi && bLo < bHi {
		if x, y, ok := d.split(d.a[aLo:aHi], d.b[bLo:bHi]); ok {
			d.box(aLo, aLo+x, bLo, bLo+y)
			d.box(aLo+x, aHi, bLo+y, bHi)
			return
		}
	}
	mark(d.edits.gone[aLo:aHi])
	mark(d.edits.added[bLo:bHi])
}

func mark(lines []bool) {
	for i := range lines {
		lines[i] = true
	}
}

// split returns a point on a shortest path from one corner of a box to the other, by searching from both.
func (d *differ) split(a, b []int32) (x, y int, ok bool) {
	n, m := len(a), len(b)
	fwd := search{a: a, b: b, at: d.forward, fromStart: true, cost: -1}
	bwd := search{a: a, b: b, at: d.backward, cost: -1}
	for cost := 0; 2*cost <= n+m+1; cost++ {
		for _, s := range []struct{ near, far *search }{{&fwd, &bwd}, {&bwd, &fwd}} {
			k, met := s.near.advance(cost, s.far, &d.budget)
			if d.budget <= 0 {
				return 0, 0, false
			}
			if met {
				x, y = s.near.point(k)
				return x, y, x+y > 0 && x+y < n+m
			}
		}
	}
	return 0, 0, false
}

// search is one direction of split. Seen from its own corner, at[k] is how far along a it comes on diagonal k (position
// in a minus position in b) with the edits spent so far; -1 where the diagonal is out of reach.
type search struct {
	a, b      []int32
	at        []int
	fromStart bool
	cost      int // of the last advance; -1 before the first
}

// slot is the index of a diagonal in at: they run from -len(b) to len(a), with one more on either side.
func (s *search) slot(k int) int { return k + len(s.b) + 1 }

// advance spends the cost-th edit on every diagonal, and reports the first on which it meets the other search.
func (s *search) advance(cost int, other *search, budget *int) (diagonal int, met bool) {
	s.cost = cost
	lo, hi := -min(cost, len(s.b)), min(cost, len(s.a))
	lo += (cost + lo) & 1 // diagonals have the parity of the cost
	hi -= (cost - hi) & 1
	s.at[s.slot(max(-cost-1, -len(s.b)-1))] = -1
	s.at[s.slot(min(cost+1, len(s.a)+1))] = -1
	for k := lo; k <= hi; k += 2 {
		x := s.reach(k)
		start := x
		for x >= 0 && x < len(s.a) && x-k < len(s.b) && s.equal(x, x-k) {
			x++
		}
		s.at[s.slot(k)] = x
		*budget -= 1 + x - start
		if x >= 0 && other.covers(len(s.a)-len(s.b)-k, len(s.a)-x) {
			return k, true
		}
	}
	return 0, false
}

// reach is how far one more edit comes on a diagonal: a line of b from the one above, or a line of a from the one below.
func (s *search) reach(k int) int {
	if s.cost == 0 {
		return 0
	}
	x := -1
	if v := s.at[s.slot(k+1)]; v >= 0 && v-k <= len(s.b) {
		x = v
	}
	if v := s.at[s.slot(k-1)]; v >= 0 && v < len(s.a) && v+1 > x {
		x = v + 1
	}
	return x
}

// covers reports whether this search has come as far as position x, both seen from its own corner, on a diagonal.
func (s *search) covers(k, x int) bool {
	if k < -s.cost || k > s.cost || (s.cost+k)&1 != 0 || k < -len(s.b) || k > len(s.a) {
		return false
	}
	return s.at[s.slot(k)] >= x
}

func (s *search) equal(x, y int) bool {
	if s.fromStart {
		return s.a[x] == s.b[y]
	}
	return s.a[len(s.a)-1-x] == s.b[len(s.b)-1-y]
}

// point is the position on a diagonal, seen from the start of both sequences.
func (s *search) point(k int) (x, y int) {
	x = s.at[s.slot(k)]
	if s.fromStart {
		return x, x - k
	}
	return len(s.a) - x, len(s.b) - (x - k)
}
