package extent

import (
	"strake/internal/layout"
)

// Lookup appends the extents of r to dst, in block order and without gaps:
// holes are Zero extents. When pages are missing it returns them, and the
// extents mean nothing: load them, Install, call again. It allocates only when
// dst is too short or pages are missing.
func (m *Map) Lookup(r layout.Range, dst []Extent) ([]Extent, []PageRef) {
	g := gather{m: m, dst: dst, floor: len(dst)}
	g.layer(0, uint64(r.Start), uint64(r.End()))
	g.flush()
	return g.dst, g.need
}

// Current appends the parts of e that still lie where e says. The cleaner asks
// under the map lock, right before a relocation stripe takes its seq.
func (m *Map) Current(e Extent, dst []Extent) ([]Extent, []PageRef) {
	at := len(dst)
	dst, need := m.Lookup(e.Range, dst)
	kept := at
	for _, now := range dst[at:] {
		was := e.Place
		was.Index += uint32(now.Start - e.Start)
		if now.Zero == e.Zero && (e.Zero || now.Place == was) {
			dst[kept] = now
			kept++
		}
	}
	return dst[:kept], need
}

// gather collects what a range maps to, from the newest layer down to the base.
type gather struct {
	m     *Map
	dst   []Extent
	floor int
	last  run // not yet in dst; count 0: none
	need  []PageRef
}

func (g *gather) layer(depth int, from, to uint64) {
	if depth == len(g.m.layers) {
		g.base(from, to)
		return
	}
	l := g.m.layers[depth]
	for p := l.touch(from); from < to; p = l.runs.next(p) {
		r := l.runs.at(p)
		if r == nil || r.start >= to {
			g.layer(depth+1, from, to)
			return
		}
		if r.start > from {
			g.layer(depth+1, from, r.start)
			from = r.start
		}
		g.emit(r.clip(from, to))
		from = min(r.end(), to)
	}
}

func (g *gather) base(from, to uint64) {
	for from < to {
		leaf := g.m.find(&g.m.extents, from, 0)
		hi := min(leaf.hi, to)
		if leaf.missing() {
			g.miss(leaf.ref)
		} else if len(g.need) == 0 {
			g.leaf(leaf.node, from, hi)
		}
		from = hi
	}
}

// miss notes a missing page; ranges in order hit the same one in a row.
func (g *gather) miss(ref PageRef) {
	if n := len(g.need); n == 0 || g.need[n-1] != ref {
		g.need = append(g.need, ref)
	}
}

func (g *gather) leaf(n *node, from, to uint64) {
	for i := max(n.search(from), 0); i < n.rows; i++ {
		r := n.run(i)
		if r.start >= to {
			break
		}
		if r.end() <= from {
			continue
		}
		g.zeros(from, r.start)
		r = r.clip(from, to)
		g.emit(r)
		from = r.end()
	}
	g.zeros(from, to)
}

// zeros emits a hole, in steps that a run can count.
func (g *gather) zeros(from, to uint64) {
	for from < to {
		n := min(to-from, 1<<31)
		g.emit(run{start: from, count: uint32(n)})
		from += n
	}
}

func (g *gather) emit(r run) {
	r.unsettled = false
	if g.last.count > 0 && g.last.joins(r) {
		g.last.count += r.count
		return
	}
	g.flush()
	g.last = r
}

func (g *gather) flush() {
	if g.last.count > 0 {
		g.dst = append(g.dst, g.last.extent())
		g.last.count = 0
	}
}
