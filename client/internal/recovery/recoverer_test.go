package recovery_test

import (
	"fmt"

	"strake/client/internal/recovery"
	"strake/client/internal/write"
	"strake/client/internal/write/writetest"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// recoverer is one that took the lease and works through design §6.
type recoverer struct {
	w        *world
	epoch    layout.Epoch
	segments []*writetest.Segment // unsealed when it took the lease
	asked    map[layout.ServerID]bool
	silent   map[layout.ServerID]bool
	input    recovery.Input
	plan     *recovery.Plan
	tail     []*writetest.Segment
	left     []recovery.Tail // not copied yet
	over     bool
	fault    error
}

// takeLease deposes whoever is there.
func (w *world) takeLease() {
	w.cell.Epoch++
	r := &recoverer{w: w, epoch: w.cell.Epoch, asked: map[layout.ServerID]bool{}, silent: map[layout.ServerID]bool{}}
	r.input.LastCut, r.input.Covers = max(w.floor, w.root.covers), w.root.covers
	for _, id := range w.cell.Order {
		switch s := w.cell.Segments[id]; {
		case s.Seal == nil:
			r.segments = append(r.segments, s)
			r.input.Segments = append(r.input.Segments, recovery.Segment{ID: id, Geometry: s.Geometry, Shards: silentShards(s)})
		case s.Seal.Last > w.root.covers:
			r.input.Sealed = append(r.input.Sealed, recovery.Sealed{First: s.Seal.First, Last: s.Seal.Last, Count: s.Seal.Count})
		}
	}
	w.log("W%d takes the lease", r.epoch)
	w.rec = r
}

func silentShards(s *writetest.Segment) (out []recovery.Shard) {
	for _, sh := range s.Shards {
		out = append(out, recovery.Shard{Server: sh.Server, Device: sh.Device})
	}
	return out
}

func (r *recoverer) step() {
	if r.over {
		return
	}
	for _, s := range r.w.cell.Servers {
		if !r.asked[s.ID] && r.w.r.IntN(2) == 0 {
			r.ask(s)
			return
		}
	}
	switch {
	case len(r.asked) < len(r.w.cell.Servers):
	case r.plan == nil:
		r.decide()
	case len(r.left) > 0:
		r.copyTail()
	case r.epoch == r.w.cell.Epoch:
		r.close()
	}
}

// ask fences a server and takes its lists, or gives up on it.
func (r *recoverer) ask(s *writetest.Server) {
	r.asked[s.ID] = true
	if s.Lost || r.w.r.IntN(6) == 0 || s.Fence > r.epoch {
		r.silent[s.ID] = true
		r.w.log("W%d can't reach server %d", r.epoch, s.ID)
		return
	}
	s.Fence = r.epoch
	r.w.log("W%d fences server %d", r.epoch, s.ID)
	for i, seg := range r.segments {
		for j, sh := range seg.Shards {
			if sh.Server == s.ID {
				r.input.Segments[i].Shards[j] = r.answer(s, layout.ShardKey{Segment: seg.ID, Shard: layout.ShardIndex(j)})
			}
		}
	}
}

// answer syncs a fenced shard and lists it.
func (r *recoverer) answer(s *writetest.Server, key layout.ShardKey) recovery.Shard {
	out := recovery.Shard{Server: s.ID, Device: layout.DeviceID(s.ID), State: recovery.Listed}
	own := s.Shards[key]
	for seq := layout.Seq(1); len(own) > 0 && seq < 64; seq++ {
		rec := own[seq]
		if rec == nil {
			continue
		}
		rec.Durable = true
		st := recovery.Stripe{Seq: seq, Header: rec.Header}
		if r.w.rotten[s.ID] && r.w.r.IntN(2) == 0 {
			rec.Torn = true
		}
		if rec.Torn {
			st = recovery.Stripe{Seq: seq, Reason: "I/O error"}
		}
		out.Stripes = append(out.Stripes, st)
	}
	return out
}

// away counts the servers that said nothing, or not all.
func (r *recoverer) away() (n int) {
	for _, s := range r.w.cell.Servers {
		if r.silent[s.ID] || r.w.bad[s.ID] {
			n++
		}
	}
	return n
}

func (r *recoverer) decide() {
	plan, err := r.w.decide(r.input)
	if err != nil {
		r.w.log("W%d: %v", r.epoch, err)
		r.over = true
		if r.away() <= int(r.w.g.M) {
			r.fault = fmt.Errorf("P6: W%d can't decide with %d servers away: %w", r.epoch, r.away(), err)
		}
		return
	}
	r.w.log("W%d decides: the log ends at %d, flushed %d, tail of %d", r.epoch, plan.Cut, plan.Flushed, len(plan.Tail))
	r.plan, r.left = &plan, plan.Tail
}

// copyTail appends the next stripe of the tail again, synced. When it is
// overtaken, what it did so far stays behind.
func (r *recoverer) copyTail() {
	t := r.left[0]
	if len(r.tail) == 0 {
		a := write.Allocation{Count: 1, MinLength: 1 << 20}
		for _, s := range r.w.cell.Servers {
			if r.silent[s.ID] {
				a.Avoid = append(a.Avoid, s.ID)
			}
		}
		away := r.w.cell.Away
		r.w.cell.Away = false
		granted, err := r.w.cell.Grant(r.epoch, r.w.g, &a)
		r.w.cell.Away = away
		if err != nil {
			r.over = true
			return
		}
		r.tail = append(r.tail, r.w.cell.Segments[granted[0].ID])
	}
	seg := r.tail[0]
	h := *t.Header
	h.Epoch, h.Segment, h.Geometry, h.Flushed = r.epoch, seg.ID, seg.Geometry, min(r.plan.Flushed, h.Seq-1)
	h.Shape = seg.Geometry.ShapeFor(layout.BlockCount(h.Blocks), h.Seq)
	h.Offset = layout.ShardOffset(len(r.plan.Tail)-len(r.left)) * 16 * layout.BlockSize
	h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
	for p := h.Participants(); p != 0; p &= p - 1 {
		i, _ := p.Nth(0)
		key := layout.ShardKey{Segment: seg.ID, Shard: i}
		if _, err := r.w.cell.Server(seg.Shards[i].Server).Append(key, &h, true); err != nil {
			r.w.log("W%d: the tail copy of seq %d fails: %v", r.epoch, h.Seq, err)
			r.over = true
			return
		}
	}
	r.left = r.left[1:]
	r.w.log("W%d copies seq %d to segment %d", r.epoch, h.Seq, seg.ID)
}

// close commits the plan in one entry and opens the volume.
func (r *recoverer) close() {
	w := r.w
	for i := range r.plan.Seals {
		if s := w.cell.Segments[r.plan.Seals[i].Segment]; s.Seal == nil {
			s.Seal = &r.plan.Seals[i]
			if err := w.finalize(s); err != nil && r.fault == nil && r.away() <= int(w.g.M) {
				r.fault = err
			}
		}
	}
	if r.plan.Cut < max(w.floor, w.root.covers) {
		r.fault = fmt.Errorf("P2/P4: the log was closed at %d and the root covers %d; now it is closed at %d", w.floor, w.root.covers, r.plan.Cut)
	}
	w.floor, w.ended = r.plan.Cut, r.epoch
	w.cuts = append(w.cuts, recovery.Cut{Before: r.epoch, Seq: w.floor})
	w.log("W%d closes the epoch at %d", r.epoch, w.floor)
	r.over, w.rec = true, nil
	w.closed++
	w.done = append(w.done, r)
	if w.r.IntN(6) == 0 { // its tail stays unsealed
		w.log("W%d dies", r.epoch)
		return
	}
	for _, s := range r.tail { // its own segment, all synced: a live seal
		seal := stripe.NewSeal(s.ID, s.Geometry)
		for seq := layout.Seq(1); seq <= w.floor; seq++ {
			for _, h := range w.headersOf(s) {
				if h.Seq == seq {
					seal.Add(h)
				}
			}
		}
		s.Seal = &seal
	}
	if r.fault == nil {
		r.fault = w.contents()
	}
	w.write(r.epoch, w.floor)
}
