package simclient

import (
	"strings"
	"time"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const (
	decideTries = 4
	decidePause = 250 * time.Millisecond
	tailTries   = 4
)

// lease names the writer's right in calls to the metadata service.
type lease struct {
	c      *Client
	volume layout.VolumeID
	epoch  layout.Epoch
}

// recover ends the epochs of older writers: fence, decide, copy the tail, and
// record the cut with all seals in one entry. It gives the log's last seq.
func (l lease) recover(f *Fiber, g *Granted) (layout.Seq, error) {
	// Segments that the newest root covers are not listed, nor are an origin's here.
	in := recovery.Input{Covers: g.Open.Root.Covers}
	for _, a := range g.Open.Ancestors {
		in.Covers = max(in.Covers, a.Limit)
	}
	in.LastCut = max(g.LastSeq, in.Covers)
	var unsealed []*Segment
	for _, s := range g.Open.Segments {
		switch {
		case s.Map:
		case s.Seal == nil:
			unsealed = append(unsealed, s)
		default:
			in.Sealed = append(in.Sealed, recovery.Sealed{First: s.Seal.First, Last: s.Seal.Last, Count: s.Seal.Count})
		}
	}
	plan, err := l.decide(f, &in, unsealed)
	if err != nil {
		return 0, err
	}
	copies, err := l.copyTail(f, plan, unsealed, in.SilentServers())
	if err != nil {
		return 0, errs.Wrap(err, "copy the log's tail")
	}
	if err := l.closeEpoch(f, plan, ""); err != nil {
		return 0, errs.Wrap(err, "close the epoch")
	}
	if copies != nil {
		if err := l.c.seal(f, l.volume, l.epoch, *copies); err != nil {
			return 0, errs.Wrap(err, "seal the tail's copy")
		}
	}
	return plan.Cut, nil
}

// decide fences and asks until the answers allow a decision.
func (l lease) decide(f *Fiber, in *recovery.Input, unsealed []*Segment) (recovery.Plan, error) {
	wait := decidePause
	for try := 1; ; try++ {
		in.Segments = l.fence(f, *in, unsealed)
		if f.dead {
			return recovery.Plan{}, errKilled
		}
		plan, err := recovery.Decide(*in)
		l.c.watch.Decided(l.volume, l.epoch, describe(in, &plan), err)
		kind := errs.KindOf(err)
		if kind != errs.Unavailable && kind != errs.Undecided {
			return plan, err
		}
		if try == decideTries {
			text := blockedText(plan.Blocked)
			_ = l.closeEpoch(f, recovery.Plan{}, text)
			return plan, errs.As(err, kind, "%s", text)
		}
		if !l.c.sleep(f, wait) {
			return plan, errKilled
		}
		wait *= 2
	}
}

func blockedText(list []recovery.Blocker) string {
	var text []string
	for _, b := range list[:min(len(list), 8)] {
		text = append(text, b.String())
	}
	return strings.Join(text, "; ")
}

// describe counts what a decision did to stripes.
func describe(in *recovery.Input, p *recovery.Plan) Decision {
	d := Decision{Cut: p.Cut, Flushed: p.Flushed, Tail: len(p.Tail), Standing: p.Standing}
	fallen := map[layout.Seq]bool{}
	for i := range in.Segments {
		s := &in.Segments[i]
		for j := range s.Shards {
			for _, st := range s.Shards[j].Stripes {
				if st.Seq > p.Cut {
					fallen[st.Seq] = true
				}
				d.Left = d.Left || st.Seq > in.Covers && st.Seq <= in.LastCut
			}
		}
	}
	d.Fallen = len(fallen)
	away := awayOf(in)
	for _, t := range p.Tail {
		if t.Have != t.Header.Participants() {
			d.Incomplete++
		}
		d.Discards = d.Discards || t.Header.Blocks == 0 && away[t.Segment]
	}
	return d
}

// awayOf tells of which segments as many shards as may be lost did not answer.
func awayOf(in *recovery.Input) map[layout.SegmentID]bool {
	away := map[layout.SegmentID]bool{}
	for i := range in.Segments {
		s, silent := &in.Segments[i], 0
		for j := range s.Shards {
			if s.Shards[j].State != recovery.Listed {
				silent++
			}
		}
		away[s.ID] = silent >= int(s.Geometry.M)
	}
	return away
}

// closeEpoch records the decision, or why there is none.
func (l lease) closeEpoch(f *Fiber, p recovery.Plan, undecided string) error {
	_, err := metaCall[*Kept](l.c, f, forever, attemptTimeout, &CloseEpoch{Command: l.c.command(), Volume: l.volume, Epoch: l.epoch,
		Cut: p.Cut, Seals: p.Seals, Undecided: undecided})
	return err
}

// copyTail appends the standing stripes of the tail again under the new epoch,
// durably, in a fresh segment, and gives that segment's seal.
func (l lease) copyTail(f *Fiber, plan recovery.Plan, unsealed []*Segment, avoid []layout.ServerID) (*stripe.Seal, error) {
	if len(plan.Tail) == 0 {
		return nil, nil
	}
	byID := map[layout.SegmentID]*Segment{}
	for _, s := range unsealed {
		byID[s.ID] = s
	}
	for try := 1; ; try++ {
		seal, failed, err := l.tryCopy(f, plan.Tail, byID, avoid)
		if err == nil || try == tailTries || f.dead {
			return seal, err
		}
		avoid = append(avoid, failed...)
	}
}

func (l lease) tryCopy(f *Fiber, tail []recovery.Tail, byID map[layout.SegmentID]*Segment, avoid []layout.ServerID) (*stripe.Seal, []layout.ServerID, error) {
	to, err := l.tailSegment(f, tail, avoid)
	if err != nil {
		return nil, nil, err
	}
	seal := stripe.NewSeal(to.ID, to.Geometry)
	var at layout.ShardOffset
	for _, t := range tail {
		blocks, err := l.readStripe(f, byID[t.Segment], t)
		if err != nil {
			return nil, nil, errs.Wrap(err, "read stripe %d from segment %d", t.Header.Seq, t.Segment)
		}
		h := *t.Header
		h.Epoch, h.Segment, h.Geometry, h.Offset, h.CRCs = l.epoch, to.ID, to.Geometry, at, nil
		h.Shape = to.Geometry.ShapeFor(layout.BlockCount(h.Blocks), h.Seq)
		if failed, err := l.appendDurably(f, to, &h, blocks); err != nil {
			return nil, failed, errs.Wrap(err, "append stripe %d to segment %d", h.Seq, to.ID)
		}
		at = h.End()
		seal.Add(&h)
	}
	return &seal, nil, nil
}
