package recovery_test

import (
	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// reference decides as the model does, slowly and obviously, and each of its
// rules can be switched off.
func reference(off string) decider {
	return func(in recovery.Input) (recovery.Plan, error) {
		if off == "never" {
			in = torn(in)
		}
		r := &ref{in: in, off: off, stands: map[layout.Seq]bool{}, fell: map[layout.Seq]bool{}, stuck: map[layout.Seq]bool{}, found: map[layout.Seq][]found{}}
		for q := layout.Seq(1); q <= in.Covers || off == "decided" && q <= in.LastCut; q++ {
			r.stands[q] = true
		}
		for _, s := range in.Sealed {
			for q := s.First; q <= s.Last; q++ {
				r.stands[q] = true
			}
		}
		for _, s := range in.Segments {
			if off != "kfenced" && r.tooFew(s) {
				return recovery.Plan{}, errs.Undecided
			}
			r.segment(s)
		}
		return r.plan()
	}
}

// torn answers 'never had it' where the shard can't tell.
func torn(in recovery.Input) recovery.Input {
	out := in
	out.Segments = nil
	for _, s := range in.Segments {
		shards := s.Shards
		s.Shards = nil
		for _, sh := range shards {
			list := sh.Stripes
			sh.Stripes = nil
			for _, st := range list {
				if st.Header != nil {
					sh.Stripes = append(sh.Stripes, st)
				}
			}
			s.Shards = append(s.Shards, sh)
		}
		out.Segments = append(out.Segments, s)
	}
	return out
}

type ref struct {
	in                  recovery.Input
	off                 string
	stands, fell, stuck map[layout.Seq]bool
	lists               [][]*stripe.Header // what counts, by segment
	top, flushed        layout.Seq
	found               map[layout.Seq][]found // in the order of segments
}

type found struct {
	segment layout.SegmentID
	verdict byte
}

// tooFew: more than m shards didn't give a list.
func (r *ref) tooFew(s recovery.Segment) bool {
	unknown := 0
	for _, sh := range s.Shards {
		if sh.State != recovery.Listed {
			unknown++
		}
	}
	return unknown > int(s.Geometry.M)
}

func (r *ref) segment(s recovery.Segment) {
	var list []*stripe.Header
	whole := byte('s')
	for q := layout.Seq(1); q < 64; q++ {
		v, h := r.copyOf(s, q)
		if v == 0 {
			continue
		}
		r.top = max(r.top, q)
		if whole != 's' && v != 'f' && r.off != "prefix" {
			v = whole
		}
		r.found[q] = append(r.found[q], found{s.ID, v})
		switch v {
		case 's':
			r.stands[q] = true
			list = append(list, h)
		case 'f':
			r.fell[q] = true
			whole = 'f'
		case 'u':
			r.stuck[q] = true
			whole = 'u'
		}
	}
	r.lists = append(r.lists, list)
}

// copyOf gives 's' stands, 'f' falls, 'u' undecided, 0 not listed.
func (r *ref) copyOf(s recovery.Segment, q layout.Seq) (byte, *stripe.Header) {
	var h *stripe.Header
	listed := false
	for _, sh := range s.Shards {
		if st, ok := find(sh, q); ok {
			listed = true
			if st.Header != nil {
				h = st.Header
				r.flushed = max(r.flushed, h.Flushed)
			}
		}
	}
	if !listed {
		return 0, nil
	}
	parts, need := s.Geometry.ParityMask(), 99
	if h != nil {
		parts, need = h.Participants(), h.Shape.Data.Count()
	}
	have, dataNever := 0, 0
	for i, sh := range s.Shards {
		st, ok := find(sh, q)
		if h == nil && i < int(s.Geometry.K) && !ok && sh.State == recovery.Listed {
			if dataNever++; dataNever == int(s.Geometry.K) {
				return 'f', nil // some data shard takes part
			}
		}
		switch {
		case !parts.Has(layout.ShardIndex(i)):
		case ok && st.Header != nil:
			have++
		case !ok && sh.State == recovery.Listed:
			return 'f', h
		}
	}
	if have >= need {
		return 's', h
	}
	return 'u', h
}

func find(sh recovery.Shard, q layout.Seq) (recovery.Stripe, bool) {
	for _, st := range sh.Stripes {
		if st.Seq == q {
			return st, true
		}
	}
	return recovery.Stripe{}, false
}

// sealed tells whether a sealed segment holds a seq for sure.
func (r *ref) sealed(q layout.Seq) bool {
	for _, s := range r.in.Sealed {
		if s.First <= q && q <= s.Last && int(s.Count) == int(s.Last-s.First)+1 {
			return true
		}
	}
	return false
}

// newest is the segment of the last copy that did not fall, and what it is.
func (r *ref) newest(q layout.Seq) (last found) {
	for _, f := range r.found[q] {
		if f.verdict != 'f' {
			last = f
		}
	}
	return last
}

// lost tells whether a seq that is known to stand is out of reach.
func (r *ref) lost(q layout.Seq) bool {
	switch {
	case r.sealed(q):
		return false
	case q <= r.in.Covers:
		return r.newest(q).verdict == 'u'
	}
	stuck := false
	for _, f := range r.found[q] {
		if f.verdict == 's' {
			return false
		}
		stuck = stuck || f.verdict == 'u'
	}
	return stuck
}

func (r *ref) plan() (recovery.Plan, error) {
	r.flushed = max(r.flushed, r.in.LastCut)
	for _, s := range r.in.Sealed {
		r.top, r.flushed = max(r.top, s.Last), max(r.flushed, s.Last)
	}
	for q := layout.Seq(1); q <= r.flushed && r.off != "decided"; q++ {
		if r.lost(q) || q <= r.in.LastCut && !r.stands[q] {
			return recovery.Plan{}, errs.Undecided
		}
	}
	q := r.in.LastCut + 1
	for ; q <= r.top; q++ {
		switch {
		case r.off == "joint" && r.fell[q]:
			return r.finish(q - 1), nil
		case r.stands[q]:
			continue
		case r.stuck[q]:
			return recovery.Plan{}, errs.Undecided
		case r.fell[q] || r.off != "gapcut":
			return r.finish(q - 1), nil
		}
	}
	return r.finish(q - 1), nil
}

func (r *ref) finish(cut layout.Seq) recovery.Plan {
	p := recovery.Plan{Cut: cut, Seals: []stripe.Seal{}, Flushed: r.flushed}
	held := map[layout.Seq]bool{}
	for i, s := range r.in.Segments {
		seal, open := stripe.NewSeal(s.ID, s.Geometry), true
		for _, h := range r.lists[i] {
			open = open && h.Seq <= cut && (r.off == "whole" || r.have(i, h.Seq) == h.Participants() && r.seen(s) || h.Seq <= p.Flushed && r.newest(h.Seq).segment == s.ID && !r.sealed(h.Seq))
			if open {
				held[h.Seq] = true
				seal.Add(h)
			}
		}
		p.Seals = append(p.Seals, seal)
	}
	for q := r.in.Covers + 1; q <= cut; q++ {
		if t := r.latest(q); t.Header != nil && !held[q] && !r.sealed(q) {
			p.Tail = append(p.Tail, t)
		}
	}
	return p
}

// seen tells whether every shard gave its list.
func (r *ref) seen(s recovery.Segment) bool {
	for _, sh := range s.Shards {
		if sh.State != recovery.Listed && r.off != "unseen" {
			return false
		}
	}
	return true
}

func (r *ref) have(i int, q layout.Seq) (m layout.Mask) {
	for j, sh := range r.in.Segments[i].Shards {
		if st, ok := find(sh, q); ok && st.Header != nil {
			m = m.With(layout.ShardIndex(j))
		}
	}
	return m
}

// latest is the latest counted copy of q.
func (r *ref) latest(q layout.Seq) (t recovery.Tail) {
	for i, list := range r.lists {
		for _, h := range list {
			newer := t.Header == nil || h.Epoch > t.Header.Epoch || h.Epoch == t.Header.Epoch && h.Segment > t.Header.Segment
			if h.Seq == q && newer {
				t = recovery.Tail{Header: h, Segment: h.Segment, Have: r.have(i, q)}
			}
		}
	}
	return t
}
