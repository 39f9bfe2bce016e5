package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// sealAll seals closed segments whose current stripes are all flushed: a seal
// never holds a stripe that isn't. A segment that was left has none by then.
func (c *Core) sealAll(now time.Duration) {
	for _, s := range c.closed {
		if c.sealable(s) && s.asking.passed(now) {
			s.sealing = true
			seal := c.sealOf(s).Clone()
			c.do(Action{Kind: SealSegment, Seal: &seal})
		}
	}
}

func (c *Core) sealable(s *segment) bool {
	return s.live == 0 && !s.sealing && (!c.unrecorded || s.recorded.Count == s.seal.Count)
}

// sealOf: a map segment holds what the last recorded root holds.
func (c *Core) sealOf(s *segment) stripe.Seal {
	if c.mapped {
		return s.recorded
	}
	return s.seal
}

// Sealed answers a SealSegment.
func (c *Core) Sealed(now time.Duration, id layout.SegmentID, err error) {
	if c.err != nil {
		return
	}
	for _, s := range c.closed {
		if s.pub.ID != id || !s.sealing {
			continue
		}
		s.sealing = false
		switch {
		case err == nil:
			c.closed = remove(c.closed, s)
		case metaEnds(err):
			c.end(errs.Wrap(err, "seal segment %d", id))
		default: // the metadata service is away: move on first, seal later
			s.asking.refused(now, retryMost)
		}
		break
	}
	c.step(now)
}

// metaEnds tells whether a refusal of the metadata service ends the writer:
// another one took the volume, or a command was refused as wrong. All else is
// asked again.
func metaEnds(err error) bool {
	switch errs.KindOf(err) {
	case errs.StaleEpoch, errs.LeaseLost, errs.Conflict, errs.InvalidArgument, errs.NotFound, errs.PermissionDenied:
		return true
	}
	return false
}
