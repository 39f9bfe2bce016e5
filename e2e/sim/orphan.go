package sim

import (
	"time"

	"strake/internal/layout"
)

// A recoverer that dies between the entry that closes its epoch and the seal of its
// tail leaves acknowledged stripes in an unsealed segment, and nowhere else.

// epochOf is one epoch of one volume.
type epochOf struct {
	volume layout.VolumeID
	epoch  layout.Epoch
}

// closed lets a recoverer die that is doomed to, right after its epoch was closed.
func (s *Sim) closed(v layout.VolumeID, e layout.Epoch) {
	key := epochOf{v, e}
	p := s.doomed[key]
	delete(s.doomed, key)
	if p == nil || s.healed {
		return
	}
	s.after(0, func() {
		s.note("recoverer dies with its tail unsealed", uint64(v), uint64(e))
		s.rare("a recoverer died before it sealed its tail")
		s.killRecoverer(p)
		s.hurtTail(v, e)
	})
}

// killRecoverer ends a client that recovered, or a server's janitors.
func (s *Sim) killRecoverer(p *process) {
	for _, c := range s.clients {
		if &c.process == p {
			c.kill()
			s.after(s.between(time.Millisecond, 300*time.Millisecond), c.start)
		}
	}
	for _, c := range s.chunks {
		if &c.process == p {
			for _, j := range c.janitors {
				j.Kill()
			}
			c.janitors = nil
		}
	}
}

// hurtTail lets bits rot in one shard of the tail and takes another's server away for
// a while: what they have together may be more than m shards.
func (s *Sim) hurtTail(v layout.VolumeID, e layout.Epoch) {
	page, _ := s.meta.newest().Unsealed(v, 0, 0)
	for i := range page {
		g := &page[i]
		if g.Map || g.Epoch != e {
			continue
		}
		for at, p := range g.Placements {
			c := s.onDevice(s.meta.newest(), p.Device)
			switch {
			case c == nil || !c.serving:
			case c.damaged && s.stores.mode == modeData:
				f := c.shardPath(layout.ShardKey{Segment: g.ID, Shard: layout.ShardIndex(at)}, p.Generation)
				for range 6 {
					s.flip(c, f)
				}
			case s.chance(700):
				c.crash()
				s.restartLater(c)
			}
		}
	}
}
