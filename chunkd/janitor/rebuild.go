package janitor

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

// maxShardsPerCall bounds the shards of one call.
const maxShardsPerCall = 64

// RebuildShards implements pb.ChunkServer.
func (j *Janitor) RebuildShards(ctx context.Context, req *pb.RebuildShardsRequest) (*pb.RebuildShardsReply, error) {
	if len(req.Shards) > maxShardsPerCall {
		return nil, errs.New(errs.TooLarge, "rebuild", "%d shards in one call, at most %d are allowed", len(req.Shards), maxShardsPerCall)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(j.ctx, cancel)()
	reply := &pb.RebuildShardsReply{Results: make([]*pb.RebuiltShard, len(req.Shards))}
	var group errgroup.Group
	for i, r := range req.Shards {
		group.Go(func() error { reply.Results[i] = j.rebuild(ctx, r); return nil })
	}
	group.Wait()
	return reply, nil
}

// rebuild makes one shard again, unless another task works on it.
func (j *Janitor) rebuild(ctx context.Context, r *pb.RebuildShard) *pb.RebuiltShard {
	refused := func(err error) *pb.RebuiltShard {
		return &pb.RebuiltShard{Result: &pb.ShardResult{Shard: r.GetTarget().GetShard(), Kind: uint32(errs.KindOf(err)), Message: err.Error()}}
	}
	b, err := jobOf(r)
	if err != nil {
		return refused(err)
	}
	end, err := j.begin(b.spec.Key)
	if err != nil {
		return refused(err)
	}
	defer end()
	dev, err := j.device(b.device)
	if err != nil {
		return refused(err)
	}
	out := j.work(dev).Rebuild(ctx, r)
	if out.Result.Kind == uint32(errs.OK) && !b.inPlace {
		j.cfg.Made(frame.ShardRef{ShardKey: b.spec.Key, Generation: b.spec.Generation}, b.device)
	}
	return out
}

// task is a job under way.
type task struct {
	*job
	Work
	memory memory // of the batch under way
	turn   int    // which source comes first; the next batch begins with the next

	written uint64
	stripes uint32

	mu        sync.Mutex
	readBytes uint64 // guarded by mu while sources are read
	last      error  // guarded by mu while sources are read: why one failed
}

func newTask(b *job, w Work) *task {
	return &task{job: b, Work: w, memory: memory{slabs: w.Slabs}, turn: int(b.spec.Key.Segment)}
}

func (t *task) run(ctx context.Context) error {
	err := t.create(ctx)
	if errs.KindOf(err) == errs.Conflict {
		err = t.supersede(ctx, err)
	}
	if err != nil {
		return err
	}
	list, err := t.list(ctx)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		batch := cutBatch(list)
		if err := t.batch(ctx, batch); err != nil {
			return err
		}
		list = list[len(batch):]
		t.turn++
	}
	return t.Device.turn(ctx, true, 1, func() error { return t.Device.Store.Mend(t.ref(), t.seal.Last, t.goal()) })
}

// create makes the shard, or finds the one that an earlier try left.
func (t *task) create(ctx context.Context) error {
	if t.inPlace {
		_, err := t.Device.Store.Stat(t.ref())
		return err
	}
	return t.Device.turn(ctx, true, 1, func() error { return t.Device.Store.Create(t.spec) })
}

// cutBatch gives the stripes of the next batch.
func cutBatch(list []sealed) []sealed {
	n, bytes := 0, 0
	for n < len(list) && n < batchStripes {
		h := list[n].header
		bytes += int(h.Shape.Unit) * h.Shape.Data.Count()
		if n++; bytes >= batchBytes {
			break
		}
	}
	return list[:n]
}

// batch makes the target's units of some stripes, and writes them.
func (t *task) batch(ctx context.Context, list []sealed) error {
	units, err := t.make(ctx, list)
	if err != nil {
		return err
	}
	stripes, bytes := uint32(0), 0
	for _, u := range units {
		if u.Payload != nil {
			stripes++
			bytes += len(u.Payload)
		}
	}
	if err := t.paced(ctx, bytes); err != nil {
		return err
	}
	t.stripes += stripes
	t.written += uint64(bytes)
	return t.Device.Store.Fill(t.ref(), units, t.Device.turns(ctx))
}

// make makes the target's units of some stripes from the sources. They are there until
// it is called again.
func (t *task) make(ctx context.Context, list []sealed) ([]store.Unit, error) {
	batch := make([]*wanted, len(list))
	target := t.spec.Key.Shard
	t.memory.again()
	for i := range list {
		batch[i] = &wanted{sealed: list[i], units: make([][]byte, t.spec.Geometry.Shards())}
		if t.inPlace {
			batch[i].tried = batch[i].tried.With(target)
		}
	}
	if t.inPlace {
		if err := t.readOwn(ctx, batch); err != nil {
			return nil, err
		}
	}
	if err := t.gather(ctx, batch, target); err != nil {
		return nil, err
	}
	units := make([]store.Unit, len(batch))
	for i, w := range batch {
		unit, err := t.unit(w)
		if err != nil {
			return nil, err
		}
		units[i] = store.Unit{Header: w.raw, Payload: unit}
	}
	return units, nil
}

// paced holds the task to the ceiling, unless it is urgent.
func (t *task) paced(ctx context.Context, n int) error {
	if t.urgent {
		return ctx.Err()
	}
	return t.Pace(ctx, int64(n))
}

// unit gives the target's unit of a stripe; nil when it is right where it is, or
// there is none.
func (t *task) unit(w *wanted) ([]byte, error) {
	target := t.spec.Key.Shard
	if w.done || w.header.Shape.Unit == 0 {
		return nil, nil
	}
	if !w.have.Has(target) {
		if err := t.decode(w, layout.Mask(0).With(target)); err != nil {
			return nil, err
		}
	}
	return w.units[target], nil
}

// decode computes units from those at hand and holds them against the header.
func (t *task) decode(w *wanted, want layout.Mask) error {
	if err := t.encode(w, want); err != nil {
		return err
	}
	for m := want; m != 0; m &= m - 1 {
		s, _ := m.Nth(0)
		if !unitFits(w.header, s, w.units[s]) {
			return errs.New(errs.Corrupt, "", "stripe %d of segment %d: shard %d does not come out as its checksums say", w.header.Seq, w.header.Segment, s)
		}
	}
	return nil
}

// encode computes units from those at hand.
func (t *task) encode(w *wanted, want layout.Mask) error {
	coder, err := t.Coders.For(t.spec.Geometry)
	if err != nil {
		return err
	}
	for m := want; m != 0; m &= m - 1 {
		s, _ := m.Nth(0)
		w.units[s] = t.memory.bytes(int(w.header.Shape.Unit))
	}
	zero := w.header.Geometry.DataMask() &^ w.header.Shape.Data
	return coder.Reconstruct(w.units, w.have&^want, zero, want)
}

// readOwn reads the shard's own units and marks the stripes whose bytes are
// right: their records alone are looked at.
func (t *task) readOwn(ctx context.Context, batch []*wanted) error {
	var buf []byte
	for _, w := range batch {
		n := int(w.header.Shape.Unit)
		if n == 0 {
			continue
		}
		buf = slices.Grow(buf[:0], n)[:n]
		err := t.Device.read(ctx, t.ref(), w.header.Offset, buf)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.done = err == nil && unitFits(w.header, t.spec.Key.Shard, buf)
	}
	return nil
}
