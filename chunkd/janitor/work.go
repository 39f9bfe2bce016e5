package janitor

import (
	"context"
	"encoding/binary"
	"sync"

	"strake/internal/erasure"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// Work is what a rebuild works with, beside its job: the seam at which the
// seeded cluster takes the place of a janitor and its links.
type Work struct {
	Device   *Device
	Coders   *erasure.Set
	Slabs    *Slabs // nil: none are kept
	Remote   Remote
	Pace     func(ctx context.Context, bytes int64) error // of what is written, unless it is urgent
	Together func(list []func())                          // runs all, beside each other or not, and waits
}

// Remote reads shards of other chunk servers.
type Remote interface {
	// Read fills buf with ranges of a shard.
	Read(ctx context.Context, addr string, ref frame.ShardRef, ranges []frame.ReadRange, buf []byte) error
	// List gives the encoded headers of a shard's stripes from a seq on, and where
	// the next page begins; 0: this is the last one.
	List(ctx context.Context, addr string, ref frame.ShardRef, from layout.Seq) (page []byte, next layout.Seq, err error)
}

// Rebuild makes one shard again, and says how it went.
func (w Work) Rebuild(ctx context.Context, r *pb.RebuildShard) *pb.RebuiltShard {
	out := &pb.RebuiltShard{Result: &pb.ShardResult{Shard: r.GetTarget().GetShard()}}
	if err := w.rebuild(ctx, r, out); err != nil {
		out.Result.Kind, out.Result.Message = uint32(errs.KindOf(err)), err.Error()
	}
	return out
}

func (w Work) rebuild(ctx context.Context, r *pb.RebuildShard, out *pb.RebuiltShard) error {
	b, err := jobOf(r)
	if err != nil {
		return err
	}
	t := newTask(b, w)
	defer t.memory.end()
	err = t.run(ctx)
	if err != nil && t.last != nil && errs.KindOf(err) == errs.Unavailable {
		err = errs.New(errs.Unavailable, "", "%v (last: %v)", err, t.last)
	}
	out.ReadBytes, out.WrittenBytes, out.Stripes = t.readBytes, t.written, t.stripes
	for _, s := range b.sources {
		if s.found {
			out.Bad = append(out.Bad, &pb.ShardRef{Segment: uint64(s.ref.Segment), Shard: uint32(s.ref.Shard), Generation: uint32(s.ref.Generation), Device: uint64(s.device)})
		}
	}
	return errs.Wrap(err, "rebuild shard %v", b.spec.Key)
}

// work is what a janitor's own rebuilds work with.
func (j *Janitor) work(d *Device) Work {
	return Work{Device: d, Coders: &j.coders, Slabs: &j.slabs, Remote: j.sources, Pace: j.rebuilt.take, Together: together}
}

func together(list []func()) {
	var wait sync.WaitGroup
	for _, f := range list {
		wait.Go(f)
	}
	wait.Wait()
}

// Read implements Remote.
func (p *pool) Read(ctx context.Context, addr string, ref frame.ShardRef, ranges []frame.ReadRange, buf []byte) error {
	body := frame.ReadBody{Shard: ref, Ranges: ranges}
	return p.with(ctx, addr, func(l *link) error {
		_, err := l.call(ctx, &frame.Request{Kind: frame.Read, Flags: frame.NoCRCs}, body.AppendTo(nil), buf)
		return err
	})
}

// List implements Remote.
func (p *pool) List(ctx context.Context, addr string, ref frame.ShardRef, from layout.Seq) (page []byte, next layout.Seq, err error) {
	body := frame.ListBody{Shard: ref, From: from, Most: listPage}
	err = p.with(ctx, addr, func(l *link) error {
		head, got, err := l.callSized(ctx, &frame.Request{Kind: frame.List}, body.AppendTo(nil), max(listPage, stripe.MaxLen))
		if err != nil {
			return err
		}
		if len(head) != 12 {
			return errs.New(errs.Unavailable, "list", "a reply of %d bytes", len(head))
		}
		page, next = got, layout.Seq(binary.LittleEndian.Uint64(head))
		return nil
	})
	return page, next, err
}
