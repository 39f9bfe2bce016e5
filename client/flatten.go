package client

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// flatten is the next round on the way to a volume that names nothing of its
// ancestors: it relocates live blocks, then moves the map's pages, then says so with a
// root. What was moved stays moved, so it can be broken off anywhere. nil: what is left
// can't be read now.
func (c *cleaner) flatten(all *census, s situation) *round {
	r := &round{vacate: all.foreign, inTurn: s.pressed}
	list := c.unreadable.without(all.inherited, time.Now())
	var live layout.BlockCount
	for _, one := range list {
		if live += one.Live; len(r.victims) > 0 && live.Bytes() > s.most() {
			break
		}
		r.victims = append(r.victims, one.ID)
	}
	switch {
	case !r.vain():
	case len(all.inherited) > 0:
		return nil
	default:
		r.flat = true
	}
	return r
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
