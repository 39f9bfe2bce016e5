package writetest

import (
	"cmp"
	"maps"
	"slices"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Grant places segments on servers that are up, not on avoided ones if that can
// be; k narrows when servers are few, m doesn't.
func (c *Cell) Grant(epoch layout.Epoch, want layout.Geometry, a *write.Allocation) ([]write.Segment, error) {
	if err := c.metaRefuses(epoch); err != nil {
		return nil, err
	}
	if c.Full && !a.Urgent && !a.Cold {
		return nil, errs.New(errs.NoSpace, "", "no device has room")
	}
	var out []write.Segment
	for range a.Count {
		s, err := c.place(epoch, want, a)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (c *Cell) metaRefuses(epoch layout.Epoch) error {
	switch {
	case c.Away:
		return errs.New(errs.Unavailable, "", "the metadata service is away")
	case epoch < c.Epoch:
		return errs.New(errs.StaleEpoch, "", "the epoch is %d", c.Epoch)
	}
	return nil
}

func (c *Cell) place(epoch layout.Epoch, g layout.Geometry, a *write.Allocation) (write.Segment, error) {
	var good, poor []*Server
	for _, s := range c.Servers {
		switch {
		case s.Down || s.Lost:
		case slices.Contains(a.Avoid, s.ID):
			poor = append(poor, s)
		default:
			good = append(good, s)
		}
	}
	c.Rand.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	if len(good) <= int(g.M) {
		good = append(good, poor...)
	}
	if len(good) <= int(g.M) {
		return write.Segment{}, errs.New(errs.Frozen, "", "%d servers are up", len(good))
	}
	g.K = min(g.K, uint8(len(good))-g.M)
	rows := max(layout.ShardOffset(1+c.Rand.IntN(c.Rows))*layout.BlockSize, a.MinLength)
	if a.Urgent {
		rows = max(layout.BlockSize, a.MinLength)
	}
	s := write.Segment{ID: layout.SegmentID(len(c.Order) + 1), Geometry: g, Length: rows}
	for _, v := range good[:g.Shards()] {
		s.Shards = append(s.Shards, write.Shard{Server: v.ID, Device: layout.DeviceID(v.ID), Generation: 1})
	}
	c.Segments[s.ID] = &Segment{Segment: s, Epoch: epoch}
	c.Order = append(c.Order, s.ID)
	return s, nil
}

// SealSegment records a seal.
func (c *Cell) SealSegment(epoch layout.Epoch, seal *stripe.Seal) error {
	if err := c.metaRefuses(epoch); err != nil {
		return err
	}
	s := c.Segments[seal.Segment]
	if s.Seal != nil {
		return errs.New(errs.Conflict, "", "segment %d is sealed", seal.Segment)
	}
	s.Seal = seal
	return nil
}

func sortedKeys(m map[layout.ShardKey]map[layout.Seq]*Record) []layout.ShardKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b layout.ShardKey) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Shard, b.Shard))
	})
}

func sortedSeqs(m map[layout.Seq]*Record) []layout.Seq { return slices.Sorted(maps.Keys(m)) }
