package read

import (
	"cmp"
	"slices"

	"strake/internal/layout"
	"strake/proto/frame"
)

// maxRequest bounds the bytes of one request. A shard's bytes beyond it are
// split evenly, so that no request is smaller than half of it when there is more.
const maxRequest = 1 << 20

// Piece is a run of payload blocks of one stripe, as the extent map gives it.
type Piece struct {
	Segment  layout.SegmentID
	Volume   layout.VolumeID // whose writer wrote the segment; 0: not checked
	Geometry layout.Geometry
	Offset   layout.ShardOffset // the stripe's
	Shape    layout.Shape
	Index    layout.BlockCount // first payload block in the stripe
	Count    layout.BlockCount
	Into     int64       // byte offset in the caller's buffer
	Down     layout.Mask // shards known to be unreachable: not asked
}

// Span is a part of the caller's buffer.
type Span struct {
	Offset int64
	Length int
}

// run is a part of one unit: contiguous in its shard and in the buffer.
type run struct {
	segment  layout.SegmentID
	volume   layout.VolumeID
	geometry layout.Geometry
	stripe   layout.ShardOffset
	shape    layout.Shape
	down     layout.Mask
	shard    layout.ShardIndex
	offset   layout.ShardOffset
	length   int
	into     int64
}

// part gives length bytes of a run from byte skip on.
func (r run) part(skip, length int) run {
	r.offset += layout.ShardOffset(skip)
	r.into += int64(skip)
	r.length = length
	return r
}

// cut appends the runs of a piece: one for each unit it touches.
func cut(runs []run, p *Piece) []run {
	unit := p.Shape.UnitBlocks()
	for i, end := p.Index, p.Index+p.Count; i < end; {
		shard, at := p.Shape.Locate(i)
		n := min(unit-at, end-i)
		runs = append(runs, run{
			segment: p.Segment, volume: p.Volume, geometry: p.Geometry, stripe: p.Offset, shape: p.Shape, down: p.Down, shard: shard,
			offset: p.Offset + layout.ShardOffset(at.Bytes()), length: int(n.Bytes()), into: p.Into + (i - p.Index).Bytes(),
		})
		i += n
	}
	return runs
}

// sortRuns brings each shard's runs together, ascending.
func sortRuns(runs []run) {
	slices.SortStableFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.shard, b.shard), cmp.Compare(a.offset, b.offset))
	})
}

// plan makes the requests of sorted runs.
func (o *Op) plan() {
	for from := 0; from < len(o.runs); {
		to, total := from, 0
		for to < len(o.runs) && o.runs[to].segment == o.runs[from].segment && o.runs[to].shard == o.runs[from].shard {
			total += o.runs[to].length
			to++
		}
		o.planShard(o.runs[from:to], total)
		from = to
	}
}

// planShard splits the runs of one shard into requests of equal size.
func (o *Op) planShard(runs []run, total int) {
	n := (total + maxRequest - 1) / maxRequest
	size := (total/layout.BlockSize + n - 1) / n * layout.BlockSize
	r := o.newRequest(runs[0].segment, runs[0].geometry, runs[0].shard)
	for i := range runs {
		for skip := 0; skip < runs[i].length; {
			room := size - r.bytes
			if room == 0 || len(r.Ranges) == frame.MaxReadRanges {
				r = o.newRequest(runs[0].segment, runs[0].geometry, runs[0].shard)
				room = size
			}
			p := runs[i].part(skip, min(room, runs[i].length-skip))
			r.add(p)
			r.scatter(p)
			skip += p.length
		}
	}
}

// Request is what one shard is asked for. The shell reads its exported fields;
// they don't change while it is under way.
type Request struct {
	ID       int
	Segment  layout.SegmentID
	Geometry layout.Geometry
	Shard    layout.ShardIndex
	Ranges   []frame.ReadRange
	// Scatter says where in the caller's buffer the bytes go, in range order.
	// Empty for a degraded request: its bytes go to memory of the shell's own,
	// which is kept until the read ends.
	Scatter []Span
	// Headers asks for stripe headers in place of block checksums.
	Headers bool

	runs   []run // in range order
	bytes  int
	cell   layout.CellID
	state  state
	resent bool   // after a refresh
	group  *group // of a degraded request
	groups int    // of a direct request: groups not yet decoded, when it was replaced or is late
	right  bool   // of a direct request: all its bytes are in the buffer and right
}

// Bytes is the length of the reply's payload.
func (r *Request) Bytes() int { return r.bytes }

// down tells whether the request's shard is known to be unreachable.
func (r *Request) down() bool { return r.runs[0].down.Has(r.Shard) }

// add joins a run to the request.
func (r *Request) add(p run) {
	r.runs = append(r.runs, p)
	r.bytes += p.length
	if n := len(r.Ranges); n > 0 {
		if last := &r.Ranges[n-1]; last.Offset+layout.ShardOffset(last.Length) == p.offset {
			last.Length += uint32(p.length)
			return
		}
	}
	r.Ranges = append(r.Ranges, frame.ReadRange{Offset: p.offset, Length: uint32(p.length)})
}

// scatter adds a run's place in the buffer.
func (r *Request) scatter(p run) {
	if n := len(r.Scatter); n > 0 {
		if last := &r.Scatter[n-1]; last.Offset+int64(last.Length) == p.into {
			last.Length += p.length
			return
		}
	}
	r.Scatter = append(r.Scatter, Span{p.into, p.length})
}

// newRequest gives an empty request, an old one where there is one.
func (o *Op) newRequest(segment layout.SegmentID, g layout.Geometry, shard layout.ShardIndex) *Request {
	n := len(o.requests)
	if n < cap(o.requests) {
		o.requests = o.requests[:n+1]
	} else {
		o.requests = append(o.requests, nil)
	}
	if o.requests[n] == nil {
		o.requests[n] = &Request{}
	}
	r := o.requests[n]
	*r = Request{ID: n, Segment: segment, Geometry: g, Shard: shard, cell: o.cell,
		Ranges: r.Ranges[:0], Scatter: r.Scatter[:0], runs: r.runs[:0]}
	return r
}
