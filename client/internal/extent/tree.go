package extent

import "math"

// tree is one of the map's two trees, extents or live blocks. Its top node is
// part of the root page. The key space [0, 2^64) is cut in parts: a page holds
// the keys from its First up to the next page's; keys before a node's first
// row belong to no page and hold nothing.
type tree struct {
	top node
}

// part is a page's share of the key space, [lo, hi). node is nil while the page
// is missing; ref is the zero ref for a top node and where no page is.
type part struct {
	node       *node
	ref        PageRef
	lo, hi, up uint64 // up: where the parent's part ends
}

func (p part) missing() bool { return p.node == nil }

const keyEnd = math.MaxUint64

// find descends to the page of the given level that key belongs to. When a page
// on the way is missing, the part is that page's.
func (m *Map) find(t *tree, key uint64, level uint8) part {
	p := part{node: &t.top, hi: keyEnd, up: keyEnd}
	if !m.loaded {
		return part{ref: m.root, hi: keyEnd, up: keyEnd}
	}
	if level > t.top.level {
		return part{node: m.empty(t.top.kind, level), hi: keyEnd, up: keyEnd}
	}
	for p.node.level > level {
		n := p.node
		p.up = p.hi
		i := n.search(key)
		if i+1 < n.rows {
			p.hi = min(p.hi, n.get(i+1, colFirst))
		}
		if i < 0 {
			return part{node: m.empty(t.top.kind, level), lo: p.lo, hi: p.hi, up: p.up}
		}
		p.ref = n.child(i)
		p.lo = max(p.lo, p.ref.First)
		if p.node = m.cache.get(p.ref); p.node == nil {
			return p
		}
	}
	return p
}

// empty is a page without rows, for a part of the key space without a page.
func (m *Map) empty(kind Kind, level uint8) *node {
	m.nothing = node{kind: kind, level: level}
	return &m.nothing
}
