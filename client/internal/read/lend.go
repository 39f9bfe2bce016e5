package read

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// A direct request lends its rows to groups that need them: they are in the
// caller's buffer, or will be, and need not be asked for a second time. A read of
// whole stripes with one server gone asks for one unit of parity more, not for
// all other units again. Only requests that are not late lend, so that no two
// groups wait for each other.

// loan is what a shard's direct requests lend to a group.
type loan struct {
	shard layout.ShardIndex
	from  []*Request // by run of the group
	at    []int64    // by run: where in the caller's buffer its rows are
}

// borrow makes the loans that a group can have of the given shards.
func (o *Op) borrow(g *group, free layout.Mask) {
	if g.proud {
		return
	}
	for free &= g.runs[0].shape.Data; free != 0 && g.wants() > 0; free &= free - 1 {
		s, _ := free.Nth(0)
		if l, ok := o.loanOf(g, s); ok {
			g.loans = append(g.loans, l)
			g.asked, g.lent = g.asked.With(s), g.lent.With(s)
		}
	}
}

// wants is how many participants more a group has to ask.
func (g *group) wants() int {
	return g.need - (g.asked &^ g.gone &^ g.minority()).Count()
}

// loanOf finds the rows of a group's runs in what was asked of a shard for the
// caller; ok is false unless all of them are there.
func (o *Op) loanOf(g *group, s layout.ShardIndex) (l loan, ok bool) {
	l = loan{shard: s}
	for i := range g.runs {
		r, at := o.lender(&g.runs[i], s)
		if r == nil {
			return l, false
		}
		l.from, l.at = append(l.from, r), append(l.at, at)
	}
	return l, true
}

// lender finds the direct request that has a run's rows of a shard, and where they
// go in the caller's buffer; nil when there is none that may lend.
func (o *Op) lender(p *run, s layout.ShardIndex) (r *Request, at int64) {
	for _, r := range o.requests[:o.direct] {
		if r.Segment != p.segment || r.Shard != s || r.groups > 0 || r.state != asked && r.state != parked && r.state != good {
			continue
		}
		if at, ok := r.place(p); ok {
			return r, at
		}
	}
	return nil, 0
}

// place finds a run's rows among those of a request of another shard. Both are
// sorted, and rows lie at one offset in all shards.
func (r *Request) place(p *run) (at int64, ok bool) {
	lo, hi := 0, len(r.runs)
	for lo < hi {
		if mid := (lo + hi) / 2; r.runs[mid].end() <= p.offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(r.runs) {
		return 0, false
	}
	d := &r.runs[lo]
	return d.into + int64(p.offset-d.offset), d.stripe == p.stripe && d.offset <= p.offset && p.end() <= d.end()
}

func (r *run) end() layout.ShardOffset { return r.offset + layout.ShardOffset(r.length) }

// paid are the shards whose loan is in the buffer.
func (g *group) paid() (m layout.Mask) {
	for i := range g.loans {
		l := &g.loans[i]
		right := g.lent.Has(l.shard)
		for _, r := range l.from {
			right = right && r.right
		}
		if right {
			m = m.With(l.shard)
		}
	}
	return m
}

// borrows tells whether a group waits for a direct request's rows.
func (g *group) borrows(r *Request) bool {
	if g.state != collecting || !g.lent.Has(r.Shard) {
		return false
	}
	for i := range g.loans {
		for _, from := range g.loans[i].from {
			if from == r {
				return true
			}
		}
	}
	return false
}

// pay tells groups that a direct request's bytes are in the buffer.
func (o *Op) pay(r *Request) {
	r.right = true
	for i := 0; i < len(o.groups) && !o.over; i++ {
		if g := o.groups[i]; g.borrows(r) && len(g.versions) > 0 {
			o.weigh(g, g.most())
		}
	}
}

// recall tells groups that a direct request will not lend after all. If some of its
// blocks are rotten, those that a group wants need not be: the group asks for them.
func (o *Op) recall(r *Request, err error) {
	for i := 0; i < len(o.groups) && !o.over; i++ {
		g := o.groups[i]
		if !g.borrows(r) {
			continue
		}
		g.lent = g.lent.Without(r.Shard)
		if errs.KindOf(err) != errs.Corrupt {
			o.lose(g, r, err)
			continue
		}
		g.asked = g.asked.Without(r.Shard)
		o.recruit(g)
	}
}

// doubt has every unit that a group borrowed asked for with its header, after what
// was decoded from them was wrong: one of them is of another stripe, and the
// headers tell which.
func (o *Op) doubt(g *group) {
	g.proud, g.lent, g.state = true, 0, collecting
	g.asked = g.gone
	for i := range g.versions {
		g.asked |= g.versions[i].good
	}
	o.recruit(g)
}

// Loans are the parts of the caller's buffer that Decode reads.
func (g *Group) Loans() (spans []Span) {
	for i := range g.group.loans {
		if l := &g.group.loans[i]; g.group.borrowed(l.shard) {
			for j, at := range l.at {
				spans = append(spans, Span{at, g.group.runs[j].length})
			}
		}
	}
	return spans
}

// borrowed tells whether a complete group decodes from a shard's loan.
func (g *group) borrowed(s layout.ShardIndex) bool { return g.lent.Has(s) && g.good.Has(s) }
