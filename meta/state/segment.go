package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

func (c AllocateSegments) check() error {
	op := "allocate segments"
	if c.Count < 1 || c.Count > MaxAllocate || len(c.Placed) == 0 || len(c.Placed) > int(c.Count) {
		return errs.New(errs.InvalidArgument, op, "%d segments asked for, %d placed; 1 to %d are possible", c.Count, len(c.Placed), MaxAllocate)
	}
	for _, p := range c.Placed {
		if !p.Geometry.Valid() || len(p.Devices) != p.Geometry.Shards() {
			return errs.New(errs.InvalidArgument, op, "geometry %v on %d devices", p.Geometry, len(p.Devices))
		}
		if err := checkShardLength(op, p.ShardLength); err != nil {
			return err
		}
		if p.ShardLength < c.ShardLength {
			return errs.New(errs.InvalidArgument, op, "shards of %d bytes, at least %d were asked for", p.ShardLength, c.ShardLength)
		}
	}
	return nil
}

func (c AllocateSegments) apply(t *tables, r *Result) error {
	v, err := t.current("allocate segments", c.Volume, c.Epoch)
	if err != nil {
		return err
	}
	op := "allocate segments of volume " + v.path()
	r.Volume, r.Epoch = v.ID, v.Epoch
	if done, err := t.allocatedBy(op, c, r); done || err != nil {
		return err
	}
	if v.Holder == 0 || v.Holder != c.Session {
		return errs.New(errs.LeaseLost, op, "session %d does not hold epoch %d", c.Session, c.Epoch).WithHint("reopen the volume")
	}
	if v.Unsealed+uint64(len(c.Placed)) > MaxUnsealed {
		return errs.New(errs.Overloaded, op, "it has %d unsealed segments, at most %d are allowed", v.Unsealed, MaxUnsealed).
			WithHint("seal segments that are full or left behind")
	}
	for _, p := range c.Placed {
		if err := t.checkPlaced(op, v, p); err != nil {
			return err
		}
	}
	for _, p := range c.Placed {
		t.last.Segment++
		s := &Segment{ID: t.last.Segment, Volume: v.ID, Epoch: c.Epoch, Command: c.ID, Geometry: p.Geometry, ShardLength: p.ShardLength, Map: c.Map}
		if c.Map {
			s.Born = v.Root.Number + 1
		}
		for _, d := range p.Devices {
			s.Placements = append(s.Placements, Placement{Device: d, Generation: 1})
		}
		t.putSegment(s, v)
		r.Segments = append(r.Segments, s.ID)
		r.emit(SegmentAllocated{Segment: s.ID, Volume: v.ID})
	}
	t.putVolume(v)
	return nil
}

// allocatedBy finds the segments that an equal command allocated, by the id
// that they carry. Where they were dropped meanwhile, because their shards
// could not be created, the repeat allocates again.
func (t *tables) allocatedBy(op string, c AllocateSegments, r *Result) (done bool, err error) {
	if c.ID == 0 {
		return false, errs.New(errs.InvalidArgument, op, "a command that makes something needs a command id")
	}
	for _, id := range t.members(t.unsealed, uint64(c.Volume)) {
		s := t.segment(id)
		if s.Command != c.ID {
			continue
		}
		if s.Map != c.Map || s.Epoch != c.Epoch || s.ShardLength < c.ShardLength || len(r.Segments) == int(c.Count) {
			return false, errs.New(errs.Conflict, op, "command id %d allocated segment %d for another request", c.ID, id).
				WithHint("draw a new command id for each new command")
		}
		r.Segments = append(r.Segments, id)
	}
	r.Repeat = len(r.Segments) > 0
	return r.Repeat, nil
}

// checkPlaced holds the leader to the rules that no placement may break: m
// never shrinks, k never grows, and shards stand on distinct devices, on
// distinct servers where the cell has more than one.
func (t *tables) checkPlaced(op string, v *Volume, p PlacedSegment) error {
	if p.Geometry.M != v.Geometry.M || p.Geometry.K > v.Geometry.K {
		return errs.New(errs.InvalidArgument, op, "geometry %v for a volume of %v: k may narrow, m never changes", p.Geometry, v.Geometry)
	}
	for i, id := range p.Devices {
		d, ok := t.devices.Get(id)
		if !ok {
			return errs.New(errs.NotFound, op, "device %d is not known", id)
		}
		for _, other := range p.Devices[:i] {
			if o, _ := t.devices.Get(other); other == id || o.Server == d.Server && t.servers.Len() > 1 {
				return errs.New(errs.InvalidArgument, op, "devices %d and %d are on one server: one loss would take two shards", other, id)
			}
		}
	}
	return nil
}

