package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

func (c AcquireLease) check() error { return c.Volume.check("acquire lease") }
func (c ReleaseLease) check() error { return nil }

// apply begins the next epoch. Everything that lower epochs may still append
// to is ended here or is left to CloseEpoch:
//
//   - allocated segments, which no writer was told of, are dropped;
//   - open map segments are sealed at the list attached to the newest root, and
//     dropped where there is none: what is beyond it no root names;
//   - open data segments stay unsealed: only their shards can tell what counts.
//
// When nothing is left, the epoch is closed at once.
func (c AcquireLease) apply(t *tables, r *Result) error {
	v, err := t.resolve("acquire lease", c.Volume)
	if err != nil {
		return err
	}
	op := "acquire lease of volume " + v.path()
	session, ok := t.sessions.Get(c.Session)
	if !ok {
		return errs.New(errs.LeaseLost, op, "session %d is gone", c.Session).WithHint("open a new session")
	}
	if v.Holder != 0 && v.Holder != c.Session && !c.Force && !t.yields(v.Holder, session) {
		return t.leaseHeld(op, v)
	}
	old := v.Holder
	if old == c.Session {
		old = 0
	}
	v.Epoch++
	v.Holder = c.Session
	r.emit(LeaseTaken{Volume: v.ID, Epoch: v.Epoch, Session: c.Session, Old: old})
	data := t.endUnsealed(v, r, false)
	v.Closed = data == 0
	if v.Closed {
		v.Undecided = ""
		if v.Epoch > 1 {
			v.addCut(Cut{Before: v.Epoch, Seq: t.vouched(v)})
		}
	}
	t.putVolume(v)
	r.Volume, r.Epoch, r.Open = v.ID, v.Epoch, t.open(v)
	return nil
}

// yields tells whether the holder gives way without force: a janitor does, to
// all but janitors.
func (t *tables) yields(holder layout.SessionID, to *Session) bool {
	h, _ := t.sessions.Get(holder)
	return h.Janitor && !to.Janitor
}

// endUnsealed ends the unsealed segments that need no recovery, and with
// givenBack also open data segments, which their writer says are empty. It
// tells how many are left.
func (t *tables) endUnsealed(v *Volume, r *Result, givenBack bool) (left int) {
	for _, id := range t.members(t.unsealed, uint64(v.ID)) {
		s := t.segment(id)
		switch {
		case s.State == Open && s.Map && s.Listed:
			t.sealSegment(s, s.Seal, v, r)
		case s.State == Open && !s.Map && !givenBack:
			left++
		default:
			t.setDropped(s, v, r)
		}
	}
	return left
}

// members gives the segments of one owner of an index that is bounded.
func (t *tables) members(x index, owner uint64) (ids []layout.SegmentID) {
	x.ascend(owner, 0, func(id uint64) bool { ids = append(ids, layout.SegmentID(id)); return true })
	return ids
}

// addCut appends a cut. One with the same seq says no more than the newer. Past
// the bound the oldest goes: every sealed segment of its epochs ends at or
// before it (I5), so it only repeats what the seals say.
func (v *Volume) addCut(c Cut) {
	cuts := append([]Cut(nil), v.Cuts...)
	if n := len(cuts); n > 0 && cuts[n-1].Seq == c.Seq {
		cuts = cuts[:n-1]
	}
	cuts = append(cuts, c)
	v.Cuts = cuts[max(0, len(cuts)-MaxCuts):]
	v.LastSeq = max(v.LastSeq, c.Seq)
}

// open gives what somebody who opens the volume needs.
func (t *tables) open(v *Volume) *OpenVolume {
	// What is unsealed in a closed epoch with a holder is the holder's own.
	o := &OpenVolume{Volume: *v, Clean: v.Closed && (v.Holder != 0 || v.Unsealed == 0), LastSeq: v.LastCut()}
	if !v.Closed {
		o.LastSeq = t.vouched(v)
	}
	for _, c := range v.Cuts {
		if c.Seq > v.Root.Covers {
			o.Cuts = append(o.Cuts, c)
		}
	}
	o.Ancestors = t.ancestors(v.Origin, v.Root.Covers)
	ids := t.members(t.unsealed, uint64(v.ID))
	more := t.members(t.replayed, uint64(v.ID))
	for len(ids)+len(more) > 0 {
		from := &ids
		if len(ids) == 0 || len(more) > 0 && more[0] < ids[0] {
			from = &more
		}
		o.Segments = append(o.Segments, *t.segment((*from)[0]))
		*from = (*from)[1:]
	}
	return o
}

