package client

import (
	"context"
	"sync"
	"time"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// cleanEvery is how often a writer looks whether its volume wants cleaning; one
	// that did not change is looked at every cleanIdle looks, for snapshots that went
	// and for space that grew short.
	cleanEvery = 5 * time.Second
	cleanIdle  = 3
	// cleanLongest bounds the wait after looks that failed.
	cleanLongest = time.Minute
	// roundBytes is how much a round moves before a root records it and gives the
	// space back; less where space is short.
	roundBytes   = 256 << 20
	pressedBytes = 16 << 20
	// spaceTries is how often a cleaning without room for what it moves waits
	// spacePause for what earlier roots gave up.
	spaceTries = 20
	spacePause = 500 * time.Millisecond
	// vainRounds ends a cleaning whose rounds give nothing back.
	vainRounds = 2
)

// cleaner gives a volume's space back: it relocates what is live in segments that
// hold much garbage, and has them retired (design §9). It runs in whoever holds the
// volume's lease. One goroutine looks now and then; Clean cleans at once. Its writes
// are ordinary ones, in the volume's order, so it can stop, crash or lose the lease
// at any point: a source is retired only by a root that covers what replaced it.
type cleaner struct {
	v    *Volume
	w    *writer
	life context.Context
	die  context.CancelFunc
	done sync.WaitGroup

	one        chan struct{} // one slot: taken by who cleans
	catalog    catalog       // of who cleans, as is all below
	geometry   layout.Geometry
	pace       pacer
	writes     lately // the client's
	unreadable unreadable
	spoilt     int // victims of the round under way that could not be read
}

func newCleaner(v *Volume, w *writer) *cleaner {
	c := &cleaner{v: v, w: w, one: make(chan struct{}, 1), catalog: catalog{}, geometry: v.geometry, unreadable: unreadable{}}
	c.life, c.die = context.WithCancel(w.life)
	return c
}

// start has a goroutine look after the volume.
func (c *cleaner) start() { c.done.Go(c.run) }

// stop ends a cleaning under way and waits for it.
func (c *cleaner) stop() {
	c.die()
	c.done.Wait()
}