func checkSegmentList(op string, ids []layout.SegmentID) error {
	if len(ids) == 0 || len(ids) > MaxSegmentList {
		return errs.New(errs.InvalidArgument, op, "%d segments named, 1 to %d are possible", len(ids), MaxSegmentList)
	}
	return nil
}

// named gives a segment that a command names. A segment that left the state
// gives nil; an id that was never handed out is refused.
func (t *tables) named(op string, id layout.SegmentID) (*Segment, error) {
	if id == 0 || id > t.last.Segment {
		return nil, errs.New(errs.NotFound, op, "segment %d never was", id)
	}
	return t.segment(id), nil
}

func (c OpenSegments) check() error  { return checkSegmentList("open segments", c.Segments) }
func (c DropSegments) check() error  { return checkSegmentList("drop segments", c.Segments) }
func (c MarkFinalized) check() error { return checkSegmentList("mark finalized", c.Segments) }
func (c MarkDeleted) check() error   { return checkSegmentList("mark deleted", c.Segments) }

// judge looks at each named segment before any is changed: false skips it, an
// error refuses the whole command.
func (t *tables) judge(op string, ids []layout.SegmentID, ok func(s *Segment) (bool, error)) (todo []layout.SegmentID, err error) {
	seen := make(map[layout.SegmentID]bool, len(ids))
	for _, id := range ids {
		s, err := t.named(op, id)
		if err != nil {
			return nil, err
		}
		do, err := ok(s)
		if err != nil {
			return nil, err
		}
		if do && !seen[id] {
			todo = append(todo, id)
		}
		seen[id] = true
	}
	return todo, nil
}

// change carries out a command on the segments that were judged.
func (t *tables) change(ids []layout.SegmentID, fn func(s *Segment, v *Volume)) {
	for _, id := range ids {
		s := t.segment(id)
		v := t.volume(s.Volume)
		fn(s, v)
		t.putVolume(v)
	}
}

func (c OpenSegments) apply(t *tables, r *Result) error {
	op := "open segments"
	todo, err := t.judge(op, c.Segments, func(s *Segment) (bool, error) {
		if s == nil || s.State == Dropped {
			return false, errs.New(errs.StaleEpoch, op, "a segment was given back before its shards were created").WithHint("do not hand it out; allocate again")
		}
		if v := t.volume(s.Volume); s.State == Allocated && v.Epoch != s.Epoch {
			return false, errs.New(errs.StaleEpoch, op, "segment %d belongs to epoch %d, the volume is at %d", s.ID, s.Epoch, v.Epoch)
		}
		return s.State == Allocated, nil
	})
	if err != nil {
		return err
	}
	t.change(todo, func(s *Segment, v *Volume) {
		s.State = Open
		t.putSegment(s, v)
		r.emit(SegmentOpened{Segment: s.ID})
	})
	return nil
}

func (c DropSegments) apply(t *tables, r *Result) error {
	op := "drop segments"
	todo, err := t.judge(op, c.Segments, func(s *Segment) (bool, error) {
		if s != nil && s.State != Allocated && s.State != Dropped {
			return false, errs.New(errs.Conflict, op, "segment %d is %v: a writer may have stripes there", s.ID, s.State).
				WithHint("seal it")
		}
		return s != nil && s.State == Allocated, nil
	})
	if err != nil {
		return err
	}
	t.change(todo, func(s *Segment, v *Volume) { t.setDropped(s, v, r) })
	return nil
}

// setDropped gives a segment up: nothing that it holds counts.
func (t *tables) setDropped(s *Segment, v *Volume, r *Result) {
	s.State, s.Listed, s.Seal, s.Lost = Dropped, false, Seal{}, 0
	t.putSegment(s, v)
	r.emit(SegmentDropped{Segment: s.ID})
}
