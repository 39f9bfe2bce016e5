package store

import (
	"bytes"
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// admit decides, under the shard's lock, whether a stripe may enter, and enters
// it. repeat: an equal one is here already. An entry in state writing counts as
// in flight until landed.
func (s *Store) admit(sh *shard, a *Append, h *stripe.Header, e entry) (repeat bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for {
		if err := s.mayAppend(sh, a.Epoch, h); err != nil {
			return false, err
		}
		i, found := sh.search(e.offset, e.seq)
		if sh.exclusive || found && sh.entries[i].state == writing {
			sh.changed.Wait() // then look again: the shard may be fenced, the first write may have failed
			continue
		}
		if found {
			return true, s.sameHeader(&sh.entries[i], a.Header)
		}
		if repeat, err := s.fits(sh, i, a, e); repeat || err != nil {
			return repeat, err
		}
		sh.entries = slices.Insert(sh.entries, i, e)
		if e.state == writing {
			sh.inflight++
		}
		return false, nil
	}
}

// mayAppend checks the stripe against the shard's row. Called with sh.mu held,
// so that no fence comes between this and the entry.
func (s *Store) mayAppend(sh *shard, epoch layout.Epoch, h *stripe.Header) error {
	if sh.gone {
		return goneError(sh.ref)
	}
	r := s.table.row(sh.slot)
	switch {
	case epoch < r.minEpoch():
		return staleEpoch(&r, epoch)
	case r.state != format.ShardOpen || r.fence != 0:
		return errs.New(errs.Sealed, "", "the shard is %v and takes no more appends", r.stateName())
	case h.Volume != r.volume || h.Geometry != r.geometry:
		return errs.New(errs.Corrupt, "", "the header is of volume %d, geometry %v; the shard of %d, %v", h.Volume, h.Geometry, r.volume, r.geometry)
	case h.End() > layout.ShardOffset(r.length)*layout.BlockSize:
		return errs.New(errs.OutOfRange, "", "the unit ends at %d, the shard at %d", h.End(), int64(r.length)*layout.BlockSize)
	}
	return nil
}

func staleEpoch(r *row, epoch layout.Epoch) error {
	return errs.New(errs.StaleEpoch, "", "epoch %d is over: shard %v answers to %d and above", epoch, r.key(), r.minEpoch())
}

// fits checks order and place: stripes of a shard do not overlap, and their
// offsets ascend with their seqs (I4), which is what lets the index sort by
// offset and lists by seq. i is where e would stand among the entries.
//
// The index is asked only for a stripe that comes before the index's tail: a
// late one. That look-up is done with sh.mu held, so that no rival for the same
// place can pass meanwhile.
func (s *Store) fits(sh *shard, i int, a *Append, e entry) (repeat bool, err error) {
	if i > 0 && !ascend(sh.entries[i-1].offset, sh.entries[i-1].end(), sh.entries[i-1].seq, e.offset, e.seq) ||
		i < len(sh.entries) && !ascend(e.offset, e.end(), e.seq, sh.entries[i].offset, sh.entries[i].seq) {
		return false, misplaced(&e)
	}
	if !sh.known {
		if err := s.learnTail(sh); err != nil {
			return false, err
		}
	}
	if e.offset >= sh.tailEnd && e.seq > sh.tailSeq {
		return false, nil
	}
	return s.fitsIndex(sh.ref.ShardKey, a.Header, &e)
}

// ascend: a stripe at (offset, end, seq) may stand before one at (next, nextSeq).
func ascend(offset, end layout.ShardOffset, seq layout.Seq, next layout.ShardOffset, nextSeq layout.Seq) bool {
	return end <= next && seq < nextSeq && offset <= next
}

func misplaced(e *entry) error {
	return errs.New(errs.Conflict, "", "stripe %d at %d: another stripe has this place or this seq", e.seq, e.offset)
}

// learnTail reads the end of what the index has. Called with sh.mu held, once in
// a shard's active life.
func (s *Store) learnTail(sh *shard) error {
	it, err := s.index.keysOf(format.KindStripe, sh.ref.ShardKey)
	if err != nil {
		return err
	}
	if it.Last() {
		v, err := recordView(it)
		if err != nil {
			_ = it.Close()
			return err
		}
		sh.tailEnd, sh.tailSeq = v.End(), v.Seq
	}
	sh.known = true
	return errs.As(it.Close(), errs.Corrupt, "read index")
}

// fitsIndex is fits against the stripes in the index.
func (s *Store) fitsIndex(key layout.ShardKey, header []byte, e *entry) (repeat bool, err error) {
	it, err := s.index.keysOf(format.KindStripe, key)
	if err != nil {
		return false, err
	}
	defer func() {
		if e := it.Close(); e != nil && err == nil {
			err = errs.As(e, errs.Corrupt, "read index")
		}
	}()
	if it.SeekGE(format.AppendStripeKey(nil, format.KindStripe, key, e.offset, e.seq)) {
		v, err := recordView(it)
		if err != nil {
			return false, err
		}
		if v.Offset == e.offset && v.Seq == e.seq {
			return sameBytes(it.Value(), header)
		}
		if !ascend(e.offset, e.end(), e.seq, v.Offset, v.Seq) {
			return false, misplaced(e)
		}
	}
	if it.SeekLT(format.AppendStripeKey(nil, format.KindStripe, key, e.offset, e.seq)) {
		v, err := recordView(it)
		if err != nil {
			return false, err
		}
		if !ascend(v.Offset, v.End(), v.Seq, e.offset, e.seq) {
			return false, misplaced(e)
		}
	}
	return false, nil
}

// sameHeader tells whether an entry's header equals another: with its CRCs equal,
// so is the unit.
func (s *Store) sameHeader(e *entry, header []byte) error {
	if e.inMemory() {
		_, err := sameBytes(e.headerBytes(), header)
		return err
	}
	stored, _, err := s.readLogged(e)
	if err != nil {
		return err
	}
	_, err = sameBytes(stored, header)
	return err
}

func sameBytes(stored, header []byte) (repeat bool, err error) {
	if !bytes.Equal(stored, header) {
		return false, errs.New(errs.Conflict, "", "the shard has another stripe with this seq and place")
	}
	return true, nil
}
