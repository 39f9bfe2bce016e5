package sim

import (
	"cmp"
	"slices"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
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

// rebuild has a server make a shard again, records its place, and has the old one
// deleted.
func (m *metaService) rebuild(f *simclient.Fiber, t reconcile.Rebuild) error {
	seg, ok := m.view().Segment(t.Segment)
	if !ok || seg.Placements[t.Shard] != t.Old {
		return errs.New(errs.StaleGeneration, "", "the shard has moved")
	}
	m.s.note("rebuild", uint64(t.Segment)<<8|uint64(t.Shard), uint64(t.Server), uint64(t.Old.Generation), map[bool]uint64{true: 1}[t.InPlace])
	if planted.Is(planted.MovedBeforeDurable) {
		defer func() { _, _ = m.ask(f, t.Server, &rebuildShard{server.RebuildOut(m.view(), &seg, t)}, rebuildCall) }()
		return m.settle(f, t)
	}
	reply, err := m.ask(f, t.Server, &rebuildShard{server.RebuildOut(m.view(), &seg, t)}, rebuildCall)
	if err != nil {
		if to := m.s.servers[t.Server]; to != nil && (!to.up || to.lost) {
			m.s.rare("a rebuild that lost its target")
		}
		return err
	}
	result := reply.Other.(*pb.RebuiltShard)
	var bad []*pb.ShardReport
	for _, ref := range result.Bad {
		bad = append(bad, &pb.ShardReport{Shard: ref, Kind: uint32(errs.Corrupt)})
	}
	if err := m.markReported(f, bad); err != nil {
		return err
	}
	if kind := errs.Kind(result.Result.Kind); kind != errs.OK {
		m.s.rare("a rebuild failed: " + kind.String())
		return errs.New(kind, "", "%s", result.Result.Message)
	}
	return m.settle(f, t)
}

// settle records a shard that was made again.
func (m *metaService) settle(f *simclient.Fiber, t reconcile.Rebuild) error {
	if t.InPlace {
		m.s.rare("a shard repaired in its place")
		_, err := m.propose(f, state.MarkSound{Shards: []state.ShardAt{{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation}}})
		return err
	}
	if _, err := m.propose(f, state.ReplaceShard{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation, Device: t.Device}); err != nil {
		return err
	}
	m.s.rare("a shard rebuilt elsewhere")
	if t.Balance {
		m.s.rare("a shard moved by a rebalance")
	}
	d, known := m.view().Device(t.Old.Device)
	if !known || d.State == state.DeviceDead || !m.alive(d.Server) || t.Old.Device == t.Device {
		return nil
	}
	ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: t.Segment, Shard: t.Shard}, Generation: t.Old.Generation}
	_, _ = m.ask(f, d.Server, &deleteShard{ref}, chunkCall) // else its server asks for its leftovers
	return nil
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

// lostOf gives the shards that a finalization goes on without.
func lostOf(g *state.Segment, asked []reconcile.Shard, failed map[layout.ShardIndex]error) (lost []state.ShardAt, err error) {
	var sound layout.Mask
	for _, a := range asked {
		sound = sound.With(a.Index)
	}
	for _, a := range asked {
		switch kind := errs.KindOf(failed[a.Index]); kind {
		case errs.OK:
		case errs.Corrupt, errs.NotHere, errs.StaleGeneration:
			sound, err = sound.Without(a.Index), failed[a.Index]
		default:
			return nil, failed[a.Index]
		}
	}
	if sound.Count() < int(g.Geometry.K) {
		return nil, errs.As(err, errs.Undecided, "finalize segment %d: %d sound shards of %v", g.ID, sound.Count(), g.Geometry)
	}
	for i, p := range g.Placements {
		if !sound.Has(layout.ShardIndex(i)) {
			lost = append(lost, state.ShardAt{Segment: g.ID, Shard: layout.ShardIndex(i), Generation: p.Generation})
		}
	}
	return lost, nil
}

// check answers which shards of a server are needed no more. The leader of the
// simulation is the only one, and has applied all that was committed.
func (m *metaService) check(q *checkShards) (any, error) {
	out := &checked{missing: server.Missing(m.view(), q.request)}
	for _, ref := range q.request.Shards {
		switch server.Verdict(m.view(), m.planner, m.alive, layout.ServerID(q.request.Server), ref) {
		case server.Leftover:
			out.gone = append(out.gone, gone{ref, false})
		case server.Abandoned:
			out.gone = append(out.gone, gone{ref, true})
		}
	}
	return out, nil
}
