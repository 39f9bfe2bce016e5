package client

import (
	"context"
	"slices"
	"time"

	"strake/client/internal/clean"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// victimPause is for how long a segment is left alone whose live blocks could not
	// be read; it doubles with each failure up to victimLongest.
	victimPause   = time.Minute
	victimLongest = time.Hour
	// maxUnreadable bounds the victims that fail in one round: where so many do, it is
	// not they who are broken.
	maxUnreadable = 8
)

// unreadable are segments whose live blocks could not be read, so that they can't be
// moved. They stay victims like others, later: servers may come back. It belongs to
// who cleans.
type unreadable map[layout.SegmentID]failure

type failure struct {
	until time.Time // not tried before
	wait  time.Duration
}

// note takes a failure down.
func (u unreadable) note(id layout.SegmentID, now time.Time) {
	f := u[id]
	f.wait = min(max(2*f.wait, victimPause), victimLongest)
	f.until = now.Add(f.wait)
	u[id] = f
}

// without leaves out what is not to be tried now. What has no live block is not read.
func (u unreadable) without(list []clean.Segment, now time.Time) []clean.Segment {
	if len(u) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(s clean.Segment) bool { return s.Live > 0 && now.Before(u[s.ID].until) })
}

// leave decides about a victim that could not be read, err says why: it is left out
// of this round and those that follow soon. Error: err itself, when it says nothing
// about the victim, or when too many failed in a row.
func (c *cleaner) leave(ctx context.Context, id layout.SegmentID, err error) error {
	switch errs.KindOf(err) {
	case errs.Corrupt, errs.Unavailable, errs.NotFound, errs.NotHere, errs.StaleGeneration, errs.Deadline:
	default:
		return err
	}
	if c.spoilt++; c.spoilt > maxUnreadable || ctx.Err() != nil || c.w.life.Err() != nil {
		return err
	}
	c.unreadable.note(id, time.Now())
	c.v.cell.cfg.Logger.Warn("segment not cleaned: what is live in it can't be read", "volume", c.v.id, "segment", id, "err", err)
	return nil
}

// liveIn lists what is live in segments, in block order, or with inTurn one segment
// after the other. Segments that don't tell are left.
func (c *cleaner) liveIn(ctx context.Context, segments []layout.SegmentID, inTurn bool) (all []clean.Live, err error) {
	for _, id := range segments {
		list, err := c.v.liveOf(ctx, id)
		if err != nil {
			if err = c.leave(ctx, id, err); err != nil {
				return nil, err
			}
		}
		all = append(all, list...)
	}
	if !inTurn {
		sortByBlock(all)
	}
	return all, nil
}

// sift reads a batch, which failed with err, segment by segment. It leaves those that
// fail again, and gives the list, with the batch before it, without them.
func (c *cleaner) sift(ctx context.Context, batch, list []clean.Live, err error) ([]clean.Live, error) {
	bad := map[layout.SegmentID]bool{}
	seen := map[layout.SegmentID]bool{}
	for _, e := range batch {
		id := e.Place.Segment
		if seen[id] {
			continue
		}
		seen[id] = true
		one := only(batch, id)
		switch e := one.fill(ctx, c.v); {
		case e == nil:
			one.buf.release()
		default:
			if e = c.leave(ctx, id, e); e != nil {
				return nil, e
			}
			bad[id] = true
		}
	}
	if len(bad) == 0 {
		return nil, err // all of it can be read by itself
	}
	all := slices.Concat(batch, list)
	return slices.DeleteFunc(all, func(e clean.Live) bool { return bad[e.Place.Segment] }), nil
}

// only is the part of a batch that lies in one segment.
func only(batch []clean.Live, id layout.SegmentID) (b relocation) {
	for _, e := range batch {
		if e.Place.Segment == id {
			b.list, b.blocks = append(b.list, e), b.blocks+e.Count
		}
	}
	return b
}
