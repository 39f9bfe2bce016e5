package janitor

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const (
	// batchBytes bounds what a batch reads from its sources together, and
	// batchStripes its stripes; a single stripe may be larger.
	batchBytes   = 8 << 20
	batchStripes = 512
)

// wanted is one stripe of a batch: what is at hand of it.
type wanted struct {
	sealed
	units []([]byte)  // by shard; those in have are right
	have  layout.Mask // held against the header
	tried layout.Mask
	done  bool // nothing more is needed
}

// needs is how many units decode the stripe.
func (w *wanted) needs() int { return w.header.Shape.Data.Count() }

// gather reads units until each stripe of a batch can be decoded, or has the
// unit that is wanted itself (by index; MaxShards: none is). Sources that don't
// answer, or hold wrong bytes, are replaced by others as long as there are any.
func (t *task) gather(ctx context.Context, batch []*wanted, itself layout.ShardIndex) error {
	for round := 0; ; round++ {
		plan, err := t.choose(batch, itself)
		if err != nil || len(plan) == 0 {
			return err
		}
		var reads []func()
		for _, src := range t.sources {
			if list := plan[src]; len(list) > 0 {
				reads = append(reads, func() { t.read(ctx, src, list) })
			}
		}
		t.Together(reads)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, w := range batch {
			w.have = 0
			for s, u := range w.units {
				if u != nil {
					w.have = w.have.With(layout.ShardIndex(s))
				}
			}
		}
	}
}

// choose decides which source is read for which stripes.
func (t *task) choose(batch []*wanted, itself layout.ShardIndex) (map[*source][]*wanted, error) {
	plan := map[*source][]*wanted{}
	for _, w := range batch {
		if w.done || w.header.Shape.Unit == 0 || itself < layout.MaxShards && w.have.Has(itself) || w.have.Count() >= w.needs() {
			continue
		}
		if s := t.holder(w, itself); s != nil {
			plan[s] = append(plan[s], w)
			w.tried = w.tried.With(itself)
			continue
		}
		missing := w.needs() - w.have.Count()
		for _, s := range t.order(w) {
			if missing == 0 {
				break
			}
			plan[s] = append(plan[s], w)
			w.tried = w.tried.With(s.ref.Shard)
			missing--
		}
		if missing > 0 {
			return nil, errs.New(errs.Unavailable, "", "stripe %d of segment %d: %d good units of %d", w.header.Seq, w.header.Segment, w.needs()-missing, w.needs()).
				WithHint("bring servers with its shards back")
		}
	}
	return plan, nil
}

// holder gives the source that has the wanted unit itself, while it is worth a try.
func (t *task) holder(w *wanted, itself layout.ShardIndex) *source {
	for _, s := range t.sources {
		if s.ref.Shard == itself && !s.failed && !w.tried.Has(itself) {
			return s
		}
	}
	return nil
}

// order gives the sources that can be tried for a stripe: whole ones that answer
// first, each batch beginning with another, so that all of them are read alike.
func (t *task) order(w *wanted) (list []*source) {
	n := len(t.sources)
	for _, doubtful := range []bool{false, true} {
		for i := range n {
			s := t.sources[(i+t.turn)%n]
			worse := s.doubtful || s.failed
			if worse == doubtful && w.header.Participants().Has(s.ref.Shard) && !w.tried.Has(s.ref.Shard) {
				list = append(list, s)
			}
		}
	}
	return list
}

// read reads one source's units of stripes, and keeps those that are right.
func (t *task) read(ctx context.Context, src *source, list []*wanted) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && n < frame.MaxReadRanges && (n == 0 || bytes+int(list[n].header.Shape.Unit) <= batchBytes) {
			bytes += int(list[n].header.Shape.Unit)
			n++
		}
		buf := t.memory.bytes(bytes)
		if err := t.readRanges(ctx, src, list[:n], buf); err != nil {
			t.note(src, err)
			if n > 1 && !t.gaveUp(src) { // find out which ones it can give
				for _, w := range list[:n] {
					t.read(ctx, src, []*wanted{w})
				}
			}
		} else {
			t.keep(src, list[:n], buf)
		}
		list = list[n:]
	}
}

// readRanges reads the units of stripes, neighbours as one range.
func (t *task) readRanges(ctx context.Context, src *source, list []*wanted, buf []byte) error {
	var ranges []frame.ReadRange
	for _, w := range list {
		g := frame.ReadRange{Offset: w.header.Offset, Length: w.header.Shape.Unit}
		if n := len(ranges); n > 0 && ranges[n-1].Offset+layout.ShardOffset(ranges[n-1].Length) == g.Offset {
			ranges[n-1].Length += g.Length
			continue
		}
		ranges = append(ranges, g)
	}
	return t.Remote.Read(ctx, src.addr, src.ref, ranges, buf)
}

// note remembers that a source failed. Guarded, as sources are read side by side.
func (t *task) note(src *source, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = err
	switch kind := errs.KindOf(err); {
	case !usable(err), kind == errs.NotHere, kind == errs.StaleGeneration:
		src.failed = true
	}
}

func (t *task) gaveUp(src *source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return src.failed
}

// keep holds units against their headers.
func (t *task) keep(src *source, list []*wanted, buf []byte) {
	bad := false
	for _, w := range list {
		unit := buf[:w.header.Shape.Unit:w.header.Shape.Unit]
		buf = buf[len(unit):]
		if unitFits(w.header, src.ref.Shard, unit) {
			w.units[src.ref.Shard] = unit
		} else {
			bad = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	src.found = src.found || bad
	for _, w := range list {
		t.readBytes += uint64(w.header.Shape.Unit)
	}
}

// unitFits tells whether a unit's blocks have the checksums in the header.
func unitFits(h *stripe.Header, shard layout.ShardIndex, unit []byte) bool {
	for i, want := range h.UnitCRCs(shard) {
		if stripe.BlockCRC(unit[i*layout.BlockSize:(i+1)*layout.BlockSize]) != want {
			return false
		}
	}
	return true
}
