package sim

import (
	"cmp"
	"slices"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/server"
	"strake/meta/state"
	"strake/proto/frame"
	"strake/proto/pb"
)

// The leader's part of rebuild and repair, with the metadata server's steps.

// What chunk servers and clients tell or ask of shards.
type (
	checkShards struct{ request *pb.CheckShardsRequest }
	checked     struct {
		gone    []gone
		missing []*pb.ShardRef
	}
	gone struct {
		ref       *pb.ShardRef
		abandoned bool
	}
	reportShards struct{ list []*pb.ShardReport }
)

func badShard(ref frame.ShardRef, device layout.DeviceID, kind errs.Kind) *pb.ShardReport {
	return &pb.ShardReport{Kind: uint32(kind),
		Shard: &pb.ShardRef{Segment: uint64(ref.Segment), Shard: uint32(ref.Shard), Generation: uint32(ref.Generation), Device: uint64(device)}}
}

const rebuildCall = 20 * sourceCall

func sortRefs(list []frame.ShardRef) {
	slices.SortFunc(list, func(a, b frame.ShardRef) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Generation, b.Generation))
	})
}

// rebuild has a server make a shard again, by the metadata server's own steps.
func (m *metaService) rebuild(f *simclient.Fiber, t reconcile.Rebuild) error {
	m.s.note("rebuild", uint64(t.Segment)<<8|uint64(t.Shard), uint64(t.Server), uint64(t.Old.Generation), map[bool]uint64{true: 1}[t.InPlace])
	result, err := server.Remake{
		View: m.view, Up: m.alive,
		Propose: func(cmd state.Command) error { _, err := m.propose(f, cmd); return err },
		Ask: func(id layout.ServerID, r *pb.RebuildShard) (*pb.RebuiltShard, error) {
			reply, err := m.ask(f, id, &rebuildShard{r}, rebuildCall)
			if err != nil {
				return nil, err
			}
			return reply.Other.(*pb.RebuiltShard), nil
		},
		Delete: func(id layout.ServerID, seg *state.Segment, shard layout.ShardIndex, at state.Placement) {
			ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: seg.ID, Shard: shard}, Generation: at.Generation}
			_, _ = m.ask(f, id, &deleteShard{ref}, chunkCall) // else its server asks for its leftovers
		},
	}.Run(t)
	to := m.s.servers[t.Server]
	switch {
	case result == nil && err != nil && to != nil && (!to.up || to.lost):
		m.s.rare("a rebuild that lost its target")
	case result != nil && result.Result.Kind != 0:
		m.s.rare("a rebuild failed: " + errs.Kind(result.Result.Kind).String())
	case err == nil && t.InPlace:
		m.s.rare("a shard repaired in its place")
	case err == nil:
		m.s.rare("a shard rebuilt elsewhere")
		if t.Balance {
			m.s.rare("a shard moved by a rebalance")
		}
	}
	return err
}

// markReported marks shards lost that were found bad where they are placed.
func (m *metaService) markReported(f *simclient.Fiber, list []*pb.ShardReport) error {
	lost := server.Reported(m.view(), list)
	if len(lost) == 0 {
		return nil
	}
	_, err := m.propose(f, state.MarkLost{Shards: lost})
	return err
}

// check answers which shards of a server are needed no more. The leader of the
// simulation is the only one, and has applied all that was committed.
func (m *metaService) check(q *checkShards) (any, error) {
	out := &checked{missing: server.Missing(m.view(), q.request)}
	for _, ref := range q.request.Shards {
		standing := server.Verdict(m.view(), m.planner, m.alive, layout.ServerID(q.request.Server), ref)
		if standing != server.PlacedHere {
			m.s.mayBeGivenUp(m.view(), ref)
			out.gone = append(out.gone, gone{ref, standing == server.Abandoned})
		}
	}
	return out, nil
}
