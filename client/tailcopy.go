package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"strake/client/internal/recovery"
	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const (
	// tailTries bounds the segments tried for the tail copy.
	tailTries = 4
	// tailTimeout bounds one append or sync of a tail copy.
	tailTimeout = 10 * time.Second
	// tailMemory bounds the payload in flight of a tail copy, in bytes, and
	// tailLeast what a small stripe counts, so that there are at most 64.
	tailMemory = 64 << 20
	tailLeast  = 1 << 20
)

// copyTail appends the standing stripes of the tail again under the new epoch,
// durably, in a fresh segment, on other servers than those to avoid if there are
// enough. It gives that segment's seal, nil when there was nothing to copy.
func (l lease) copyTail(ctx context.Context, plan recovery.Plan, unsealed []*segment, avoid []layout.ServerID) (*stripe.Seal, error) {
	if len(plan.Tail) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		to, err := l.tailSegment(ctx, plan.Tail, avoid)
		if err != nil {
			return nil, err
		}
		c := newTailCopy(l, to, unsealed)
		seal, err := c.run(ctx, plan)
		if err == nil || try == tailTries || ctx.Err() != nil {
			return seal, err
		}
		avoid = append(avoid, c.failed...)
	}
}

// tailCopy copies a tail into one segment, many stripes at once; one Sync for
// each device makes all of it durable.
type tailCopy struct {
	l    lease
	to   *segment
	from map[layout.SegmentID]*segment
	room *semaphore.Weighted

	mu     sync.Mutex
	lives  []layout.Incarnation // guarded by mu, by shard: of those that stored something
	failed []layout.ServerID    // guarded by mu: that did not take their part
}

func newTailCopy(l lease, to *segment, unsealed []*segment) *tailCopy {
	c := &tailCopy{l: l, to: to, from: map[layout.SegmentID]*segment{}, room: semaphore.NewWeighted(tailMemory),
		lives: make([]layout.Incarnation, len(to.shards))}
	for _, s := range unsealed {
		c.from[s.id] = s
	}
	return c
}

func (c *tailCopy) run(ctx context.Context, plan recovery.Plan) (*stripe.Seal, error) {
	headers := c.lay(plan)
	group, groupCtx := errgroup.WithContext(ctx)
	for i, t := range plan.Tail {
		weight := min(tailMemory, max(tailLeast, layout.BlockCount(t.Header.Blocks).Bytes()))
		if c.room.Acquire(groupCtx, weight) != nil {
			break // the group tells why
		}
		group.Go(func() error {
			defer c.room.Release(weight)
			return c.copy(groupCtx, t, headers[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, errs.Wrap(err, "copy %d stripes", len(headers))
	}
	if err := c.sync(ctx); err != nil {
		return nil, err
	}
	seal := stripe.NewSeal(c.to.id, c.to.geometry)
	for _, h := range headers {
		seal.Add(h)
	}
	return &seal, nil
}

// lay gives every stripe its place in the new segment.
func (c *tailCopy) lay(plan recovery.Plan) (headers []*stripe.Header) {
	var at layout.ShardOffset
	for _, t := range plan.Tail {
		h := *t.Header
		h.Epoch, h.Segment, h.Geometry, h.Offset, h.CRCs = c.l.epoch, c.to.id, c.to.geometry, at, nil
		h.Flushed = plan.Flushed
		h.Shape = h.Geometry.ShapeFor(layout.BlockCount(h.Blocks), h.Seq)
		at = h.End()
		headers = append(headers, &h)
	}
	return headers
}

// copy reads one stripe and appends it.
func (c *tailCopy) copy(ctx context.Context, t recovery.Tail, h *stripe.Header) error {
	payload, err := c.l.readStripe(ctx, c.from[t.Segment], t)
	if err != nil {
		return errs.Wrap(err, "read stripe %d from segment %d", h.Seq, t.Segment)
	}
	units, err := c.l.cell.shards.builder.Build(h, payload)
	if err != nil {
		return err
	}
	defer units.Release()
	var group errgroup.Group
	for m := h.Participants(); m != 0; m &= m - 1 {
		h.Shard, _ = m.Nth(0)
		shard := h.Shard
		body := frame.AppendBody{Shard: c.to.ref(shard), Header: h.AppendTo(nil)}
		call := &transport.Call{Request: frame.Request{Kind: frame.Append, Class: layout.ClassBackground, Epoch: c.l.epoch},
			Meta: body.AppendTo(nil), Payload: units.Of(shard)}
		group.Go(func() error {
			return errs.Wrap(c.send(ctx, shard, call), "append stripe %d to shard %d/%d", h.Seq, c.to.id, shard)
		})
	}
	return group.Wait()
}

// send sends an append and checks that the device lives on meanwhile.
func (c *tailCopy) send(ctx context.Context, shard layout.ShardIndex, call *transport.Call) error {
	server := c.to.shards[shard].server
	err := c.l.cell.shards.doWithin(ctx, tailTimeout, target{server, c.to.id}, call)
	c.mu.Lock()
	defer c.mu.Unlock()
	life := call.Reply.Incarnation
	if err == nil && c.lives[shard] != 0 && c.lives[shard] != life {
		err = errs.New(errs.IncarnationMoved, "", "the device on server %d restarted", server)
	}
	if err != nil {
		c.blame(ctx, server)
		return errs.Wrap(err, "server %d", server)
	}
	c.lives[shard] = life
	return nil
}

// blame notes a server that failed, unless the copy had ended before. mu is held.
func (c *tailCopy) blame(ctx context.Context, server layout.ServerID) {
	if ctx.Err() == nil && !slices.Contains(c.failed, server) {
		c.failed = append(c.failed, server)
	}
}

// sync makes what the shards stored durable.
func (c *tailCopy) sync(ctx context.Context) error {
	var group errgroup.Group
	for i, life := range c.lives {
		if life == 0 {
			continue
		}
		at := c.to.shards[i]
		body := frame.SyncBody{Incarnation: life, Device: at.device, Shards: []frame.ShardRef{c.to.ref(layout.ShardIndex(i))}}
		call := &transport.Call{Request: frame.Request{Kind: frame.Sync, Class: layout.ClassBackground, Epoch: c.l.epoch}, Meta: body.AppendTo(nil)}
		group.Go(func() error {
			err := c.l.cell.shards.doWithin(ctx, tailTimeout, target{at.server, c.to.id}, call)
			if err != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.blame(ctx, at.server)
			}
			return errs.Wrap(err, "sync shard %d/%d on server %d", c.to.id, i, at.server)
		})
	}
	return group.Wait()
}
