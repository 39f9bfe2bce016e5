package state

import (
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

// checkSeals bounds a list of seals and refuses a segment that stands twice.
func checkSeals(op string, seals []Seal) error {
	if len(seals) > MaxUnsealed {
		return errs.New(errs.TooLarge, op, "%d seals, at most %d", len(seals), MaxUnsealed)
	}
	seen := make(map[layout.SegmentID]bool, len(seals))
	for i := range seals {
		if seen[seals[i].Segment] {
			return errs.New(errs.InvalidArgument, op, "segment %d stands twice", seals[i].Segment)
		}
		if n := len(seals[i].Shards); n > layout.MaxShards {
			return errs.New(errs.InvalidArgument, op, "segment %d: a seal of %d shards", seals[i].Segment, n)
		}
		seen[seals[i].Segment] = true
	}
	return nil
}

func (c SealSegments) check() error {
	if len(c.Seals) == 0 {
		return errs.New(errs.InvalidArgument, "seal segments", "no seals")
	}
	return checkSeals("seal segments", c.Seals)
}

func (c SealSegments) apply(t *tables, r *Result) error {
	op := "seal segments"
	v, err := t.current(op, c.Volume, c.Epoch)
	if err != nil {
		return err
	}
	r.Volume = v.ID
	todo, err := t.judgeSeals(op, v, c.Seals, func(s *Segment, _ *Seal) error {
		if s.Epoch != c.Epoch {
			return errs.New(errs.Conflict, op, "segment %d is of epoch %d: its end is decided with all others of that epoch", s.ID, s.Epoch).
				WithHint("finish the recovery with CloseEpoch")
		}
		if s.State == Allocated {
			return errs.New(errs.Conflict, op, "segment %d is still being created", s.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Repeat = len(todo) == 0
	t.sealAll(todo, v, r)
	t.putVolume(v)
	return nil
}

// judgeSeals looks at each seal before any segment is changed. An equal seal of
// a sealed segment is a repeat and left out of todo; an unequal one conflicts.
// A segment that left the state had ended, and nothing that it held counts: its
// seal is left out too.
// allow has the last word on unsealed segments.
func (t *tables) judgeSeals(op string, v *Volume, seals []Seal, allow func(*Segment, *Seal) error) (todo []Seal, err error) {
	for i := range seals {
		seal := &seals[i]
		s, err := t.named(op, seal.Segment)
		if err != nil {
			return nil, err
		}
		if s == nil { // a repeat that comes after the segment was deleted
			continue
		}
		if s.Volume != v.ID {
			return nil, errs.New(errs.NotFound, op, "segment %d is no segment of volume %s", seal.Segment, v.path())
		}
		if err := seal.fits(s); err != nil {
			return nil, err
		}
		if !s.Unsealed() {
			if !s.sealedAs(seal) {
				return nil, errs.New(errs.Conflict, op, "segment %d is %v at seq %d with %d stripes, not at seq %d with %d",
					s.ID, s.State, s.Seal.Last, s.Seal.Count, seal.Last, seal.Count).
					WithHint("a segment is sealed once; read its seal and go on from there")
			}
			continue
		}
		if s.Listed && seal.Count < s.Seal.Count {
			return nil, errs.New(errs.Conflict, op, "map segment %d: a root names %d stripes, the seal has %d", s.ID, s.Seal.Count, seal.Count)
		}
		if err := allow(s, seal); err != nil {
			return nil, err
		}
		todo = append(todo, *seal)
	}
	return todo, nil
}

// sealedAs tells whether the segment ended as the seal says.
func (s *Segment) sealedAs(seal *Seal) bool {
	if s.State == Dropped {
		return seal.Count == 0
	}
	return s.Seal.equal(seal)
}

func (t *tables) sealAll(seals []Seal, v *Volume, r *Result) {
	for i := range seals {
		t.sealSegment(t.segment(seals[i].Segment), seals[i], v, r)
	}
}

// sealSegment ends a segment. An empty one holds nothing and is dropped.
func (t *tables) sealSegment(s *Segment, seal Seal, v *Volume, r *Result) {
	if seal.Count == 0 {
		t.setDropped(s, v, r)
		return
	}
	s.State, s.Seal, s.Listed = Sealed, seal, false
	if !s.Map {
		v.LastSeq = max(v.LastSeq, seal.Last)
	}
	t.putSegment(s, v)
	r.emit(SegmentSealed{Segment: s.ID, First: seal.First, Last: seal.Last, Count: seal.Count})
}

func (c CloseEpoch) check() error {
	if len(c.Undecided) > MaxUndecided {
		return errs.New(errs.TooLarge, "close epoch", "a reason of %d bytes, at most %d", len(c.Undecided), MaxUndecided)
	}
	if c.Undecided != "" && (len(c.Seals) > 0 || c.Cut != 0) {
		return errs.New(errs.InvalidArgument, "close epoch", "an undecided recovery has neither cut nor seals")
	}
	if c.AcceptLoss && (c.Undecided != "" || c.Cut < c.AcceptAfter) {
		return errs.New(errs.InvalidArgument, "close epoch", "loss was accepted after seq %d, not after %d", c.AcceptAfter, c.Cut)
	}
	return checkSeals("close epoch", c.Seals)
}

func (c CloseEpoch) apply(t *tables, r *Result) error {
	op := "close epoch"
	v, err := t.current(op, c.Volume, c.Epoch)
	if err != nil {
		return err
	}
	r.Volume, r.Epoch = v.ID, v.Epoch
	if c.Undecided != "" {
		return c.block(t, v, r)
	}
	if stands := t.vouched(v); !v.Closed && c.Cut < stands {
		return errs.New(errs.Conflict, op, "volume %s: cut %d, but seals, cuts, root and snapshots vouch for seq %d", v.path(), c.Cut, stands).
			WithHint("what is sealed or frozen stands: the log ends no earlier")
	}
	todo, err := t.judgeSeals(op, v, c.Seals, c.allow)
	if err != nil {
		return err
	}
	if v.Closed {
		return c.repeat(v, todo, r)
	}
	if err := t.checkComplete(op, v, c.Epoch, todo); err != nil {
		return err
	}
	t.sealAll(todo, v, r)
	t.reach(v)
	v.addCut(Cut{Before: c.Epoch, Seq: c.Cut})
	v.Closed, v.Undecided = true, ""
	if c.AcceptLoss {
		c.recordLoss(t, v, r)
	}
	t.putVolume(v)
	r.emit(EpochClosed{Volume: v.ID, Epoch: c.Epoch, Cut: c.Cut})
	return nil
}

// recordLoss puts on record who gave up what.
func (c CloseEpoch) recordLoss(t *tables, v *Volume, r *Result) {
	loss := Loss{Epoch: c.Epoch, Cut: c.Cut, After: c.AcceptAfter, AtUnix: c.AtUnix}
	if holder, ok := t.sessions.Get(v.Holder); ok {
		loss.By = holder.Owner
	}
	losses := append(slices.Clone(v.Losses), loss)
	v.Losses = losses[max(0, len(losses)-MaxLosses):]
	r.emit(LossAccepted{Volume: v.ID, Epoch: c.Epoch, Cut: c.Cut, By: loss.By})
}

// block records why recovery can't decide. The epoch stays open, and a later
// CloseEpoch may still close it.
func (c CloseEpoch) block(t *tables, v *Volume, r *Result) error {
	if v.Closed {
		return errs.New(errs.Conflict, "close epoch", "volume %s: everything before epoch %d is decided already", v.path(), c.Epoch)
	}
	if v.Undecided == c.Undecided {
		r.Repeat = true
		return nil
	}
	v.Undecided = c.Undecided
	t.putVolume(v)
	r.emit(RecoveryBlocked{Volume: v.ID, Epoch: c.Epoch, Reason: c.Undecided})
	return nil
}

// allow refuses a seal that can't be part of this recovery.
func (c CloseEpoch) allow(s *Segment, seal *Seal) error {
	if s.Epoch >= c.Epoch {
		return errs.New(errs.Conflict, "close epoch", "segment %d is the recoverer's own, of epoch %d", s.ID, s.Epoch).
			WithHint("seal it with SealSegments")
	}
	if seal.Last > c.Cut {
		return errs.New(errs.InvalidArgument, "close epoch", "segment %d ends at seq %d, beyond the cut %d", s.ID, seal.Last, c.Cut).
			WithHint("seal each segment at its stripes up to the cut")
	}
	return nil
}

// repeat: the first CloseEpoch decided. An equal one succeeds; one that cuts
// elsewhere is a rival's.
func (c CloseEpoch) repeat(v *Volume, todo []Seal, r *Result) error {
	was := layout.Seq(0)
	for _, cut := range v.Cuts {
		if cut.Before <= c.Epoch {
			was = cut.Seq
		}
	}
	if was != c.Cut || len(todo) > 0 {
		return errs.New(errs.Conflict, "close epoch", "volume %s: epoch %d was closed at seq %d, not at %d", v.path(), c.Epoch, was, c.Cut).
			WithHint("the first recovery decided; open the volume again and start from its cut")
	}
	r.Repeat = true
	return nil
}

// checkComplete: every segment that lower epochs left unsealed has its seal here.
func (t *tables) checkComplete(op string, v *Volume, e layout.Epoch, seals []Seal) error {
	sealed := make(map[layout.SegmentID]bool, len(seals))
	for i := range seals {
		sealed[seals[i].Segment] = true
	}
	for _, id := range t.members(t.unsealed, uint64(v.ID)) {
		if s := t.segment(id); s.Epoch < e && !sealed[id] {
			return errs.New(errs.InvalidArgument, op, "segment %d of epoch %d has no seal", id, s.Epoch).
				WithHint("an epoch is closed as a whole: a seal for each unsealed segment of lower epochs, in one command")
		}
	}
	return nil
}
