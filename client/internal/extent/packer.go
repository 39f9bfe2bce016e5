package extent

// packer cuts a stream of rows into pages as full as they get. Rows gather in a
// head, which fits one page, and then in a tail. The head goes out once the
// tail is worth a page of its own, so that a stream never ends in a sliver:
// what is left at the end is one page, or two of about the same size. A lone
// sliver would be merged with its full neighbour, whose rest is a sliver again,
// and so on through the whole tree.
type packer struct {
	cols, limit int
	first       uint64 // first key of the head's part of the key space
	rows        []row  // the head's, then the tail's
	head, tail  span
	emit        func(first uint64, rows []row)
}

func (k *packer) size(s *span) int { return pageHeader + s.size(k.cols) }

func (k *packer) fits(s *span) bool { return k.size(s) <= k.limit && s.n <= maxRows }

func (k *packer) add(r row) {
	if k.tail.n == 0 {
		grown := k.head
		if grown.add(&r); k.fits(&grown) {
			k.head = grown
			k.rows = append(k.rows, r)
			return
		}
	}
	grown := k.tail
	grown.add(&r)
	switch {
	case !k.fits(&grown): // one odd row made all of them wide
		k.ship()
		k.tail = span{}
		k.tail.add(&r)
	case k.size(&grown) > k.limit/2:
		k.tail = grown
		k.rows = append(k.rows, r)
		k.ship()
		return
	default:
		k.tail = grown
	}
	k.rows = append(k.rows, r)
}

// ship emits the head; the tail takes its place.
func (k *packer) ship() {
	k.emit(k.first, k.rows[:k.head.n])
	k.rows = append(k.rows[:0], k.rows[k.head.n:]...)
	k.head, k.tail = k.tail, span{}
	k.first = k.rows[0][0]
}

// underfull tells that what was gathered is worth less than a quarter page.
func (k *packer) underfull() bool {
	return k.tail.n == 0 && k.head.n > 0 && k.size(&k.head) < k.limit/4
}

// single tells that what was gathered fits one page.
func (k *packer) single() bool { return k.tail.n == 0 }

// close emits what is left.
func (k *packer) close() {
	if k.tail.n > 0 {
		cut := k.head.n
		if half := len(k.rows) / 2; k.rowsFit(k.rows[:half]) && k.rowsFit(k.rows[half:]) {
			cut = half
		}
		k.emit(k.first, k.rows[:cut])
		k.first = k.rows[cut][0]
		k.rows = k.rows[cut:]
	}
	if len(k.rows) > 0 {
		k.emit(k.first, k.rows)
	}
	k.begin(0)
}

func (k *packer) rowsFit(rows []row) bool {
	var s span
	for i := range rows {
		s.add(&rows[i])
	}
	return k.fits(&s)
}

// begin starts a new stream for the part of the key space from first on.
func (k *packer) begin(first uint64) {
	k.rows, k.head, k.tail, k.first = k.rows[:0], span{}, span{}, first
}
