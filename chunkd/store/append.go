package store

import (
	"bytes"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Append stores one unit and its stripe header. It is durable after the next
// Sync of the shard in the same incarnation (at once with Durable). Units of a
// shard may come in any order, at the same time; an equal repeat succeeds.
//
// Refusals: NotHere and StaleGeneration (ask for the placement), StaleEpoch (a
// newer writer), Sealed, Corrupt (the bytes do not fit the header), Conflict
// (another stripe has this seq or this place), NoSpace, InvalidArgument.
func (s *Store) Append(a Append) error {
	if err := s.append(&a); err != nil {
		return typed(err, "append to shard %v", a.Ref.ShardKey)
	}
	return nil
}

func (s *Store) append(a *Append) error {
	if err := s.dev.err(); err != nil {
		return err
	}
	h, err := s.checkHeader(a)
	if err != nil {
		return err
	}
	sh, err := s.table.pin(a.Ref)
	if err != nil {
		return err
	}
	defer s.table.unpin(sh)
	if err := s.ballast.check(s); err != nil {
		return err
	}
	n := format.LogRecordLen(len(a.Header), len(a.Payload))
	if len(a.Payload) <= s.opts.SmallAppend && s.log.accepts(n) && s.pending.Load()+n <= s.opts.LogBytes/2 {
		err = s.appendSmall(sh, a, h, n)
	} else {
		err = s.appendLarge(sh, a, h)
	}
	if err == nil {
		s.took(a.Ref.ShardKey)
	}
	if err == nil && a.Durable {
		err = s.syncAt(a.Epoch, []*shard{sh})
	}
	return err
}

// checkHeader checks what needs no shard: the header itself, the payload, and
// that both belong to what the caller names.
func (s *Store) checkHeader(a *Append) (*stripe.Header, error) {
	h, n, err := stripe.Decode(a.Header)
	if err != nil {
		return nil, err
	}
	key := layout.ShardKey{Segment: h.Segment, Shard: h.Shard}
	switch {
	case n != len(a.Header):
		return nil, errs.New(errs.Corrupt, "", "%d bytes after the header", len(a.Header)-n)
	case h.Cell != s.super.Load().Cell:
		return nil, errs.New(errs.WrongCell, "", "the header is of cell %x", uint64(h.Cell))
	case key != a.Ref.ShardKey:
		return nil, errs.New(errs.Corrupt, "", "the header is of shard %v", key)
	case h.Epoch != a.Epoch:
		return nil, errs.New(errs.InvalidArgument, "", "the header is of epoch %d, the append of %d", h.Epoch, a.Epoch)
	case len(a.Sums) > 0 && len(a.Sums) != len(a.Payload)/layout.BlockSize:
		return nil, errs.New(errs.InvalidArgument, "", "%d checksums for %d bytes", len(a.Sums), len(a.Payload))
	case len(a.Payload) != int(h.Shape.Unit):
		return nil, errs.New(errs.Corrupt, "", "payload of %d bytes, the header says %d", len(a.Payload), h.Shape.Unit)
	}
	for i, want := range h.UnitCRCs(h.Shard) {
		if a.sum(i) != want {
			return nil, errs.New(errs.Corrupt, "", "stripe %d: block %d of the payload: checksum differs", h.Seq, i)
		}
	}
	return h, nil
}

// sum is the checksum of a block of the payload.
func (a *Append) sum(block int) uint32 {
	if len(a.Sums) > 0 {
		return a.Sums[block]
	}
	return stripe.BlockCRC(a.Payload[block*layout.BlockSize : (block+1)*layout.BlockSize])
}

// appendSmall keeps the unit in memory until the next sync writes it to the log.
func (s *Store) appendSmall(sh *shard, a *Append, h *stripe.Header, n int64) error {
	r := s.pool.get(n)
	at := copy(r.bytes[format.LogHeadLen:], a.Header) + format.LogHeadLen
	at += copy(r.bytes[at:], a.Payload)
	clear(r.bytes[at:])
	s.dev.copies.Add(1)
	s.dev.copied.Add(uint64(len(a.Payload)))
	r.ref = a.Ref
	r.head = format.LogHead{Key: a.Ref.ShardKey, Generation: a.Ref.Generation, Seq: h.Seq, Offset: h.Offset,
		Header: uint32(len(a.Header)), Payload: h.Shape.Unit, HeaderCRC: headerCRC(a.Header), Incarnation: s.Incarnation()}
	e := entry{offset: h.Offset, seq: h.Seq, unit: h.Shape.Unit, header: uint32(len(a.Header)), state: written, record: r}
	repeat, err := s.admit(sh, a, h, e)
	if repeat || err != nil {
		s.pool.put(r)
		return err
	}
	s.pending.Add(n)
	return nil
}

// appendLarge writes the unit to the data file.
func (s *Store) appendLarge(sh *shard, a *Append, h *stripe.Header) error {
	file, err := s.files.acquire(fileName{a.Ref.ShardKey, a.Ref.Generation})
	if err != nil {
		return err
	}
	defer s.files.release(file)
	e := entry{offset: h.Offset, seq: h.Seq, unit: h.Shape.Unit, header: uint32(len(a.Header)), state: writing, large: bytes.Clone(a.Header)}
	repeat, err := s.admit(sh, a, h, e)
	if repeat || err != nil {
		return err
	}
	err = writeUnit(file, a, int64(h.Offset))
	if err != nil {
		// What arrived of it must not be read: no stripe covers it.
		_ = file.PunchHole(int64(h.Offset), int64(h.Shape.Unit))
	}
	s.landed(sh, h, file, err)
	return err
}

// writeUnit writes a large unit piece by piece. What was written of a unit that
// fails is taken back, since the bytes that no stripe covers read as zeros (I8);
// should that fail too, the next unit at this place covers them.
func writeUnit(file *handle, a *Append, off int64) error {
	err := writePieces(file, a.Payload, off, a.Turns)
	if err != nil {
		_ = file.PunchHole(off, int64(len(a.Payload)))
	}
	return err
}

// writePieces writes p at off, each piece in its turn; without turns, at once. No
// piece is being written any more when it returns.
func writePieces(file *handle, p []byte, off int64, turns Turns) (err error) {
	if turns == nil {
		_, err = file.WriteDirect(p, off, false)
		return err
	}
	for len(p) > 0 && err == nil {
		n := min(len(p), max(layout.BlockSize, turns.Piece()&^(layout.BlockSize-1)))
		piece, at := p[:n], off
		err = turns.Turn(n, func() error {
			_, err := file.WriteDirect(piece, at, false)
			return err
		})
		p, off = p[n:], off+int64(n)
	}
	if bad := turns.Wait(); err == nil {
		err = bad
	}
	return err
}

// landed ends the writing state of a large entry: whole, or forgotten.
func (s *Store) landed(sh *shard, h *stripe.Header, file *handle, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i, _ := sh.search(h.Offset, h.Seq)
	if err != nil {
		sh.drop(func(e *entry) bool { return e.offset == h.Offset && e.seq == h.Seq })
	} else {
		sh.entries[i].state = written
	}
	if sh.dirty == nil {
		s.files.retain(file)
		sh.dirty = file
	}
	sh.inflight--
	sh.changed.Broadcast()
}

func headerCRC(header []byte) uint32 {
	v, err := format.ParseView(header)
	if err != nil {
		panic("a header that was checked is unreadable: " + err.Error())
	}
	return v.CRC
}
