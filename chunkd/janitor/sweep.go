package janitor

import (
	"context"
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

// sweep asks of every shard of a device whether it is needed. The shards of a
// question are claimed first, so that no rebuild begins on one that the answer
// gives up.
func (j *Janitor) sweep(ctx context.Context, d *Device) error {
	var all []frame.ShardRef
	d.Store.Each(func(st store.Stat) bool { all = append(all, st.Ref); return true })
	for len(all) > 0 {
		n := min(sweepPage, len(all))
		if err := j.sweepPage(ctx, d, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return d.Store.Err()
}

func (j *Janitor) sweepPage(ctx context.Context, d *Device, refs []frame.ShardRef) error {
	req := &pb.CheckShardsRequest{Server: uint64(j.cfg.Server)}
	claimed := map[layout.ShardKey]frame.ShardRef{}
	for _, ref := range refs {
		end, err := j.begin(ref.ShardKey)
		if err != nil {
			continue
		}
		defer end()
		claimed[ref.ShardKey] = ref
		req.Shards = append(req.Shards, &pb.ShardRef{Segment: uint64(ref.Segment), Shard: uint32(ref.Shard), Generation: uint32(ref.Generation), Device: uint64(d.ID)})
	}
	if len(req.Shards) == 0 {
		return nil
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
	return err
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
