package extent

import "strake/internal/layout"

// rootPage is what a root page holds. The map segments' table counts all pages
// but the root page itself, so that its content doesn't depend on where it goes.
type rootPage struct {
	extents, live node
	segments      []row // map segments: id, live page blocks
}

func (p *rootPage) encode(covers layout.Seq) []byte {
	b := appendHeader(nil, KindRoot, 0, uint64(covers))
	for _, n := range [...]*node{&p.extents, &p.live} {
		b = append(b, n.level)
		b = appendTable(b, n.allRows(), n.columns())
	}
	b = append(b, 0)
	return pad(appendTable(b, p.segments, liveCols))
}

func (n *node) allRows() []row {
	rows := make([]row, n.rows)
	for i := range rows {
		rows[i] = n.row(i, n.columns())
	}
	return rows
}

// newNode packs rows.
func newNode(kind Kind, level uint8, rows []row) node {
	n := node{kind: kind, level: level}
	n.table, _, _ = parseTable(appendTable(nil, rows, n.columns()), n.columns())
	return n
}

func decodeRootPage(ref PageRef, b []byte) (*rootPage, error) {
	b, err := openPage(ref, append([]byte(nil), b...))
	if err != nil {
		return nil, err
	}
	if ref.Level != 0 {
		return nil, bad("root page at level %d", ref.Level)
	}
	p := &rootPage{}
	segments := node{kind: KindLive}
	p.extents.kind, p.live.kind = KindExtent, KindLive
	for _, n := range [...]*node{&p.extents, &p.live, &segments} {
		if b, err = n.decodeSection(b); err != nil {
			return nil, err
		}
	}
	if segments.level != 0 || segments.rows > MaxMapSegments || !isPadding(b) {
		return nil, bad("root page with %d map segments at level %d, or bytes after them", segments.rows, segments.level)
	}
	p.segments = segments.allRows()
	return p, nil
}

func (n *node) decodeSection(b []byte) (rest []byte, err error) {
	if len(b) == 0 || b[0] > maxLevel {
		return nil, bad("root page ends early or is too high")
	}
	n.level = b[0]
	if n.table, rest, err = parseTable(b[1:], n.columns()); err != nil {
		return nil, err
	}
	return rest, n.check(0)
}
