package simclient

import (
	"slices"
	"time"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// fence shuts older writers out of segments and gives what each shard has. All
// servers are asked at once; one that does not answer is silent, and so is one that
// is late when the others' answers decide in.
func (l lease) fence(f *Fiber, in recovery.Input, segments []*Segment) []recovery.Segment {
	out := make([]recovery.Segment, len(segments))
	bySegment := map[layout.SegmentID]int{}
	asked := map[layout.ServerID][]FenceShard{}
	var servers []layout.ServerID
	for i, s := range segments {
		bySegment[s.ID] = i
		out[i] = recovery.Segment{ID: s.ID, Geometry: s.Geometry, Shards: make([]recovery.Shard, len(s.Shards))}
		for j, p := range s.Shards {
			out[i].Shards[j] = recovery.Shard{Server: p.Server, Device: p.Device, Reason: "no answer"}
			if asked[p.Server] == nil {
				servers = append(servers, p.Server)
			}
			asked[p.Server] = append(asked[p.Server], FenceShard{s.ref(layout.ShardIndex(j)), p.Device})
		}
	}
	slices.Sort(servers)
	in.Segments = out
	left, over := len(servers), false
	f.Wait(func(all func()) {
		done := func() {
			over = true
			all()
		}
		for _, server := range servers {
			l.c.chunk(server, &Fence{Epoch: l.epoch, Shards: asked[server]}, func(r *ChunkReply, err error) {
				if over {
					return
				}
				for _, a := range r.Fenced {
					shard := &out[bySegment[a.Ref.Segment]].Shards[a.Ref.Shard]
					addFenced(shard, &a)
				}
				if left--; left == 0 {
					done()
				}
			})
		}
		if left == 0 {
			done()
			return
		}
		l.c.lookAgain(new(recovery.Patience), recovery.LookEvery, &in, &over, done)
	})
	return out
}

// lookAgain calls done once patience says to go on without the answers that are late.
func (c *Client) lookAgain(p *recovery.Patience, since time.Duration, in *recovery.Input, over *bool, done func()) {
	c.after(recovery.LookEvery, func() {
		switch {
		case *over:
		case p.Over(since, *in):
			c.watch.Rare("a recoverer went on without an answer that was late")
			done()
		default:
			c.lookAgain(p, since+recovery.LookEvery, in, over, done)
		}
	})
}

// addFenced takes one shard's answer in.
func addFenced(shard *recovery.Shard, a *Fenced) {
	switch kind := errs.KindOf(a.Err); kind {
	case errs.OK:
		shard.State, shard.Reason = recovery.Listed, ""
	case errs.StaleEpoch:
		shard.State, shard.Reason = recovery.Silent, a.Err.Error()
	default:
		shard.State, shard.Reason = recovery.CannotTell, a.Err.Error()
	}
	for _, s := range a.Stripes {
		have := recovery.Stripe{Seq: s.Seq}
		if s.Kind != errs.OK {
			have.Reason = s.Kind.String()
		} else if h, _, err := stripe.Decode(s.Header); err != nil {
			have.Reason = err.Error()
		} else {
			have.Header = h
		}
		shard.Stripes = append(shard.Stripes, have)
	}
}
