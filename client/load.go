package client

import (
	"context"

	"strake/client/internal/extent"
	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// followTries bounds the attempts to read the log of a volume that somebody
// writes meanwhile.
const followTries = 5

// Refresh brings a read-only handle up to what is durable now, and the size of
// any handle. A writer's handle is always up to date, a snapshot never changes.
func (v *Volume) Refresh(ctx context.Context) error {
	op := "refresh " + v.name
	if v.closed.Load() {
		return errs.New(errs.Closed, op, "the volume is closed")
	}
	if v.frozen != nil {
		return nil
	}
	n, err := parseName(op, v.name)
	if err != nil {
		return err
	}
	r, err := v.cell.view(ctx, n)
	if err != nil {
		return errs.Wrap(err, "%s", op)
	}
	if layout.VolumeID(r.Volume.Id) != v.id {
		return errs.New(errs.NotFound, op, "the volume was removed or rolled back; another has its name").WithHint("open it again")
	}
	v.size.Store(int64(r.Volume.SizeBytes))
	if v.w != nil {
		return nil
	}
	return errs.Wrap(v.follow(ctx, n, r), "%s", op)
}

// follow builds the extent map of a volume that somebody may be writing. What
// was flushed before the view was taken lies in segments that it names; what
// came later may lie in others, so the log may have a gap there, and ends at it.
// A segment may also go away under the reader. Either way a fresh view helps; a
// gap below what was seen flushed that stays is a loss, and told.
func (v *Volume) follow(ctx context.Context, n layout.VolumeName, r *pb.OpenVolumeReply) error {
	var first layout.Seq // what the first look saw flushed
	for try := 1; ; try++ {
		tree, flushed, err := v.build(ctx, r)
		if try == 1 {
			first = flushed
		}
		if err == nil && tree.Applied() >= min(first, flushed) {
			v.install(tree)
			return nil
		}
		if err == nil {
			err = errs.New(errs.Corrupt, "replay the log", "seq %d is missing, and seq %d was flushed", tree.Applied()+1, flushed)
		}
		if try == followTries || ctx.Err() != nil {
			return err
		}
		if r, err = v.cell.view(ctx, n); err != nil {
			return err
		}
	}
}

// loadAll builds the extent map for a writer, whose log ends at last: nobody
// else appends to it.
func (v *Volume) loadAll(ctx context.Context, r *pb.OpenVolumeReply, last layout.Seq) error {
	tree, _, err := v.build(ctx, r)
	if err != nil {
		return err
	}
	if tree.Applied() != last {
		return errs.New(errs.Corrupt, "replay the log", "seq %d is missing, the log ends at %d", tree.Applied()+1, last)
	}
	v.install(tree)
	return nil
}

func (v *Volume) install(tree *extent.Map) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tree = tree
}

// build makes an extent map of the newest root and the stripes after it, up to
// the first that is missing. flushed is the last seq that is known to be durable.
func (v *Volume) build(ctx context.Context, r *pb.OpenVolumeReply) (tree *extent.Map, flushed layout.Seq, err error) {
	tree = extent.New()
	if r.GetRoot().GetNumber() > 0 {
		if tree, err = extent.Open(extent.Root(r.Root.Page)); err != nil {
			return nil, 0, errs.Wrap(err, "read map root %d", r.Root.Number)
		}
	}
	var cuts []recovery.Cut
	for _, k := range r.Cuts {
		cuts = append(cuts, recovery.Cut{Before: layout.Epoch(k.BeforeEpoch), Seq: layout.Seq(k.Seq)})
	}
	headers, flushed, err := v.cell.replayHeaders(ctx, tree.Covers(), r.Segments)
	if err == nil && len(r.Ancestors) > 0 {
		var more []*stripe.Header
		more, err = v.cell.ancestorHeaders(ctx, tree.Covers(), r.Ancestors)
		headers, flushed = append(headers, more...), max(flushed, layout.Seq(r.Ancestors[0].Limit))
	}
	if err != nil {
		return nil, 0, errs.Wrap(err, "replay the log after seq %d", tree.Covers())
	}
	return tree, flushed, apply(tree, recovery.Replay(headers, cuts))
}

// apply maps headers up to the first that is missing.
func apply(tree *extent.Map, headers []*stripe.Header) error {
	for _, h := range headers {
		if h.Seq > tree.Applied()+1 {
			return nil
		}
		if err := tree.Apply(h); err != nil {
			return err
		}
	}
	return nil
}
