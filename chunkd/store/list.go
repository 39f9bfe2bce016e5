package store

import (
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// List gives the headers of durable stripes from a seq on, ascending, up to most
// bytes but at least one, and the seq to go on with (0: that was all). A header
// that can't be read is an error, never left out.
func (s *Store) List(ref frame.ShardRef, from layout.Seq, most int) (headers []byte, count int, next layout.Seq, err error) {
	l := lister{store: s, ref: ref, from: from, most: most}
	if err := l.run(); err != nil {
		return nil, 0, 0, typedRead(err, "list shard %v from seq %d", ref.ShardKey, from)
	}
	return l.headers, l.count, l.next, nil
}

// lister merges what is in the log with the index. The log's share is taken
// first, so that a stripe that moves meanwhile is in both, never in none.
type lister struct {
	store *Store
	ref   frame.ShardRef
	from  layout.Seq
	most  int

	sh      *shard
	logged  []entry
	headers []byte
	count   int
	next    layout.Seq
}

func (l *lister) run() error {
	r, file, sh, err := l.store.openRead(l.ref)
	if err != nil {
		return err
	}
	defer l.store.closeRead(file, sh)
	if r.flags&format.FlagDoubtful != 0 || r.doubts {
		return incomplete("stripes that were durable may be missing from its list")
	}
	if l.sh = sh; sh != nil {
		l.logged = sh.loggedFrom(l.from)
	}
	it, err := l.store.index.keysOf(format.KindStripe, l.ref.ShardKey)
	if err != nil {
		return err
	}
	err = l.merge(it, r.lengthBytes())
	if e := it.Close(); e != nil && err == nil {
		err = errs.As(e, errs.Corrupt, "read index")
	}
	return err
}

// loggedFrom gives the entries in the log from a seq on.
func (sh *shard) loggedFrom(from layout.Seq) []entry {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var list []entry
	for i := range sh.entries {
		if e := sh.entries[i]; e.state == logged && e.seq >= from {
			if e.record != nil { // its memory is used again after the move
				e.large, e.record = slices.Clone(e.record.header()), nil
			}
			list = append(list, e)
		}
	}
	return list
}

func (l *lister) merge(it Iterator, length layout.ShardOffset) error {
	ok, err := seekSeq(it, l.ref.ShardKey, length, l.from)
	for more := true; more && err == nil; {
		var v format.View
		if ok {
			if v, err = recordView(it); err != nil {
				return err
			}
		}
		switch {
		case len(l.logged) > 0 && (!ok || l.logged[0].seq <= v.Seq):
			ok, more, err = l.fromLog(ok, &v, it)
		case ok:
			more = l.add(v.Seq, it.Value())
			ok = it.Next()
		default:
			return nil
		}
	}
	return err
}

// fromLog adds the next stripe of the log. One that moved away is looked for in
// the index anew, as it may be younger than the iterator.
func (l *lister) fromLog(ok bool, v *format.View, it Iterator) (stillOK, more bool, err error) {
	e := &l.logged[0]
	if ok && e.seq == v.Seq {
		ok = it.Next() // in both
	}
	header := e.large
	if header == nil {
		header, err = l.store.loggedHeader(l.sh, e)
	}
	if err == nil && header == nil {
		header, err = l.store.indexedHeader(l.ref.ShardKey, e)
	}
	if err != nil {
		return ok, false, err
	}
	more = l.add(e.seq, header)
	l.logged = slices.Delete(l.logged, 0, 1)
	return ok, more, nil
}

func (s *Store) indexedHeader(key layout.ShardKey, e *entry) ([]byte, error) {
	header, ok, err := s.index.get(format.AppendStripeKey(nil, format.KindStripe, key, e.offset, e.seq))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, doubtful(key, e.seq)
	}
	_, err = checkRecord(key, e.offset, e.seq, header)
	return header, err
}

// add takes a header into the answer; false when it is full.
func (l *lister) add(seq layout.Seq, header []byte) bool {
	if l.count > 0 && len(l.headers)+len(header) > l.most {
		l.next = seq
		return false
	}
	l.headers = append(l.headers, header...)
	l.count++
	return true
}

// seekSeq moves to the first stripe with a seq from `from` on. The keys are
// sorted by offset; as seqs ascend with offsets (I4), it halves the offsets.
func seekSeq(it Iterator, key layout.ShardKey, length layout.ShardOffset, from layout.Seq) (ok bool, err error) {
	seek := func(offset layout.ShardOffset, seq layout.Seq) (layout.ShardOffset, layout.Seq, bool) {
		if !it.SeekGE(format.AppendStripeKey(nil, format.KindStripe, key, offset, seq)) {
			return 0, 0, false
		}
		_, o, q, ok := format.DecodeStripeKey(it.Key())
		return o, q, ok
	}
	lo, hi := layout.ShardOffset(0), length+layout.BlockSize // the answer begins in [lo, hi)
	for hi-lo > layout.BlockSize {
		mid := lo + (hi-lo)/2/layout.BlockSize*layout.BlockSize
		if o, q, ok := seek(mid, 0); ok && q < from {
			lo = o
		} else {
			hi = mid
		}
	}
	if _, _, ok = seek(lo, from); !ok {
		return false, it.Error()
	}
	for ok = true; ok; ok = it.Next() {
		if _, _, q, _ := format.DecodeStripeKey(it.Key()); q >= from {
			break
		}
	}
	return ok, it.Error()
}
