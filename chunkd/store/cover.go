package store

import (
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Headers gives the encoded headers of the stripes that have bytes in the
// ranges, ascending by offset, each once.
func (s *Store) Headers(ref frame.ShardRef, ranges []frame.ReadRange) ([][]byte, error) {
	r, file, sh, err := s.openRead(ref)
	if err != nil {
		return nil, typedRead(err, "read headers of shard %v", ref.ShardKey)
	}
	defer s.closeRead(file, sh)
	type found struct {
		offset layout.ShardOffset
		header []byte
	}
	var list []found
	for _, g := range ranges {
		err := r.checkRange(g)
		if err == nil {
			err = s.cover(sh, ref, g, func(v *format.View, header []byte) {
				list = append(list, found{v.Offset, slices.Clone(header)})
			})
		}
		if err != nil {
			return nil, typedRead(err, "read headers of shard %v", ref.ShardKey)
		}
	}
	slices.SortFunc(list, func(a, b found) int { return int(a.offset - b.offset) })
	list = slices.CompactFunc(list, func(a, b found) bool { return a.offset == b.offset })
	headers := make([][]byte, len(list))
	for i := range list {
		headers[i] = list[i].header
	}
	return headers, nil
}

// CRCs appends the checksum of each block of the ranges to dst; a block that no
// stripe covers has 0. The checksums come from headers whose own checksum and
// identity were verified.
func (s *Store) CRCs(ref frame.ShardRef, ranges []frame.ReadRange, dst []uint32) ([]uint32, error) {
	r, file, sh, err := s.openRead(ref)
	if err != nil {
		return dst, typedRead(err, "read checksums of shard %v", ref.ShardKey)
	}
	defer s.closeRead(file, sh)
	for _, g := range ranges {
		if err = r.checkRange(g); err != nil {
			break
		}
		if r.state == format.ShardFinalized {
			dst, err = s.cachedCRCs(ref, g, dst)
		} else {
			dst, err = s.rangeCRCs(sh, ref, g, dst)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		return dst, typedRead(err, "read checksums of shard %v", ref.ShardKey)
	}
	return dst, nil
}

// rangeCRCs reads the checksums of one range from the headers.
func (s *Store) rangeCRCs(sh *shard, ref frame.ShardRef, g frame.ReadRange, dst []uint32) ([]uint32, error) {
	at := len(dst)
	for range g.Length / layout.BlockSize {
		dst = append(dst, 0)
	}
	end := g.Offset + layout.ShardOffset(g.Length)
	err := s.cover(sh, ref, g, func(v *format.View, _ []byte) {
		for o := max(g.Offset, v.Offset); o < min(end, v.End()); o += layout.BlockSize {
			dst[at+int((o-g.Offset)/layout.BlockSize)] = v.BlockCRC(int((o - v.Offset) / layout.BlockSize))
		}
	})
	return dst, err
}

// cover visits the headers of all stripes with bytes in a range. First those in
// memory and in the log, then the index: one that moves meanwhile is visited
// twice, never missed.
func (s *Store) cover(sh *shard, ref frame.ShardRef, g frame.ReadRange, visit func(v *format.View, header []byte)) error {
	end := g.Offset + layout.ShardOffset(g.Length)
	if sh != nil {
		if err := s.coverEntries(sh, g.Offset, end, visit); err != nil {
			return err
		}
	}
	return s.coverIndex(ref.ShardKey, g.Offset, end, visit)
}

func (s *Store) coverEntries(sh *shard, from, to layout.ShardOffset, visit func(v *format.View, header []byte)) error {
	var headers [][]byte
	var inLog []entry
	sh.mu.Lock()
	for i := sh.firstAt(from); i < len(sh.entries) && sh.entries[i].offset < to; i++ {
		switch e := &sh.entries[i]; {
		case e.unit == 0 || e.state == writing:
		case e.inMemory():
			headers = append(headers, slices.Clone(e.headerBytes()))
		default:
			inLog = append(inLog, *e)
		}
	}
	sh.mu.Unlock()
	for i := range inLog {
		header, err := s.loggedHeader(sh, &inLog[i])
		if err != nil {
			return err
		}
		if header != nil { // else it moved: the index has it
			headers = append(headers, header)
		}
	}
	for _, h := range headers {
		v, err := format.ParseView(h)
		if err != nil {
			return err
		}
		visit(&v, h)
	}
	return nil
}

// loggedHeader reads the header of a logged entry; nil when it moved to the index
// while it was read.
func (s *Store) loggedHeader(sh *shard, e *entry) ([]byte, error) {
	header := make([]byte, e.header)
	_, err := e.file.file.ReadAt(header, e.pos+format.LogHeadLen)
	if err == nil {
		_, err = checkRecord(sh.ref.ShardKey, e.offset, e.seq, header)
	}
	if err == nil {
		return header, nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i, found := sh.search(e.offset, e.seq)
	if !found || sh.entries[i].lsn != e.lsn {
		return nil, nil
	}
	return nil, err
}

// coverIndex visits the stripes in the index with bytes in [from, to).
func (s *Store) coverIndex(key layout.ShardKey, from, to layout.ShardOffset, visit func(v *format.View, header []byte)) (err error) {
	it, err := s.index.keysOf(format.KindStripe, key)
	if err != nil {
		return err
	}
	defer func() {
		if e := it.Close(); e != nil && err == nil {
			err = errs.As(e, errs.Corrupt, "read index")
		}
	}()
	ok, err := seekCovering(it, key, from)
	for ; ok && err == nil; ok = it.Next() {
		v, err := recordView(it)
		if err != nil {
			return err
		}
		if v.Offset >= to {
			break
		}
		if v.Unit > 0 && v.End() > from {
			visit(&v, it.Value())
		}
	}
	return err
}

// seekCovering moves to the last stripe with bytes that begins at or before off,
// or else to the first after it.
func seekCovering(it Iterator, key layout.ShardKey, off layout.ShardOffset) (ok bool, err error) {
	after := format.AppendStripeKey(make([]byte, 0, 32), format.KindStripe, key, off+1, 0)
	for ok = it.SeekLT(after); ok; ok = it.Prev() {
		v, err := recordView(it)
		if err != nil {
			return false, err
		}
		if v.Unit > 0 {
			return true, nil
		}
	}
	return it.SeekGE(after), nil
}
