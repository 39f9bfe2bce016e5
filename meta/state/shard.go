package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

func (c MarkFinalized) apply(t *tables, r *Result) error {
	op := "mark finalized"
	todo, err := t.judge(op, c.Segments, func(s *Segment) (bool, error) {
		if s != nil && s.Unsealed() {
			return false, errs.New(errs.Conflict, op, "segment %d is %v", s.ID, s.State).WithHint("seal it first")
		}
		return s != nil && s.State == Sealed, nil
	})
	if err != nil {
		return err
	}
	t.change(todo, func(s *Segment, v *Volume) {
		s.State = Finalized
		t.putSegment(s, v)
		r.emit(SegmentFinalized{Segment: s.ID})
	})
	return nil
}

func (c ReplaceShard) check() error {
	if c.Segment == 0 || c.Generation == 0 || c.Device == 0 || c.Shard >= layout.MaxShards {
		return errs.New(errs.InvalidArgument, "replace shard", "shard %d/%d generation %d to device %d", c.Segment, c.Shard, c.Generation, c.Device)
	}
	return nil
}

// apply compares and sets one shard's placement. The old shard may be deleted
// only after this succeeded.
func (c ReplaceShard) apply(t *tables, r *Result) error {
	op := "replace shard " + layout.ShardKey{Segment: c.Segment, Shard: c.Shard}.String()
	s, err := t.named(op, c.Segment)
	if err != nil {
		return err
	}
	if s == nil || int(c.Shard) >= len(s.Placements) {
		return errs.New(errs.NotFound, op, "there is no such shard").WithHint("delete the new copy")
	}
	d, ok := t.devices.Get(c.Device)
	if !ok {
		return errs.New(errs.NotFound, op, "device %d is not known", c.Device)
	}
	r.Volume = s.Volume
	was, now := s.Placements[c.Shard], Placement{Device: c.Device, Generation: c.Generation + 1}
	if was == now {
		r.Repeat = true
		return nil
	}
	if was.Generation != c.Generation {
		return errs.New(errs.StaleGeneration, op, "it is at generation %d on device %d, not at %d", was.Generation, was.Device, c.Generation).
			WithHint("another rebuild was first: delete the new copy")
	}
	if d.State == DeviceDead {
		return errs.New(errs.Conflict, op, "device %d is dead", c.Device).WithHint("choose another device")
	}
	if s.State != Finalized {
		return errs.New(errs.Conflict, op, "the segment is %v: only finalized shards are sources", s.State)
	}
	if err := t.checkApart(op, s, c.Shard, c.Device); err != nil {
		return err
	}
	v := t.volume(s.Volume)
	s.Placements[c.Shard] = now
	s.Lost = s.Lost.Without(c.Shard)
	t.putSegment(s, v)
	t.putVolume(v)
	r.emit(ShardReplaced{Shard: layout.ShardKey{Segment: c.Segment, Shard: c.Shard}, Old: was, New: now})
	return nil
}

// checkApart: the new place shares no device with another shard, and no server
// where the cell has more than one.
func (t *tables) checkApart(op string, s *Segment, shard layout.ShardIndex, to layout.DeviceID) error {
	d, _ := t.devices.Get(to)
	for i, p := range s.Placements {
		if i == int(shard) {
			continue
		}
		if o, _ := t.devices.Get(p.Device); p.Device == to || o.Server == d.Server && t.servers.Len() > 1 {
			return errs.New(errs.InvalidArgument, op, "device %d shares a server with shard %d", to, i).
				WithHint("choose a device of a server that holds no shard of the segment")
		}
	}
	return nil
}

func (c MarkDeleted) apply(t *tables, r *Result) error {
	op := "mark deleted"
	todo, err := t.judge(op, c.Segments, func(s *Segment) (bool, error) {
		if s == nil {
			return false, nil
		}
		if v := t.volume(s.Volume); t.needed(s, v) {
			return false, errs.New(errs.Conflict, op, "segment %d of volume %s is needed", s.ID, v.path()).
				WithHint("its shards must not be deleted; this is a bug of the sender")
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	var touched []layout.VolumeID
	t.change(todo, func(s *Segment, v *Volume) {
		t.dropSegment(s, v)
		touched = append(touched, v.ID)
		r.emit(SegmentDeleted{Segment: s.ID})
	})
	for _, id := range touched {
		if v := t.volume(id); v != nil {
			t.settle(v, r)
		}
	}
	return nil
}
