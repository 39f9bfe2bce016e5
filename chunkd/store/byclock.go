package store

import (
	"time"

	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// What is here belongs to the planted bug LeaseByWallClock alone: a store that takes
// a shard's writer for one whose lease is over, because the shard was quiet for long
// by the clock, and lists the shard without fencing it. Builds without planted bugs
// drop it.

// quietLease is for how long the shard must have been quiet.
const quietLease = 1500 * time.Millisecond

// took notes when a shard took an append.
func (s *Store) took(key layout.ShardKey) {
	if planted.Is(planted.LeaseByWallClock) && s.opts.Clock != nil {
		s.quiet.Store(key, s.opts.Clock())
	}
}

func (s *Store) leaseOver(key layout.ShardKey) bool {
	if !planted.Is(planted.LeaseByWallClock) || s.opts.Clock == nil {
		return false
	}
	at, _ := s.quiet.Load(key)
	last, _ := at.(time.Duration)
	return s.opts.Clock()-last >= quietLease
}

func (s *Store) listUnfenced(ref frame.ShardRef) (list []Fenced, err error) {
	b, _, _, err := s.List(ref, 1, 1<<30)
	for len(b) > 0 && err == nil {
		h, n, bad := stripe.Decode(b)
		if err = bad; err == nil {
			list = append(list, Fenced{Seq: h.Seq, Header: b[:n]})
			b = b[n:]
		}
	}
	return list, err
}
