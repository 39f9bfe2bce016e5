package simclient

import (
	"time"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	vainRounds = 2
	// cleanRate is how many bytes a second a cleaner moves.
	cleanRate = 32 << 20
	pageTries = 16
	// coldWait bounds the wait for a place: the cell may give narrower segments by
	// now, in which a batch has no room.
	coldWait = 2 * time.Second
)

// Cleaning says how writers clean their volumes.
type Cleaning struct {
	Every      time.Duration // between two looks; 0: only when asked
	Busy, Idle Goal
	// Rows is how many rows of a segment are moved at once: a fresh segment of the
	// cell must take them.
	Rows layout.BlockCount
}

// Goal says how much garbage a volume may have: in thousandths of what it needs, and
// in bytes that are left alone.
type Goal = clean.Goal

// CleanReport says what a cleaning did and what it left.
type CleanReport struct {
	Moved, Garbage, Needed, Blocked int64 // bytes
	Rounds                          int
}

// cleaner gives a volume's space back, as package client does: the same steps.
type cleaner struct {
	v *Volume
	w *writer

	one      mutex // held by who cleans
	stopped  bool
	catalog  catalog
	geometry layout.Geometry
}

// run looks now and then whether the volume wants cleaning.
func (c *cleaner) run(f *Fiber) {
	last := c.v.tree.Applied()
	for c.w.c.sleep(f, c.w.c.opts.Clean.Every) && !c.over() {
		now := c.v.tree.Applied()
		_, _ = c.clean(f, now != last)
		last = now
	}
}

func (c *cleaner) over() bool { return c.stopped || c.w.err != nil }

// rest ends a cleaning under way and waits for it.
func (c *cleaner) rest(f *Fiber) bool {
	c.stopped = true
	c.w.mapper.changed.broadcast()
	if !c.one.lock(f) {
		return false
	}
	c.one.unlock()
	return true
}

// Clean gives back what space can be given back.
func (v *Volume) Clean(f *Fiber) (CleanReport, error) { return v.w.clean.clean(f, false) }

// clean makes rounds until the goal is met. busy says that a client writes.
func (c *cleaner) clean(f *Fiber, busy bool) (r CleanReport, err error) {
	if !c.one.lock(f) {
		return r, errKilled
	}
	defer c.one.unlock()
	defer func() { c.w.input(func(now time.Duration) { c.w.core.CloseCold(now) }) }()
	begun := false
	for least, vain := int64(-1), 0; ; {
		if f.dead || c.over() {
			return r, errs.New(errs.Canceled, "clean", "it was stopped")
		}
		info, err := metaCall[*VolumeInfo](c.w.c, f, 10*attemptTimeout, attemptTimeout, &GetVolume{Volume: c.v.ID})
		if err != nil {
			return r, err
		}
		all, err := c.catalog.take(f, c.v, info.Held)
		if err != nil {
			return r, err
		}
		if info.Flattening && info.Branch {
			if err := c.flatten(f, &all); err != nil {
				return r, err
			}
			continue
		}
		next, err := c.next(f, &all, busy, begun, &r)
		if vain++; least < 0 || r.Garbage < least {
			least, vain = r.Garbage, 0
		}
		if err != nil || next.vain() || vain == vainRounds {
			return r, err
		}
		begun = true
		r.Rounds++
		moved, err := c.round(f, next)
		r.Moved += moved
		if err != nil {
			return r, err
		}
	}
}

// round is what is done before the next root.
type round struct {
	victims []layout.SegmentID
	empty   []layout.SegmentID // nothing in them is live: a root is all they want
	vacate  []layout.SegmentID // map segments
	held    bool               // snapshots need some of the victims for now
}

func (r *round) vain() bool { return len(r.victims)+len(r.empty)+len(r.vacate) == 0 }

// next chooses the next round, and reports how the volume stands.
func (c *cleaner) next(f *Fiber, all *census, busy, begun bool, r *CleanReport) (round, error) {
	c.geometry = c.v.geometry
	out := c.plan(all, busy, begun)
	if len(out.victims) > 0 {
		g, err := c.w.coldGeometry(f)
		if err != nil {
			return out, err
		}
		if g != c.geometry {
			c.geometry = g
			out = c.plan(all, busy, begun)
		}
	}
	r.Garbage, r.Needed = clean.Garbage(all.list, c.geometry)
	r.Blocked = all.blocked
	return out, nil
}

func (c *cleaner) plan(all *census, busy, begun bool) (r round) {
	goal := c.w.c.opts.Clean.Idle
	if busy {
		goal = c.w.c.opts.Clean.Busy
	}
	if begun {
		goal.Start = goal.Stop
	}
	excess := goal.Excess(clean.Garbage(all.list, c.geometry))
	for _, v := range clean.Choose(all.list, c.geometry, all.head, excess, layout.MaxVolumeBytes/layout.BlockSize) {
		if v.Live == 0 {
			r.empty = append(r.empty, v.ID)
		} else {
			r.victims = append(r.victims, v.ID)
			r.held = r.held || v.Held
		}
	}
	r.vacate = clean.Vacate(all.pages, c.geometry, extent.MaxMapSegments/2, goal.Least)
	return r
}

// round relocates what is live in the victims, and records a root that names them
// no more.
func (c *cleaner) round(f *Fiber, r round) (moved int64, err error) {
	list, err := c.v.liveIn(f, r.victims)
	if err != nil {
		return 0, err
	}
	if moved, err = c.relocate(f, list); err != nil {
		return moved, err
	}
	c.v.tree.Vacate(r.vacate...)
	c.w.input(func(now time.Duration) { c.w.core.CloseCold(now) })
	if err := c.w.mapper.checkpoint(f); err != nil {
		return moved, err
	}
	c.w.c.watch.Rare("a cleaner's round")
	if r.held {
		c.w.c.watch.Rare("what snapshots hold for now was emptied")
	}
	return moved, nil
}