// rest is stop, for as long as ctx allows: a root that is being recorded is waited
// for, since its outcome must be known.
func (c *cleaner) rest(ctx context.Context) {
	c.die()
	ended := make(chan struct{})
	go func() {
		c.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (c *cleaner) run() {
	every := c.v.cell.cfg.Tuning.CleanEvery
	wait, idle := every, 0
	last := c.applied()
	for {
		pause(c.life, wait)
		if c.life.Err() != nil || c.w.life.Err() != nil {
			return
		}
		now := c.applied()
		busy := now != last
		if idle++; !busy && idle < cleanIdle {
			continue
		}
		_, err := c.clean(c.life, busy)
		last, idle, wait = c.applied(), 0, every
		if busy {
			idle = cleanIdle // the first look at rest comes soon
		}
		if err != nil && c.life.Err() == nil && c.w.life.Err() == nil {
			c.v.cell.cfg.Logger.Warn("cleaning failed", "volume", c.v.id, "err", err)
			wait = min(2*wait, cleanLongest)
		}
	}
}

func (c *cleaner) applied() layout.Seq {
	c.v.mu.Lock()
	defer c.v.mu.Unlock()
	return c.v.tree.Applied()
}

// CleanReport says what a cleaning did and what it left.
type CleanReport struct {
	Moved    int64 `json:"moved_bytes"`     // live data, parity not counted
	Segments int   `json:"segments"`        // that were emptied
	Garbage  int64 `json:"garbage_bytes"`   // that is left, parity included
	Needed   int64 `json:"needed_bytes"`    // what the live data needs
	Blocked  int64 `json:"blocked_bytes"`   // in segments that snapshots need
	Inherits int64 `json:"inherited_bytes"` // live data in segments of ancestors
	// Unreadable are segments that were to be emptied, and hold a live block that
	// could not be read. They are tried again after a minute, then after longer.
	Unreadable int `json:"unreadable_segments"`
}

// Clean gives back what space can be given back, as the volume's writer does now
// and then by itself: until garbage is less than a twentieth of what is needed, or
// next to nothing. What snapshots need stays, and so does what can't be read. Errors:
// ErrReadOnly, ErrNoSpace, and those of a writer that ended.
func (v *Volume) Clean(ctx context.Context) (CleanReport, error) {
	if err := v.writable("clean "+v.name, 0, 0); err != nil {
		return CleanReport{}, err
	}
	r, err := v.w.clean.clean(ctx, false)
	return r, errs.Wrap(err, "clean %s", v.name)
}

// clean makes rounds until the goal is met, then flattens, if that is wished. busy
// says that a client writes.
func (c *cleaner) clean(ctx context.Context, busy bool) (r CleanReport, err error) {
	select {
	case c.one <- struct{}{}:
	case <-ctx.Done():
		return r, errs.Wrap(ctx.Err(), "wait for a cleaning under way")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	defer func() { <-c.one }()
	defer c.w.closeCold()
	s, tight := situation{busy: busy}, 0
	for least, vain := int64(-1), 0; ; {
		next, flattens, err := c.look(ctx, &s, &r)
		if vain++; least < 0 || r.Garbage < least || c.spoilt > 0 {
			least, vain = r.Garbage, 0
		}
		if err != nil {
			return r, err
		}
		if next.vain() || vain >= vainRounds {
			if flattens == nil {
				return r, nil
			}
			next = *flattens
		}
		s.begun = true
		moved, err := c.once(ctx, next, &r)
		s.busy = s.busy && c.wroteWithin(c.v.cell.cfg.Tuning.CleanEvery)
		if tight++; err == nil || moved > 0 {
			tight = 0
		}
		switch {
		case err == nil:
		case errs.KindOf(err) == errs.NoSpace && tight < spaceTries:
			pause(ctx, spacePause) // what the last root gave up is on its way back
		default:
			return r, err
		}
	}
}

// look counts what the volume holds, and chooses the next round. flattens is the one
// to make when there is nothing to clean, nil when no flattening is wished or possible.
func (c *cleaner) look(ctx context.Context, s *situation, r *CleanReport) (next round, flattens *round, err error) {
	info, err := c.volume(ctx)
	if err != nil {
		return next, nil, err
	}
	all, err := c.catalog.take(ctx, c.v, layout.Held{Newest: layout.Seq(info.FrozenSeq), Outlived: layout.Seq(info.OutlivedSeq)})
	if err != nil {
		return next, nil, err
	}
	s.pressed = info.Pressed
	if info.Flattening && info.Origin != 0 {
		flattens = c.flatten(&all, *s)
	}
	next, err = c.next(ctx, &all, *s, r)
	return next, flattens, err
}

// once makes one round and counts it.
func (c *cleaner) once(ctx context.Context, next round, r *CleanReport) (moved int64, err error) {
	c.spoilt = 0
	moved, err = c.round(ctx, next)
	r.Moved, r.Unreadable = r.Moved+moved, r.Unreadable+c.spoilt
	if err == nil {
		emptied := len(next.victims) + len(next.empty) - c.spoilt
		r.Segments += emptied
		c.v.stats.cleaned.Add(uint64(emptied))
	}
	return moved, err
}

// round is what is done before the next root.
type round struct {
	victims []layout.SegmentID
	empty   []layout.SegmentID // nothing in them is live: a root is all they want
	vacate  []layout.SegmentID // map segments
	inTurn  bool               // space is short: one victim after the other, so that the first are empty soon
	flat    bool               // all is copied: the root says that the branch stands alone
}

func (r *round) vain() bool { return len(r.victims)+len(r.empty)+len(r.vacate) == 0 }

// situation is what a round depends on.
type situation struct {
	busy    bool // a client writes: more garbage is left
	pressed bool // the cell's space is short
	begun   bool // it is not the first round: it goes on to where its goal says that it stops
}

// most is how much may be moved in one round, in bytes.
func (s *situation) most() int64 {
	if s.pressed {
		return pressedBytes
	}
	return roundBytes
}

// next chooses the next round, and reports how the volume stands. Gains depend on
// the geometry that relocated blocks get: before anything is moved a segment for
// them is asked for, since a cell that lacks servers may give a narrow one.
func (c *cleaner) next(ctx context.Context, all *census, s situation, r *CleanReport) (round, error) {
	c.geometry = c.v.geometry
	out := c.plan(all, s)
	if len(out.victims) > 0 {
		g, err := c.w.coldGeometry(ctx)
		if err != nil && (errs.KindOf(err) != errs.NoSpace || c.w.life.Err() != nil) {
			return out, err
		}
		if err == nil && g != c.geometry {
			c.geometry = g
			out = c.plan(all, s)
		}
	}
	r.Garbage, r.Needed = clean.Garbage(all.list, c.geometry)
	r.Blocked, r.Inherits = all.blocked, liveBytes(all.inherited)
	return out, nil
}

func (c *cleaner) plan(all *census, s situation) round {
	goal, r := clean.Idle, round{inTurn: s.pressed}
	if s.busy && !s.pressed {
		goal = clean.Busy
	}
	if s.begun {
		goal.Start = goal.Stop
	}
	list := c.unreadable.without(all.list, time.Now())
	if s.pressed {
		list = clean.Free(list)
	}
	excess := goal.Excess(clean.Garbage(list, c.geometry))
	for _, v := range clean.Choose(list, c.geometry, all.head, excess, layout.Blocks(s.most())) {
		if v.Live == 0 {
			r.empty = append(r.empty, v.ID)
		} else {
			r.victims = append(r.victims, v.ID)
		}
	}
	r.vacate = clean.Vacate(all.pages, c.geometry, extent.MaxMapSegments/2, goal.Least)
	return r
}

// round relocates what is live in the victims, and records a root that names them
// no more.
func (c *cleaner) round(ctx context.Context, r round) (moved int64, err error) {
	list, err := c.liveIn(ctx, r.victims, r.inTurn)
	if err != nil {
		return 0, err
	}
	moved, err = c.relocate(ctx, list, &r)
	if err != nil && (errs.KindOf(err) != errs.NoSpace || moved == 0) {
		return moved, err
	}
	c.v.mu.Lock()
	c.v.tree.Vacate(r.vacate...)
	c.w.mapper.flat = c.w.mapper.flat || r.flat
	c.v.mu.Unlock()
	c.w.closeCold() // it is sealed, and counted, when it is looked at next
	if e := c.w.mapper.checkpoint(c.w.life); e != nil {
		return moved, e // what ran out of space has its root all the same: it may free some
	}
	return moved, err
}

// relocate moves blocks, batch by batch, while the one before is on its way.
func (c *cleaner) relocate(ctx context.Context, list []clean.Live, r *round) (moved int64, err error) {
	most := layout.BlockCount(c.v.geometry.K) * layout.MaxUnit / layout.BlockSize
	var under []*Completion
	await := func(left int) {
		for len(under) > left {
			if e := c.w.await(ctx, under[0]); err == nil {
				err = e
			}
			under = under[1:]
		}
	}
	for len(list) > 0 && err == nil {
		var b relocation
		b.list, b.blocks, list = clean.Batch(list, most)
		if err = c.pace.take(ctx, b.blocks.Bytes(), c.rate(r)); err != nil {
			break
		}
		if err = b.fill(ctx, c.v); err != nil {
			list, err = c.sift(ctx, b.list, list, err)
			continue
		}
		done := oneWait()
		n, e := c.w.relocate(ctx, &b, done)
		if err = e; n > 0 {
			moved += n.Bytes()
			under = append(under, done)
		}
		await(1)
	}
	await(0)
	return moved, err
}

// volume asks what the metadata service knows of the volume now.
func (c *cleaner) volume(ctx context.Context) (*pb.Volume, error) {
	r, err := call(ctx, c.v.cell, "look the volume up", func(ctx context.Context, m pb.MetaClient) (*pb.GetVolumeReply, error) {
		return m.GetVolume(ctx, &pb.GetVolumeRequest{Id: uint64(c.v.id)})
	})
	return r.GetVolume(), err
}

func liveBytes(list []clean.Segment) (n int64) {
	for _, s := range list {
		n += s.Live.Bytes()
	}
	return n
}
