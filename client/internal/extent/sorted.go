package extent

import "slices"

// keyed is what sorted holds: pointer-free values with a key.
type keyed interface{ key() uint64 }

// sorted keeps values in key order in chunks of at most chunkLen, so that an
// insert moves a few KiB and the garbage collector has next to nothing to scan.
// A tree with more levels was not worth its pointers: a layer holds at most a
// few million runs, that is some ten thousand chunks.
type sorted[T keyed] struct {
	chunks [][]T    // none is empty
	firsts []uint64 // the chunks' first keys, together, so that a search stays in the processor's cache
	n      int
}

const chunkLen = 256

// spot is a position in a sorted; it is void after a change.
type spot struct{ c, i int }

// seek gives the first position with a key of at least k.
func (s *sorted[T]) seek(k uint64) spot {
	lo, hi := 0, len(s.firsts)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); s.firsts[mid] <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return spot{}
	}
	c := lo - 1
	chunk := s.chunks[c]
	lo, hi = 0, len(chunk)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); chunk[mid].key() < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return s.norm(spot{c, lo})
}

// norm turns a position past its chunk's end into the next chunk's first.
func (s *sorted[T]) norm(p spot) spot {
	if p.c < len(s.chunks) && p.i >= len(s.chunks[p.c]) {
		return spot{p.c + 1, 0}
	}
	return p
}

// at gives the value at p, nil past the end.
func (s *sorted[T]) at(p spot) *T {
	if p.c >= len(s.chunks) {
		return nil
	}
	return &s.chunks[p.c][p.i]
}

func (s *sorted[T]) next(p spot) spot { return s.norm(spot{p.c, p.i + 1}) }

// prev gives the position before p; ok is false at the start.
func (s *sorted[T]) prev(p spot) (spot, bool) {
	switch {
	case p.i > 0:
		return spot{p.c, p.i - 1}, true
	case p.c > 0:
		return spot{p.c - 1, len(s.chunks[p.c-1]) - 1}, true
	}
	return p, false
}

// find gives the value of key k, nil when there is none.
func (s *sorted[T]) find(k uint64) *T {
	if v := s.at(s.seek(k)); v != nil && (*v).key() == k {
		return v
	}
	return nil
}

// splice puts values in place of those in [from, to). The caller keeps the order.
func (s *sorted[T]) splice(from, to spot, values ...T) {
	switch {
	case len(s.chunks) == 0:
		s.chunks, s.firsts = append(s.chunks, nil), append(s.firsts, 0)
	case from.c == len(s.chunks): // append to the last chunk
		from = spot{from.c - 1, len(s.chunks[from.c-1])}
		to = from
	}
	if to.c > from.c && to.i == 0 { // the end of the chunk before, when that is near
		to = spot{to.c - 1, len(s.chunks[to.c-1])}
	}
	if to.c > from.c {
		s.n -= len(s.chunks[from.c]) - from.i
		for _, c := range s.chunks[from.c+1 : to.c] {
			s.n -= len(c)
		}
		s.n -= to.i
		s.chunks[to.c] = append(make([]T, 0, chunkLen), s.chunks[to.c][to.i:]...)
		s.chunks[from.c] = s.chunks[from.c][:from.i]
		if len(s.chunks[to.c]) == 0 {
			to.c++
		}
		s.chunks, s.firsts = slices.Delete(s.chunks, from.c+1, to.c), slices.Delete(s.firsts, from.c+1, to.c)
		if from.c+1 < len(s.chunks) {
			s.firsts[from.c+1] = s.chunks[from.c+1][0].key()
		}
		to = from
	}
	s.n += len(values) - (to.i - from.i)
	s.chunks[from.c] = s.grow(s.chunks[from.c], from.i, to.i, values)
	s.settleChunk(from.c)
}

// grow is slices.Replace with room for a whole chunk, so that it allocates once.
func (s *sorted[T]) grow(chunk []T, i, j int, values []T) []T {
	if len(chunk)+len(values) > cap(chunk) && cap(chunk) < chunkLen && len(chunk) > 0 {
		chunk = slices.Grow(chunk, chunkLen-len(chunk))
	}
	return slices.Replace(chunk, i, j, values...)
}

// settleChunk splits chunk c when it is too long and drops it when it is empty.
func (s *sorted[T]) settleChunk(c int) {
	chunk := s.chunks[c]
	switch {
	case len(chunk) == 0:
		s.chunks, s.firsts = slices.Delete(s.chunks, c, c+1), slices.Delete(s.firsts, c, c+1)
		return
	case len(chunk) > chunkLen:
		var parts [][]T
		var firsts []uint64
		for size := splitAt(s, c); len(chunk) > 0; chunk = chunk[min(size, len(chunk)):] {
			parts = append(parts, append(make([]T, 0, chunkLen), chunk[:min(size, len(chunk))]...))
			firsts = append(firsts, chunk[0].key())
		}
		s.chunks = slices.Replace(s.chunks, c, c+1, parts...)
		s.firsts = slices.Replace(s.firsts, c, c+1, firsts...)
		return
	}
	s.firsts[c] = chunk[0].key()
}

// splitAt: the last chunk splits near its end, since keys often ascend.
func splitAt[T keyed](s *sorted[T], c int) int {
	if c == len(s.chunks)-1 {
		return chunkLen
	}
	return chunkLen/2 + 1
}

// clone gives an independent copy.
func (s *sorted[T]) clone() sorted[T] {
	c := sorted[T]{chunks: make([][]T, len(s.chunks)), firsts: slices.Clone(s.firsts), n: s.n}
	for i, chunk := range s.chunks {
		c.chunks[i] = append(make([]T, 0, chunkLen), chunk...)
	}
	return c
}
