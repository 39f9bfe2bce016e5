package write

import (
	"slices"
	"time"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// segState is where a segment is in its life, in this order.
type segState uint8

const (
	spare segState = iota // granted, never used
	open                  // takes appends
	full                  // takes none; sealed when its stripes are flushed
	left                  // a participant failed, or given back unused; its un-flushed stripes went elsewhere
)

// shard is one shard of a segment as the core sees it. Stores are counted as
// their replies come; a sync covers those up to the count when it was sent.
type shard struct {
	Shard  // Incarnation: that of all stores counted
	device *device
	stored uint32 // appends answered
	dirty  uint32 // stored at the last append that was not durable by itself
	synced uint32 // all stores up to this count are durable
}

// segment is a granted segment as the core sees it.
type segment struct {
	pub     *Segment
	state   segState
	cold    bool               // takes relocations alone
	end     layout.ShardOffset // where the next row begins
	last    layout.Seq         // highest seq placed here; later ones are higher
	asked   int                // failures known when it was asked for
	stripes int                // placed here, moved away ones included
	live    int                // un-flushed stripes whose current copy is here
	flight  int                // of these, not answered by all participants
	shards  []shard

	seal     stripe.Seal // flushed stripes
	recorded stripe.Seal // map segments: what the last recorded root holds
	sealing  bool        // a SealSegment is under way
	asking   backoff     // for its seal
}

func (c *Core) newSegment(g Segment) *segment {
	pub := &g
	s := &segment{pub: pub, seal: stripe.NewSeal(g.ID, g.Geometry), shards: make([]shard, len(g.Shards))}
	s.recorded = s.seal.Clone()
	for i, sh := range g.Shards {
		s.shards[i] = shard{Shard: sh, device: c.peers.device(sh)}
	}
	return s
}

// room is how many payload blocks one stripe can still take.
func (s *segment) room() layout.BlockCount {
	return layout.BlockCount(s.pub.Geometry.K) * s.rows()
}

// fits tells whether a stripe of n payload blocks that is cut already fits.
func (s *segment) fits(n layout.BlockCount, seq layout.Seq) bool {
	unit := layout.ShardOffset(s.pub.Geometry.ShapeFor(n, seq).Unit)
	return s.last < seq && s.stripes < MaxSegmentStripes && s.end+unit <= s.pub.Length
}

func (s *segment) onServer(v *server) bool {
	for i := range s.shards {
		if s.shards[i].device.server == v {
			return true
		}
	}
	return false
}

// healthy tells whether no shard is on a server that is to be avoided, and was
// not yet when the segment was asked for: else there was no better one.
func (s *segment) healthy(now time.Duration) bool {
	for i := range s.shards {
		if v := s.shards[i].device.server; v.avoidUntil > now && s.asked < v.failure {
			return false
		}
	}
	return true
}

// take gives the next row to a stripe.
func (s *segment) take(seq layout.Seq, unit uint32) layout.ShardOffset {
	at := s.end
	s.end += layout.ShardOffset(unit)
	s.last = seq
	s.stripes++
	s.live++
	s.flight++
	return at
}

// Appendable tells whether a stripe may still get a place in a segment, also one whose
// seq was given before. Once it is false it stays so.
func (c *Core) Appendable(id layout.SegmentID) bool {
	is := func(s *segment) bool { return s.pub.ID == id }
	return slices.ContainsFunc(c.open, is) || slices.ContainsFunc(c.spares, is)
}

// spent tells whether the segment takes no more.
func (s *segment) spent() bool {
	return s.end+layout.BlockSize > s.pub.Length || s.stripes >= MaxSegmentStripes
}