// repeatedLease completes a remembered AcquireLease. The epoch is the first
// result's; the segments are as they are now, which is what a writer that
// never saw the first answer needs.
func (t *tables) repeatedLease(r Result) Result {
	v := t.volume(r.Volume)
	if v == nil || v.Epoch != r.Epoch {
		return refused(errs.New(errs.StaleEpoch, "acquire lease", "epoch %d of volume %d, which this command began, is over", r.Epoch, r.Volume).
			WithHint("acquire the lease again with a new command id"))
	}
	r.Open = t.open(v)
	return r
}

func (c ReleaseLease) apply(t *tables, r *Result) error {
	v, err := t.current("release lease", c.Volume, c.Epoch)
	if err != nil {
		return err
	}
	op := "release lease of volume " + v.path()
	r.Volume, r.Epoch = v.ID, v.Epoch
	if c.Abandon {
		return t.abandonLease(v, c.Session, r)
	}
	if v.Holder == 0 && v.Closed && v.Unsealed == 0 && v.LastCut() == c.LastSeq {
		r.Repeat = true
		return nil
	}
	if v.Holder == 0 || v.Holder != c.Session {
		return errs.New(errs.LeaseLost, op, "session %d does not hold epoch %d", c.Session, c.Epoch).WithHint("there is nothing left to release; reopen the volume to go on writing")
	}
	if !v.Closed {
		return errs.New(errs.Conflict, op, "epoch %d took over unsealed segments and has not closed what was before it", c.Epoch).
			WithHint("finish the recovery, or let the session expire")
	}
	if c.LastSeq != v.LastSeq {
		return errs.New(errs.Conflict, op, "last seq %d, but seals, cut and root vouch for %d", c.LastSeq, v.LastSeq).
			WithHint("seal every segment that holds stripes first")
	}
	t.endUnsealed(v, r, true)
	v.Holder = 0
	v.addCut(Cut{Before: v.Epoch + 1, Seq: c.LastSeq})
	t.putVolume(v)
	r.emit(LeaseReleased{Volume: v.ID, Epoch: v.Epoch})
	return nil
}

// abandonLease lets a session go of a lease and leaves the epoch as it is. One that
// is gone already is a success.
func (t *tables) abandonLease(v *Volume, session layout.SessionID, r *Result) error {
	if v.Holder != session || session == 0 {
		r.Repeat = true
		return nil
	}
	t.letGo(v, r)
	return nil
}

// letGo takes a lease from its holder and leaves the epoch as it is.
func (t *tables) letGo(v *Volume, r *Result) {
	session := v.Holder
	v.Holder = 0
	t.putVolume(v)
	r.emit(LeaseExpired{Volume: v.ID, Epoch: v.Epoch, Session: session, Unsealed: v.Unsealed})
}

// current gives a copy of a volume's record to a command of its writer, and
// refuses one of another epoch.
func (t *tables) current(op string, id layout.VolumeID, e layout.Epoch) (*Volume, error) {
	v := t.volume(id)
	switch {
	case v == nil || v.Purged:
		return nil, errs.New(errs.NotFound, op, "there is no volume %d", id)
	case e < v.Epoch:
		return nil, errs.New(errs.StaleEpoch, op, "epoch %d of volume %s is over: epoch %d belongs to %s", e, v.path(), v.Epoch, t.writer(v)).
			WithHint("stop writing; reopen the volume to take it back")
	case e > v.Epoch || e == 0:
		return nil, errs.New(errs.InvalidArgument, op, "volume %s is at epoch %d, not %d", v.path(), v.Epoch, e)
	}
	return v, nil
}

func (t *tables) writer(v *Volume) string {
	if v.Holder == 0 {
		return "nobody any more"
	}
	return t.owner(v.Holder)
}

func (t *tables) leaseHeld(op string, v *Volume) error {
	return errs.New(errs.LeaseHeld, op, "%s writes it (session %d, epoch %d)", t.owner(v.Holder), v.Holder, v.Epoch).
		WithHint("close it there, or take over with --force")
}
