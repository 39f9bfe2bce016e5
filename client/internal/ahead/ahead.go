package ahead

import "strake/internal/layout"

const (
	// streams is how many places where a stream could go on are remembered.
	streams = 8
	// reach is by how many reads of its own length a read may be ahead of its
	// stream, or behind: goroutines that read together overtake each other.
	reach = 4
	// Chunk is the unit of fetching, in blocks: a mebibyte.
	Chunk = layout.BlockCount(layout.MaxUnit / layout.BlockSize)
	// Most bounds a window, in blocks: 16 MiB.
	Most = 16 * Chunk
	// rows is how many rows of units a window has at most.
	rows = 2
)

// Start is where reading ahead begins, before anything was seen of the stream.
type Start struct {
	After int               // reads in sequence that make a stream; 0: never
	First layout.BlockCount // the first window
}

// StartOf gives a class's starting point. Classes that an administrator made begin
// as training does.
func StartOf(class layout.Class) Start {
	switch class {
	case layout.ClassInference:
		return Start{After: 8, First: Chunk / 4}
	case layout.ClassCheckpoint:
		return Start{After: 2, First: 4 * Chunk}
	case layout.ClassBackground:
		return Start{} // it gets what others leave
	}
	return Start{After: 3, First: Chunk / 2}
}

// Detector finds the streams among a volume's reads. The zero value works. It
// belongs to one goroutine at a time.
type Detector struct {
	list [streams]stream
	tick uint64 // reads so far
}

// stream is a place where reads may go on.
type stream struct {
	next   layout.BlockNumber // the end of what was read
	given  layout.BlockNumber // the end of what was given to be fetched
	window layout.BlockCount
	reads  int
	used   uint64 // tick of the last read
}

// Read is told of a read, of a volume that has size blocks and k data shards, while
// others of busy blocks in all are under way. It gives the range to be fetched now;
// one without blocks: nothing.
func (d *Detector) Read(r layout.Range, start Start, k int, size layout.BlockNumber, busy layout.BlockCount) layout.Range {
	if start.After == 0 || r.Count == 0 {
		return layout.Range{}
	}
	d.tick++
	s := d.find(r)
	if s == nil {
		s = d.oldest()
		*s = stream{next: r.End(), given: r.End(), reads: 1, used: d.tick}
		return layout.Range{}
	}
	s.used = d.tick
	if r.End() <= s.next {
		return layout.Range{} // it was overtaken
	}
	s.next = r.End()
	s.reads++
	d.join(s, layout.BlockNumber(reach*r.Count))
	row := layout.BlockCount(k) * Chunk
	if s.reads < start.After || r.Count >= row {
		return layout.Range{}
	}
	if busy*2 >= max(s.window, start.First) {
		return layout.Range{}
	}
	return s.give(max(start.First, 2*r.Count), min(rows*row, Most), size)
}

// give gives what the window has room for, once the reader is past half of it: the
// window is larger each time. It ends at a chunk's end where it has any.
func (s *stream) give(first, most layout.BlockCount, size layout.BlockNumber) layout.Range {
	s.given = max(s.given, s.next)
	if s.window > 0 && layout.BlockCount(s.given-s.next) > s.window/2 {
		return layout.Range{}
	}
	window := min(max(2*s.window, first), most)
	end := min(s.next+layout.BlockNumber(window), size)
	if window > Chunk && end < size {
		end -= end % layout.BlockNumber(Chunk)
	}
	if end <= s.given {
		return layout.Range{}
	}
	r := layout.Range{Start: s.given, Count: layout.BlockCount(end - s.given)}
	s.given, s.window = end, window
	return r
}

// find gives the stream that a read goes on with, or was overtaken in; of two the
// nearer one. The second read of a stream begins where the first ended.
func (d *Detector) find(r layout.Range) (best *stream) {
	least := ^layout.BlockNumber(0)
	for i := range d.list {
		s := &d.list[i]
		slack := layout.BlockNumber(reach * r.Count)
		if s.reads < 2 {
			slack = 0
		}
		away := max(s.next, r.Start) - min(s.next, r.Start)
		if away == 1 && r.Start < s.next {
			away = 0 // an unaligned read begins in the block where the last one ended
		}
		if s.reads > 0 && away <= slack && away < least {
			best, least = s, away
		}
	}
	return best
}

// join makes one stream of those that have met: goroutines that read together begin
// several.
func (d *Detector) join(s *stream, slack layout.BlockNumber) {
	for i := range d.list {
		t := &d.list[i]
		if t == s || t.reads == 0 || max(s.next, t.next)-min(s.next, t.next) > slack {
			continue
		}
		s.next, s.given, s.window, s.reads = max(s.next, t.next), max(s.given, t.given), max(s.window, t.window), s.reads+t.reads
		*t = stream{}
	}
}

// oldest gives the stream that was not read for longest.
func (d *Detector) oldest() *stream {
	s := &d.list[0]
	for i := range d.list {
		if d.list[i].used < s.used {
			s = &d.list[i]
		}
	}
	return s
}