// flatten takes one step towards a volume that names nothing of its ancestors.
func (c *cleaner) flatten(f *Fiber, all *census) error {
	var victims []layout.SegmentID
	for _, s := range all.inherited {
		victims = append(victims, s.ID)
	}
	if len(victims) > 0 || len(all.foreign) > 0 {
		_, err := c.round(f, round{victims: victims, vacate: all.foreign})
		return err
	}
	c.w.mapper.flat = true
	if err := c.w.mapper.checkpoint(f); err != nil {
		return err
	}
	c.w.c.watch.Rare("a clone flattened")
	return nil
}

// relocate moves blocks, batch by batch, while the one before is on its way.
func (c *cleaner) relocate(f *Fiber, list []clean.Live) (moved int64, err error) {
	under, failed := 0, error(nil)
	var fewer cond
	for len(list) > 0 && err == nil && failed == nil {
		var b relocation
		b.list, b.blocks, list = clean.Batch(list, layout.BlockCount(c.geometry.K)*c.w.c.opts.Clean.Rows)
		if !c.w.c.sleep(f, time.Duration(b.blocks.Bytes())*time.Second/cleanRate) {
			return moved, errKilled
		}
		if err = b.fill(f, c.v); err != nil {
			break
		}
		n, e := c.w.relocate(f, &b, func(e error) {
			if under--; e != nil {
				failed = e
			}
			fewer.broadcast()
		}, &under)
		err, moved = e, moved+n.Bytes()
		for under > 1 {
			if !fewer.wait(f) {
				return moved, errKilled
			}
		}
	}
	for under > 0 {
		if !fewer.wait(f) {
			return moved, errKilled
		}
	}
	if err == nil {
		err = failed
	}
	return moved, err
}

// coldGeometry gives the geometry of the segment that relocated blocks go to, once
// there is one.
func (w *writer) coldGeometry(f *Fiber) (g layout.Geometry, err error) {
	err = w.hold(f, func() (ready bool, err error) {
		g, _, err = w.core.RelocationReady(w.now(), 1)
		return g.K > 0, err
	})
	return g, err
}

// hold waits until a condition holds, the cleaner is stopped, or the writer ends.
func (w *writer) hold(f *Fiber, until func() (bool, error)) error {
	for {
		ok, err := until()
		w.take()
		switch {
		case f.dead:
			return errKilled
		case w.err != nil:
			return w.err
		case ok || err != nil:
			return err
		case w.clean.stopped:
			return errs.New(errs.Canceled, "clean", "it was stopped")
		}
		if !w.mapper.changed.wait(f) {
			return errKilled
		}
	}
}

// relocate appends a batch again. At the moment at which it gets its place in the
// order of writes it drops what is not live any more.
func (w *writer) relocate(f *Fiber, b *relocation, done func(error), under *int) (moved layout.BlockCount, err error) {
	until := w.now() + coldWait
	for try := 0; ; try++ {
		var need []extent.PageRef
		err := w.hold(f, func() (bool, error) {
			_, ready, err := w.core.RelocationReady(w.now(), b.blocks)
			if !ready && err == nil && w.now() > until {
				err = errs.New(errs.Overloaded, "relocate", "no place for %d blocks in %v", b.blocks, coldWait)
			}
			if err != nil || !ready || w.core.Full() {
				return false, err
			}
			moved, need, err = w.admitRelocation(b, done, under)
			return true, err
		})
		if err != nil || len(need) == 0 || try == pageTries {
			return moved, err
		}
		if err := w.v.loadPages(f, need); err != nil {
			return 0, err
		}
	}
}

// admitRelocation gives what is still live of a batch to the core.
func (w *writer) admitRelocation(b *relocation, done func(error), under *int) (moved layout.BlockCount, need []extent.PageRef, err error) {
	p := &payload{answer: done}
	from := 0
	for _, e := range b.list {
		live, missing := w.stillLive(e.Extent)
		need = append(need, missing...)
		for _, r := range live {
			p.data = append(p.data, b.data[from+int(layout.BlockCount(r.Start-e.Start).Bytes()):][:r.Count.Bytes()]...)
			p.ranges = append(p.ranges, writeRange(r))
			moved += r.Count
		}
		from += int(e.Count.Bytes())
	}
	if len(need) > 0 {
		return 0, need, nil
	}
	if moved < b.blocks {
		w.c.watch.Rare("a relocation raced by a write")
	}
	if moved == 0 {
		return 0, nil, nil
	}
	w.lastID++
	p.id, p.left = write.WriteID(w.lastID), moved
	w.payloads[p.id] = p
	if err := w.core.Submit(w.now(), write.Write{ID: p.id, Ranges: p.ranges, Relocation: true}); err != nil {
		delete(w.payloads, p.id)
		return 0, nil, err
	}
	*under++
	return moved, nil, nil
}

// CleanVolume cleans, or flattens, a volume that nobody writes, as a janitor does.
func (c *Client) CleanVolume(f *Fiber, id layout.VolumeID) (CleanReport, error) {
	v, err := c.openLeased(f, &AcquireLease{Volume: id})
	if err != nil {
		return CleanReport{}, err
	}
	r, err := v.Clean(f)
	if e := v.Close(f); err == nil {
		err = e
	}
	return r, err
}
