package store

import (
	"bytes"
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// Unit is one stripe's part of a shard that is rebuilt or repaired.
type Unit struct {
	Header  []byte // the shard's own copy of the stripe header
	Payload []byte // nil: the bytes that are there are right
}

// Fill puts stripes of a sealed list into a shard, durably: data written,
// fdatasync, one synced batch with the records. It writes over what is there,
// which can only be wrong: a sealed stripe has one place and one content, and
// the units are held against their headers' checksums first. An equal record is
// left alone. It is for a shard under rebuild, and for one whose bytes or
// records are damaged; Mend ends it.
//
// Errors: NotHere, StaleGeneration, Corrupt (a unit does not fit its header, or
// the header the shard), OutOfRange, NoSpace. Data is written in turns, nil: at
// once; nobody else is inside the shard meanwhile.
func (s *Store) Fill(ref frame.ShardRef, units []Unit, turns Turns) error {
	if err := s.fill(ref, units, turns); err != nil {
		return typed(err, "fill shard %v", ref.ShardKey)
	}
	return nil
}

func (s *Store) fill(ref frame.ShardRef, units []Unit, turns Turns) error {
	return s.alone(ref, func(sh *shard) error {
		rec, err := s.loadShard(ref.ShardKey)
		if err != nil {
			return err
		}
		views := make([]format.View, len(units))
		for i := range units {
			if views[i], err = admits(&rec, &units[i]); err != nil {
				return err
			}
		}
		if err := s.writeUnits(sh, units, views, turns); err != nil {
			return err
		}
		return s.putRecords(sh, &rec, units, views)
	})
}

// alone runs do while nobody else is inside the shard, with all that it had in
// memory or in the log in its data file.
func (s *Store) alone(ref frame.ShardRef, do func(sh *shard) error) error {
	if err := s.dev.err(); err != nil {
		return err
	}
	sh, err := s.table.pin(ref)
	if err != nil {
		return err
	}
	defer s.table.unpin(sh)
	if err := sh.enterAlone(func() error { return nil }); err != nil {
		return err
	}
	defer s.kick()
	defer sh.leaveAlone()
	if err := s.ensureFile(fileName{ref.ShardKey, ref.Generation}); err != nil {
		return err
	}
	if len(sh.entries) > 0 || sh.dirty != nil {
		if err := s.settle(sh, func(*pebble.Batch) error { return nil }); err != nil {
			return err
		}
	}
	return do(sh)
}

// ensureFile makes a data file again that is missing.
func (s *Store) ensureFile(name fileName) error {
	file, err := s.files.acquire(name)
	if err == nil {
		s.files.release(file)
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.data.Create(name.path())
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), s.data.SyncDir(shardDir))
}

// admits checks a unit against the shard and the unit's header.
func admits(r *format.Shard, u *Unit) (format.View, error) {
	v, err := format.ParseView(u.Header)
	if err != nil {
		return v, err
	}
	switch {
	case v.Key() != r.Key || v.Cell != r.Cell || v.Volume != r.Volume:
		return v, errs.New(errs.Corrupt, "", "stripe %d is of shard %v, volume %d", v.Seq, v.Key(), v.Volume)
	case v.End() > r.Length:
		return v, errs.New(errs.OutOfRange, "", "stripe %d ends at %d, the shard at %d", v.Seq, v.End(), r.Length)
	case u.Payload == nil:
		return v, nil
	}
	return v, errs.Wrap(v.Verify(u.Payload), "stripe %d", v.Seq)
}

func (s *Store) writeUnits(sh *shard, units []Unit, views []format.View, turns Turns) error {
	file, err := s.files.acquire(fileName{sh.ref.ShardKey, sh.ref.Generation})
	if err != nil {
		return err
	}
	defer s.files.release(file)
	wrote := false
	for i := range units {
		if len(units[i].Payload) == 0 {
			continue
		}
		wrote = true
		if err := writePieces(file, units[i].Payload, int64(views[i].Offset), turns); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	return file.Sync()
}

// putRecords puts the records that are missing or differ, and takes doubts about
// the stripes back.
func (s *Store) putRecords(sh *shard, rec *format.Shard, units []Unit, views []format.View) error {
	b := s.batch()
	var blocks, stripes uint32
	changed := false
	for i := range units {
		v, k := &views[i], sh.ref.ShardKey
		key := format.AppendStripeKey(nil, format.KindStripe, k, v.Offset, v.Seq)
		old, had, err := s.index.get(key)
		if err != nil {
			return errors.Join(err, b.Close())
		}
		if had && bytes.Equal(old, units[i].Header) && !s.table.row(sh.slot).doubts {
			continue
		}
		if changed = true; !had {
			blocks, stripes = blocks+v.Unit/layout.BlockSize, stripes+1
		}
		err = errors.Join(b.Set(key, units[i].Header, nil), b.Delete(format.AppendStripeKey(nil, format.KindDoubt, k, v.Offset, v.Seq), nil))
		if err != nil {
			return errors.Join(err, b.Close())
		}
		s.crcs.forget(sh.ref, v)
	}
	if !changed {
		return b.Close()
	}
	if err := s.commit(b); err != nil {
		return err
	}
	sh.mu.Lock()
	sh.known = false // the tail is read again
	sh.mu.Unlock()
	if rec.State != format.ShardFinalized {
		s.table.update(sh.slot, func(r *row) { r.stored, r.stripes = r.stored+blocks, r.stripes+stripes })
	}
	return nil
}

// forget drops the checksums of a stripe that were cached while its record was
// missing.
func (c *crcCache) forget(ref frame.ShardRef, v *format.View) {
	const bytes = spanBlocks * layout.BlockSize
	for at := v.Offset / bytes; at*bytes < v.End(); at++ {
		c.forgetSpan(ref, uint32(at))
	}
}

func (c *crcCache) forgetSpan(ref frame.ShardRef, index uint32) {
	i := c.set(ref, index)
	lock := &c.locks[i%spanLocks]
	lock.Lock()
	defer lock.Unlock()
	for w := range c.sets[i] {
		if p := &c.sets[i][w]; p.is(ref, index) {
			*p = span{}
		}
	}
}

// Mend ends a rebuild or repair whose caller has held every unit against its
// header: the list must match the seal, whatever the shard was before, and the
// shard is then finalized and without doubts. Else it is incomplete and the
// error Corrupt.
func (s *Store) Mend(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error {
	err := s.alone(ref, func(sh *shard) error {
		rec, err := s.loadShard(ref.ShardKey)
		if err != nil {
			return err
		}
		return s.match(sh, &rec, last, seal)
	})
	if err != nil {
		return typed(err, "mend shard %v", ref.ShardKey)
	}
	return nil
}
