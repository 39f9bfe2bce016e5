package state

import (
	"bytes"

	"strake/internal/errs"
	"strake/internal/layout"
)

func (c RecordRoot) check() error {
	op := "record root"
	if c.Root.Number == 0 || len(c.Root.Page) == 0 || len(c.Root.Page) > MaxRootPage {
		return errs.New(errs.InvalidArgument, op, "root %d with a page of %d bytes, 1 to %d are possible", c.Root.Number, len(c.Root.Page), MaxRootPage)
	}
	if len(c.Retired) > MaxSegmentList || len(c.RetiredMap) > MaxSegmentList {
		return errs.New(errs.TooLarge, op, "%d data and %d map segments retired, at most %d each", len(c.Retired), len(c.RetiredMap), MaxSegmentList).
			WithHint("retire the rest with the next root")
	}
	return checkSeals(op, c.MapLists)
}

func (c RecordRoot) apply(t *tables, r *Result) error {
	op := "record root"
	v, err := t.current(op, c.Volume, c.Epoch)
	if err != nil {
		return err
	}
	r.Volume = v.ID
	if c.Root.Number == v.Root.Number && c.Root.Covers == v.Root.Covers && bytes.Equal(c.Root.Page, v.Root.Page) {
		r.Repeat = true
		r.Segments = c.retiredOf(t)
		return nil
	}
	if err := c.checkRoot(v); err != nil {
		return err
	}
	lists, err := c.judgeLists(t, v)
	if err != nil {
		return err
	}
	retired, err := c.judgeRetired(t, v)
	if err != nil {
		return err
	}
	v.Root = c.Root
	v.Root.Page = bytes.Clone(c.Root.Page)
	v.LastSeq = max(v.LastSeq, c.Root.Covers)
	v.forgetCuts()
	for i := range lists {
		s := t.segment(lists[i].Segment)
		s.Seal, s.Listed = lists[i], true
		t.putSegment(s, v)
	}
	for _, s := range retired {
		t.putSegment(s, v)
		r.emit(SegmentRetired{Segment: s.ID})
	}
	r.Segments = c.retiredOf(t)
	t.forgetReplayed(v)
	if c.Flat && v.Origin != 0 && v.Flat == 0 {
		v.Flat, v.Flattening = v.Root.Number, false
		r.emit(VolumeFlattened{v.ID})
	}
	t.putVolume(v)
	r.emit(RootRecorded{Volume: v.ID, Number: v.Root.Number, Covers: v.Root.Covers})
	t.settle(v, r)
	return nil
}

func (c RecordRoot) checkRoot(v *Volume) error {
	op := "record root of volume " + v.path()
	switch {
	case v.Holder == 0:
		return errs.New(errs.LeaseLost, op, "nobody holds epoch %d any more", c.Epoch).WithHint("reopen the volume")
	case !v.Closed:
		return errs.New(errs.Conflict, op, "the epochs before %d are not closed", c.Epoch).WithHint("finish the recovery first")
	case c.Root.Number != v.Root.Number+1:
		return errs.New(errs.Conflict, op, "root %d after root %d", c.Root.Number, v.Root.Number).WithHint("roots are numbered without gaps")
	case c.Root.Covers < v.Root.Covers:
		return errs.New(errs.InvalidArgument, op, "root %d covers seq %d, the one before covered %d", c.Root.Number, c.Root.Covers, v.Root.Covers)
	}
	return nil
}

// judgeLists checks what the root says of unsealed map segments. Lists only
// grow, because a page that a root names must stay readable. Lists of segments
// that were sealed meanwhile must be their seals; empty ones say nothing.
func (c RecordRoot) judgeLists(t *tables, v *Volume) ([]Seal, error) {
	lists, err := t.judgeSeals("record root", v, c.MapLists, func(s *Segment, _ *Seal) error {
		if !s.Map || s.State != Open {
			return errs.New(errs.InvalidArgument, "record root", "segment %d is %v and no open map segment", s.ID, s.State)
		}
		return nil
	})
	kept := lists[:0]
	for _, l := range lists {
		if l.Count > 0 {
			kept = append(kept, l)
		}
	}
	return kept, err
}

// judgeRetired gives the segments that this root retires, with Retired set.
// The lists are the writer's wish: it knows which segments its map no longer
// names, not which of them are sealed. Those that are retired or gone already,
// that are not sealed yet, or that end above what the root covers are left out;
// a later root may retire them. Those of a branch's ancestors are theirs.
func (c RecordRoot) judgeRetired(t *tables, v *Volume) ([]*Segment, error) {
	var out []*Segment
	for i, id := range append(append([]layout.SegmentID(nil), c.Retired...), c.RetiredMap...) {
		s, err := t.named("record root", id)
		if err != nil {
			return nil, err
		}
		if s == nil || s.Volume != v.ID || s.gone() {
			continue
		}
		if s.Map != (i >= len(c.Retired)) {
			return nil, errs.New(errs.InvalidArgument, "record root", "segment %d (map %v) can't be retired here", id, s.Map).
				WithHint("retire data and map segments apart")
		}
		if s.Unsealed() || !s.Map && s.Seal.Last > c.Root.Covers {
			continue
		}
		if s.Retired = uint64(c.Root.Covers); s.Map {
			s.Retired = uint64(c.Root.Number)
		}
		out = append(out, s)
	}
	return out, nil
}

// gone tells whether the head no longer names the segment.
func (s *Segment) gone() bool { return s.State == Dropped || s.Retired != 0 }

// retiredOf gives those of both lists that are retired, gone, or never were the
// volume's own.
func (c RecordRoot) retiredOf(t *tables) (out []layout.SegmentID) {
	for _, id := range append(append([]layout.SegmentID(nil), c.Retired...), c.RetiredMap...) {
		if s := t.segment(id); s == nil || s.Volume != c.Volume || s.gone() {
			out = append(out, id)
		}
	}
	return out
}

// forgetCuts drops cuts that the root covers, but for the newest, which tells
// the next writer's first seq.
func (v *Volume) forgetCuts() {
	var cuts []Cut
	for i, c := range v.Cuts {
		if c.Seq > v.Root.Covers || i == len(v.Cuts)-1 {
			cuts = append(cuts, c)
		}
	}
	v.Cuts = cuts
}

// forgetReplayed takes the segments that the new root covers out of replay.
func (t *tables) forgetReplayed(v *Volume) {
	for _, id := range t.members(t.replayed, uint64(v.ID)) {
		if s := t.segment(id); !s.replayed(v) {
			t.replayed.remove(uint64(v.ID), uint64(id))
		}
	}
}
