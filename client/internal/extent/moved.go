package extent

import (
	"strake/internal/errs"
	"strake/proto/stripe"
)

// Moved says that a stripe that is not flushed was appended again elsewhere
// (same seq and content): blocks that still lie in the old copy lie in the new
// one from now on. Only layers can hold such a stripe, since a root covers
// flushed stripes alone, so no page is needed. Moving a stripe that a
// checkpoint already writes is a bug of the caller: Internal.
func (m *Map) Moved(old, new *stripe.Header) error {
	if old.Seq != new.Seq || old.Blocks != new.Blocks {
		return errs.New(errs.InvalidArgument, "move stripe", "seq %d with %d blocks becomes seq %d with %d blocks",
			old.Seq, old.Blocks, new.Seq, new.Blocks)
	}
	if c := m.checkpoint; c != nil && c.begun && old.Seq <= c.covers {
		return errs.New(errs.Internal, "move stripe", "seq %d moves while the checkpoint up to %d is written", old.Seq, c.covers)
	}
	if old.Seq <= m.covers {
		return errs.New(errs.Internal, "move stripe", "seq %d moves, but the root covers %d", old.Seq, m.covers)
	}
	add(&m.active().delta, uint64(new.Segment), 0)
	for i := len(m.layers) - 1; i >= 0; i-- {
		for _, r := range old.Ranges {
			if r.Kind == stripe.Write {
				m.moveIn(i, placeOf(old), placeOf(new), uint64(r.Start), uint64(r.Start)+uint64(r.Count))
			}
		}
	}
	return nil
}

// moveIn changes the place of the old stripe's runs in one layer.
func (m *Map) moveIn(layer int, from, to run, lo, hi uint64) {
	l := m.layers[layer]
	for p := l.touch(lo); ; p = l.runs.next(p) {
		r := l.runs.at(p)
		if r == nil || r.start >= hi {
			return
		}
		if r.segment == 0 || !r.sameStripe(from) {
			continue
		}
		r.segment, r.offset, r.unit, r.mask = to.segment, to.offset, to.unit, to.mask
		l.count(from.segment, -int64(r.count))
		l.count(to.segment, int64(r.count))
		if layer > 0 {
			m.recountHidden(*r, from.segment)
		}
	}
}

// recountHidden: the active layer subtracted what it hides of r from the old
// segment; from now on it is the new one's.
func (m *Map) recountHidden(r run, old uint64) {
	l := m.active()
	l.walk(r.start, r.end(), func(over *run, lo, hi uint64) {
		if over != nil {
			l.count(old, int64(hi-lo))
			l.count(r.segment, -int64(hi-lo))
		}
	})
}
