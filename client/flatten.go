package client

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// flatten takes one step towards a volume that names nothing of its ancestors: it
// relocates a round's worth of live blocks, then moves the map's pages, then says
// so with a root. What was moved stays moved, so it can be broken off anywhere.
func (c *cleaner) flatten(ctx context.Context, all *census) error {
	var victims []layout.SegmentID
	var live layout.BlockCount
	for _, s := range all.inherited {
		if live += s.Live; len(victims) > 0 && live.Bytes() > roundBytes {
			break
		}
		victims = append(victims, s.ID)
	}
	if len(victims) > 0 || len(all.foreign) > 0 {
		_, err := c.round(ctx, round{victims: victims, vacate: all.foreign, rate: idleRate})
		return err
	}
	c.v.mu.Lock()
	c.w.mapper.flat = true
	c.v.mu.Unlock()
	return c.w.mapper.checkpoint(c.w.life)
}

// FlattenVolume wants a clone made independent of what it began as: its writer, or
// a janitor while there is none, copies what it still shares in the background. The
// volume's Inherited tells how much that is, and its Origin is gone when it is done;
// snapshots that were taken of it before keep the origin until they are removed.
// stop takes the wish back: what was copied stays. A volume that shares nothing is
// left alone. Errors: ErrNotFound.
func (c *Cell) FlattenVolume(ctx context.Context, name string, stop bool) (VolumeInfo, error) {
	op := "flatten volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.FlattenVolumeReply, error) {
		return m.FlattenVolume(ctx, &pb.FlattenVolumeRequest{Tenant: n.Tenant, Name: n.Volume, Stop: stop})
	})
	return volumeInfo(r.GetVolume()), errs.Wrap(err, "%s", op)
}
