package janitor

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

const (
	// firstSweep is how long after the start leftovers are looked for first: a
	// server that was away may have missed deletes.
	firstSweep = 5 * time.Second
	// sweepPage bounds the shards of one question.
	sweepPage    = 1024
	sweepTimeout = 20 * time.Second
)

// sweeps looks for leftovers now and then.
func (j *Janitor) sweeps() {
	for wait := min(firstSweep, j.cfg.SweepEvery); ; wait = j.cfg.SweepEvery {
		select {
		case <-j.ctx.Done():
			return
		case <-time.After(wait):
		}
		for i := range j.cfg.Devices {
			if err := j.sweep(j.ctx, &j.cfg.Devices[i]); err != nil && j.ctx.Err() == nil {
				j.log.Warn("leftovers not looked for", "device", j.cfg.Devices[i].ID, "err", err)
			}
		}
	}
}

// sweep asks of every shard of a device whether it is needed, and whether others are
// missed. The shards of a question are claimed first, so that no rebuild begins on
// one that the answer gives up.
func (j *Janitor) sweep(ctx context.Context, d *Device) error {
	var all []frame.ShardRef
	d.Store.Each(func(st store.Stat) bool { all = append(all, st.Ref); return true })
	slices.SortFunc(all, func(a, b frame.ShardRef) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Shard, b.Shard))
	})
	for after, more := layout.SegmentID(0), true; more; {
		n, through := min(sweepPage, len(all)), layout.SegmentID(math.MaxUint64)
		if more = n < len(all); more {
			through = all[n-1].Segment
		}
		if err := j.sweepPage(ctx, d, all[:n], after, through); err != nil {
			return err
		}
		all, after = all[n:], through
	}
	return d.Store.Err()
}

// sweepPage asks about some of a device's shards: all that it has in segments above
// one, up to another.
func (j *Janitor) sweepPage(ctx context.Context, d *Device, refs []frame.ShardRef, after, through layout.SegmentID) error {
	req := &pb.CheckShardsRequest{Server: uint64(j.cfg.Server), Device: uint64(d.ID), After: uint64(after), Through: uint64(through)}
	claimed := map[layout.ShardKey]frame.ShardRef{}
	for _, ref := range refs {
		end, err := j.begin(ref.ShardKey)
		if err != nil {
			continue
		}
		defer end()
		claimed[ref.ShardKey] = ref
		req.Shards = append(req.Shards, refOut(ref, d.ID))
	}
	asking, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	var reply *pb.CheckShardsReply
	err := j.cfg.Meta.Do(asking, func(ctx context.Context, m pb.MetaClient) (err error) {
		reply, err = m.CheckShards(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	err = j.remove(d, claimed, reply.Leftovers, d.Store.Delete)
	if err == nil {
		err = j.remove(d, claimed, reply.Abandoned, d.Store.Discard)
	}
	j.missed(ctx, d, reply.Missing)
	return err
}

// missed reports the shards that the state places on a device, and that it does not
// have. It looks for them after the state named them: what a rebuild has made since
// the sweep began is there.
func (j *Janitor) missed(ctx context.Context, d *Device, list []*pb.ShardRef) {
	reports := Lacking(d.Store, list)
	for _, r := range reports {
		j.log.Warn("shard missed", "segment", r.Shard.Segment, "shard", r.Shard.Shard, "device", d.ID, "err", r.Detail)
	}
	for len(reports) > 0 && d.Store.Err() == nil {
		n := min(sweepPage, len(reports))
		j.tell(ctx, reports[:n])
		reports = reports[n:]
	}
}

// Lacking gives a report of each shard that a store does not have, or has in another
// generation only.
func Lacking(s Store, list []*pb.ShardRef) (reports []*pb.ShardReport) {
	for _, p := range list {
		ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: layout.SegmentID(p.Segment), Shard: layout.ShardIndex(p.Shard)}, Generation: layout.Generation(p.Generation)}
		_, err := s.Stat(ref)
		if kind := errs.KindOf(err); kind == errs.NotHere || kind == errs.StaleGeneration {
			reports = append(reports, &pb.ShardReport{Shard: p, Kind: uint32(kind), Detail: "sweep: " + err.Error()})
		}
	}
	return reports
}

// remove removes the shards that an answer names, if they were asked about.
func (j *Janitor) remove(d *Device, asked map[layout.ShardKey]frame.ShardRef, list []*pb.ShardRef, how func(frame.ShardRef) error) error {
	for _, p := range list {
		ref, ok := asked[layout.ShardKey{Segment: layout.SegmentID(p.Segment), Shard: layout.ShardIndex(p.Shard)}]
		if !ok || uint32(ref.Generation) != p.Generation {
			continue
		}
		if err := how(ref); err != nil && errs.KindOf(err) != errs.NotHere {
			return err
		}
		j.cfg.Gone(ref, d.ID)
		j.log.Info("leftover removed", "segment", ref.Segment, "shard", ref.Shard, "device", d.ID)
	}
	return nil
}
