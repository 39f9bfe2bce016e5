package sim

import (
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/stripe"
)

// The observer of all processes: claims go to the history and the checkers.

// Cut implements simclient.Observer.
func (s *Sim) Cut(v layout.VolumeID, e layout.Epoch, h *stripe.Header) {
	s.note("cut", uint64(v), uint64(e), uint64(h.Seq), uint64(h.Segment))
	s.volume(v).cut(e, h)
}

// Acked implements simclient.Observer.
func (s *Sim) Acked(v layout.VolumeID, e layout.Epoch, seq layout.Seq) {
	s.note("acked", uint64(v), uint64(e), uint64(seq))
	s.volume(v).writer(e).acked = seq
}

// Flushed implements simclient.Observer.
func (s *Sim) Flushed(v layout.VolumeID, e layout.Epoch, seq layout.Seq) {
	s.note("flushed", uint64(v), uint64(e), uint64(seq))
	s.volume(v).claimFlushed(e, seq)
}

// Moved implements simclient.Observer.
func (s *Sim) Moved(v layout.VolumeID, e layout.Epoch, seq layout.Seq, to layout.SegmentID) {
	s.note("moved", uint64(v), uint64(e), uint64(seq), uint64(to))
	s.rare("a stripe moved on")
}

// Ended implements simclient.Observer.
func (s *Sim) Ended(v layout.VolumeID, e layout.Epoch, err error) {
	s.note("writer ends", uint64(v), uint64(e), uint64(errs.KindOf(err)))
	switch kind := errs.KindOf(err); kind {
	case errs.Closed, errs.StaleEpoch, errs.LeaseLost:
	case errs.NotFound:
		if h := s.volume(v); !h.removed && s.named(h.name) == h { // else it was rolled back
			s.fail("volume %d: the writer of epoch %d does not find it: %v", v, e, err)
		}
	default:
		s.fail("volume %d: the writer of epoch %d ended by itself: %v", v, e, err)
	}
}

// Decided implements simclient.Observer.
func (s *Sim) Decided(v layout.VolumeID, e layout.Epoch, d simclient.Decision, err error) {
	kind := errs.KindOf(err)
	s.note("decided", uint64(v), uint64(e), uint64(d.Cut), uint64(kind))
	switch kind {
	case errs.OK:
		if d.Fallen > 0 {
			s.rare("a stripe falls")
		}
		if d.Incomplete > 0 {
			s.rare("a stripe stands with a shard missing")
		}
		if d.Tail > 0 {
			s.rare("rolled forward by a tail copy")
		}
		if d.Discards {
			s.rare("a discard recovered with m servers gone")
		}
		if d.Left {
			s.rare("a tail recovered that nobody had sealed")
		}
	case errs.Undecided:
		s.rare("undecidable for now")
		if d.Standing > 0 {
			s.rare("what stands is out of reach for now")
		}
	case errs.Unavailable:
		s.rare("too few shards answered a recovery")
	default:
		s.fail("volume %d: recovery at epoch %d: %v", v, e, err)
	}
}

// Rare implements simclient.Observer.
func (s *Sim) Rare(what string) { s.rare(what) }

// committed looks at each command once, right after it was applied first.
func (s *Sim) committed(cmd state.Command, r *state.Result, st *state.State) {
	s.note("commit", uint64(cmd.Type()), uint64(errs.KindOf(r.Err)), uint64(r.Volume), uint64(r.Epoch))
	if r.Err != nil {
		return
	}
	switch c := cmd.(type) {
	case state.AcquireLease:
		s.leaseTaken(r)
	case state.CloseEpoch:
		if c.Undecided == "" && !r.Repeat {
			s.volume(c.Volume).decide(c.Epoch, c.Cut)
			s.closed(c.Volume, c.Epoch)
		}
	}
	_, live := cmd.(state.SealSegments)
	for _, e := range r.Events {
		s.unfroze(st.View(), e)
		switch e := e.(type) {
		case state.SegmentAllocated:
			s.checkPlaced(st.View(), e.Segment)
		case state.ShardReplaced:
			s.replaced(st.View(), e)
		case state.SegmentSealed:
			s.freeze(st.View(), e.Segment, live)
		}
	}
}

// leaseTaken: where nothing is to recover, the epoch starts after the last cut.
func (s *Sim) leaseTaken(r *state.Result) {
	v := &r.Open.Volume
	if r.Repeat {
		return
	}
	if r.Open.Clean {
		s.volume(v.ID).decide(r.Epoch, r.Open.LastSeq)
		return
	}
	if v.Undecided != "" || s.volume(v.ID).recovering {
		s.rare("a second recoverer")
	}
	s.volume(v.ID).recovering = true
}
