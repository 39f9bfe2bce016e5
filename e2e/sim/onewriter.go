package sim

import (
	"strake/client/simclient"
	"strake/internal/layout"
	"strake/proto/frame"
)

// P4: once a fence was answered, the shard takes nothing of an older epoch, through
// any crash; so nothing of an older epoch can become readable. (That nothing does
// is told by every read.)

// fenced notes that a shard answered a fence.
func (s *Sim) fenced(key layout.ShardKey, e layout.Epoch) { s.fences[key] = max(s.fences[key], e) }

// took checks that a shard which accepted an append or a sync was not fenced
// against it.
func (s *Sim) took(what string, key layout.ShardKey, e layout.Epoch) {
	if f := s.fences[key]; e < f {
		s.fail("P4: shard %v took %s of epoch %d, though it had answered a fence at epoch %d", key, what, e, f)
	}
}

// answers checks that a shard which answered has the generation that was asked for.
func (c *chunkServer) answers(request any) {
	var ref frame.ShardRef
	switch q := request.(type) {
	case *simclient.Read:
		ref = q.Ref
	case *simclient.Append:
		ref = q.Ref
	case *simclient.List:
		ref = q.Ref
	default:
		return
	}
	if st, err := c.store.Stat(ref); err == nil && st.Ref != ref {
		c.s.fail("P3: server %d answers for shard %v of generation %d with generation %d", c.id, ref.ShardKey, ref.Generation, st.Ref.Generation)
	}
}
