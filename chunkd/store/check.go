package store

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
)

// Check verifies every invariant of doc.go over index, data files and log, and
// reads every byte. The error names what is broken. No call may run beside it.
func (s *Store) Check() error {
	if err := s.dev.err(); err != nil {
		return err
	}
	s.moveMu.Lock() // keeps the mover out
	defer s.moveMu.Unlock()
	charged, stored := int64(0), int64(0)
	for i := range s.table.size() {
		r := s.table.row(slot(i))
		if r.state == 0 {
			continue
		}
		if err := s.checkShard(slot(i), &r); err != nil {
			return errs.As(err, errs.Internal, "check shard %v", r.key())
		}
		charged += r.charge()
		stored += int64(r.stored) * layout.BlockSize
	}
	if t := s.table; charged != t.charged || stored != t.stored {
		return errs.New(errs.Internal, "check account", "I7: charged %d and stored %d, the shards sum up to %d and %d", t.charged, t.stored, charged, stored)
	}
	if err := s.checkStrays(); err != nil {
		return err
	}
	return s.log.check()
}

// checkShard: its record, its list, its bytes.
func (s *Store) checkShard(i slot, r *row) error {
	rec, err := s.loadShard(r.key())
	if err != nil {
		return err
	}
	if rec.Generation != r.generation || rec.State != r.state || rec.Volume != r.volume || rec.Epoch != r.epoch || r.fenced && rec.Fence != r.fence {
		return errs.New(errs.Internal, "", "I2: the record and the table differ: %+v, %+v", rec, *r)
	}
	if g, gone, err := s.tombstone(r.key()); err != nil || gone && rec.Generation <= g {
		return errors.Join(err, errs.New(errs.Internal, "", "I6: generation %d is here, %d was deleted", rec.Generation, g))
	}
	if r.flags&format.FlagDoubtful != 0 {
		return nil // it says of itself that it can't tell
	}
	list, err := s.checkList(i, r)
	if err != nil {
		return err
	}
	return s.checkFile(r, list)
}

// checkList: records and entries are what they say, in order, without overlap.
func (s *Store) checkList(i slot, r *row) (list []entry, err error) {
	var blocks, stripes uint32
	err = s.index.stripesOf(r.key(), func(offset layout.ShardOffset, seq layout.Seq, header []byte) error {
		v, err := checkRecord(r.key(), offset, seq, header)
		if err != nil {
			return err
		}
		stripes++
		blocks += v.Unit / layout.BlockSize
		list = append(list, entry{offset: offset, seq: seq, unit: v.Unit, large: slices.Clone(header)})
		return nil
	})
	if err == nil && (blocks != r.stored || stripes != r.stripes) {
		err = errs.New(errs.Internal, "", "I7: %d blocks in %d stripes, the table says %d and %d", blocks, stripes, r.stored, r.stripes)
	}
	if sh := s.table.pinActive(i, r.ref()); sh != nil {
		defer s.table.unpin(sh)
		list = append(list, sh.entries...)
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.seq, b.seq)) })
	for j := 1; j < len(list) && err == nil; j++ {
		if a, b := &list[j-1], &list[j]; !ascend(a.offset, a.end(), a.seq, b.offset, b.seq) {
			err = errs.New(errs.Internal, "", "I4: stripe %d at %d and stripe %d at %d", a.seq, a.offset, b.seq, b.offset)
		}
	}
	return list, err
}

// checkFile: every unit's bytes are right, and all else in the file is zeros.
func (s *Store) checkFile(r *row, list []entry) error {
	file, err := s.files.acquire(fileName{r.key(), r.generation})
	if err != nil {
		return err
	}
	defer s.files.release(file)
	size, err := file.Size()
	if err != nil {
		return err
	}
	if size > int64(r.lengthBytes()) || r.state == format.ShardFinalized && size != int64(r.end)*layout.BlockSize {
		return errs.New(errs.Internal, "", "I8: the file has %d bytes", size)
	}
	at := layout.ShardOffset(0)
	for j := range list {
		e := &list[j]
		if e.unit == 0 {
			continue
		}
		if err := s.checkUnit(file, e, r); err != nil {
			return err
		}
		if err := checkZeros(file, int64(at), min(int64(e.offset), size)); err != nil {
			return err
		}
		at = e.end()
	}
	return checkZeros(file, int64(at), size)
}

func (s *Store) checkUnit(file *handle, e *entry, r *row) error {
	if e.state == logged {
		_, _, err := s.readLogged(e)
		return errs.As(err, errs.Internal, "I5: stripe %d in the log", e.seq)
	}
	if e.record != nil {
		return nil
	}
	v, err := format.ParseView(e.large)
	if err == nil {
		_, err = readVerified(file, &v, nil)
	}
	return errs.As(err, errs.Internal, "I1: stripe %d of shard %v", e.seq, r.key())
}

func checkZeros(file *handle, from, to int64) error {
	if from >= to {
		return nil
	}
	b := make([]byte, to-from)
	if _, err := file.ReadAt(b, from); err != nil && err != io.EOF {
		return err
	}
	if i := slices.IndexFunc(b, func(c byte) bool { return c != 0 }); i >= 0 {
		return errs.New(errs.Internal, "", "I8: byte %d is not zero and no stripe covers it", from+int64(i))
	}
	return nil
}

// checkStrays: no record and no file without its shard.
func (s *Store) checkStrays() error {
	for _, kind := range [...]byte{format.KindStripe, format.KindDoubt} {
		it, err := s.index.keysOfKind(kind)
		if err != nil {
			return err
		}
		err = each(it, func(key, _ []byte) error {
			k, _, _, ok := format.DecodeStripeKey(key)
			if _, known := s.table.slots[k]; !ok || !known {
				return errs.New(errs.Internal, "check index", "I6: a record of shard %v, which is not here", k)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	names, err := s.data.List(shardDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		k, g, ok := format.ParseShardFileName(name)
		if i, known := s.table.slots[k]; !ok || !known || s.table.row(i).generation != g {
			return errs.New(errs.Internal, "check files", "I6: the file %s belongs to no shard", name)
		}
	}
	return nil
}

// check: the log keeps within its bound and its marks in order.
func (l *appendLog) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freedLSN > l.durable || l.durable >= l.next {
		return errs.New(errs.Internal, "check log", "I5: freed %d, durable %d, next %d", l.freedLSN, l.durable, l.next)
	}
	for _, f := range l.files {
		if f.end > f.size {
			return errs.New(errs.Internal, "check log", "I5: %s is %d bytes long and used up to %d", f.name, f.size, f.end)
		}
	}
	return nil
}
