package server

import (
	"errors"
	"sync"
	"sync/atomic"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// fakeStore is a store in memory that answers at once, unless a test holds it.
type fakeStore struct {
	incarnation layout.Incarnation
	failed      chan struct{}
	syncs       atomic.Int64

	holdSync, holdRead, holdAppend chan struct{} // when set, a call waits for one value
	entered                        chan struct{} // when set, gets one value as a held call begins

	mu     sync.Mutex
	shards map[layout.ShardKey]*fakeShard // guarded by mu
}

type fakeShard struct {
	spec    store.ShardSpec
	bytes   []byte
	headers [][]byte
	seqs    []layout.Seq
	crcs    map[layout.ShardOffset]uint32
	fence   layout.Epoch
	state   store.State
}

var _ Store = (*fakeStore)(nil)

func newFakeStore() *fakeStore {
	return &fakeStore{incarnation: 1, failed: make(chan struct{}), shards: map[layout.ShardKey]*fakeShard{}}
}

func (f *fakeStore) Superblock() format.Superblock   { return format.Superblock{Cell: testCell} }
func (f *fakeStore) Incarnation() layout.Incarnation { return f.incarnation }
func (f *fakeStore) Usage() store.Usage {
	return store.Usage{Total: 1 << 30, Shards: uint64(len(f.shards))}
}
func (f *fakeStore) Counters() store.Counters {
	return store.Counters{DataBytes: 1, LogBytes: 2, IndexBytes: 4}
}
func (f *fakeStore) Failed() <-chan struct{}         { return f.failed }
func (f *fakeStore) Err() error                      { return errs.New(errs.Unavailable, "", "fsync failed") }
func (f *fakeStore) Close() error                    { return nil }
func (f *fakeStore) SetDevice(layout.DeviceID) error { return nil }

func (f *fakeStore) at(ref frame.ShardRef) (*fakeShard, error) {
	s := f.shards[ref.ShardKey]
	switch {
	case s == nil:
		return nil, errs.New(errs.NotHere, "", "shard %v is not here", ref)
	case s.spec.Generation != ref.Generation:
		return nil, errs.New(errs.StaleGeneration, "", "shard %v has generation %d", ref, s.spec.Generation)
	}
	return s, nil
}

func (f *fakeStore) with(ref frame.ShardRef, do func(*fakeShard) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.at(ref)
	if err != nil {
		return err
	}
	return do(s)
}

func (f *fakeStore) hold(c chan struct{}) {
	if c != nil {
		if f.entered != nil {
			f.entered <- struct{}{}
		}
		<-c
	}
}

func (f *fakeStore) Create(spec store.ShardSpec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards[spec.Key] = &fakeShard{spec: spec, bytes: make([]byte, spec.Length), crcs: map[layout.ShardOffset]uint32{}, state: store.StateOpen}
	return nil
}

// Append hangs in a large unit's first piece.
func (f *fakeStore) Append(a store.Append) error {
	if a.Turns == nil {
		f.hold(f.holdAppend)
	} else if err := f.takeTurns(a.Turns, len(a.Payload)); err != nil {
		return err
	}
	return f.with(a.Ref, func(s *fakeShard) error {
		h, _, err := stripe.Decode(a.Header)
		if err != nil {
			return err
		}
		if a.Epoch < s.fence {
			return errs.New(errs.StaleEpoch, "", "fenced at %d", s.fence)
		}
		copy(s.bytes[h.Offset:], a.Payload)
		for i, c := range h.UnitCRCs(a.Ref.Shard) {
			s.crcs[h.Offset+layout.ShardOffset(i*layout.BlockSize)] = c
		}
		s.headers = append(s.headers, append([]byte(nil), a.Header...))
		s.seqs = append(s.seqs, h.Seq)
		return nil
	})
}

// takeTurns takes a large unit's turns as the store does: none is under way any
// more when it returns.
func (f *fakeStore) takeTurns(turns store.Turns, n int) (err error) {
	for at := 0; at < n && err == nil; {
		first, piece := at == 0, min(turns.Piece(), n-at)
		err = turns.Turn(piece, func() error {
			if first {
				f.hold(f.holdAppend)
			}
			return nil
		})
		at += piece
	}
	return errors.Join(err, turns.Wait())
}

func (f *fakeStore) Sync(_ layout.Epoch, incarnation layout.Incarnation, shards []frame.ShardRef) error {
	f.hold(f.holdSync)
	f.syncs.Add(1)
	if incarnation != f.incarnation {
		return errs.New(errs.IncarnationMoved, "", "incarnation %d", f.incarnation)
	}
	for _, ref := range shards {
		if err := f.with(ref, func(*fakeShard) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeStore) Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	f.hold(f.holdRead)
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.at(ref)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range ranges {
		if int64(g.Offset)+int64(g.Length) > int64(len(s.bytes)) {
			return 0, errs.New(errs.OutOfRange, "", "past the end of shard %v", ref)
		}
		n += copy(dst[n:], s.bytes[g.Offset:g.Offset+layout.ShardOffset(g.Length)])
	}
	return n, nil
}

func (f *fakeStore) CRCs(ref frame.ShardRef, ranges []frame.ReadRange, dst []uint32) ([]uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.at(ref)
	if err != nil {
		return nil, err
	}
	for _, g := range ranges {
		for o := g.Offset; o < g.Offset+layout.ShardOffset(g.Length); o += layout.BlockSize {
			dst = append(dst, s.crcs[o])
		}
	}
	return dst, nil
}

func (f *fakeStore) Headers(ref frame.ShardRef, _ []frame.ReadRange) (list [][]byte, err error) {
	err = f.with(ref, func(s *fakeShard) error { list = s.headers; return nil })
	return list, err
}

func (f *fakeStore) List(ref frame.ShardRef, from layout.Seq, most int) (headers []byte, count int, next layout.Seq, err error) {
	err = f.with(ref, func(s *fakeShard) error {
		for i, h := range s.headers {
			if s.seqs[i] < from {
				continue
			}
			if count > 0 && len(headers)+len(h) > most {
				next = s.seqs[i]
				break
			}
			headers, count = append(headers, h...), count+1
		}
		return nil
	})
	return headers, count, next, err
}

func (f *fakeStore) Fence(ref frame.ShardRef, epoch layout.Epoch) (list []store.Fenced, err error) {
	err = f.with(ref, func(s *fakeShard) error {
		s.fence, s.state = epoch, store.StateFenced
		for i, h := range s.headers {
			list = append(list, store.Fenced{Seq: s.seqs[i], Header: h})
		}
		return nil
	})
	return list, err
}

func (f *fakeStore) CheckRecovery(ref frame.ShardRef, epoch layout.Epoch) error {
	return f.with(ref, func(s *fakeShard) error {
		if s.fence < epoch {
			return errs.New(errs.Conflict, "", "fenced at %d, not %d", s.fence, epoch)
		}
		if s.fence > epoch {
			return errs.New(errs.StaleEpoch, "", "fenced at %d", s.fence)
		}
		return nil
	})
}

func (f *fakeStore) CheckReader(ref frame.ShardRef, epoch layout.Epoch) error {
	return f.with(ref, func(s *fakeShard) error {
		if epoch < s.fence {
			return errs.New(errs.StaleEpoch, "", "fenced at %d", s.fence)
		}
		return nil
	})
}

func (f *fakeStore) Finalize(ref frame.ShardRef, _ layout.Seq, seal stripe.ShardSeal) error {
	return f.with(ref, func(s *fakeShard) error {
		if int(seal.Count) != len(s.headers) {
			s.state = store.StateIncomplete
			return errs.New(errs.Corrupt, "", "%d stripes, sealed at %d", len(s.headers), seal.Count)
		}
		s.state = store.StateFinalized
		return nil
	})
}

func (f *fakeStore) Delete(ref frame.ShardRef) error {
	return f.with(ref, func(*fakeShard) error { delete(f.shards, ref.ShardKey); return nil })
}

func (f *fakeStore) Stat(ref frame.ShardRef) (stat store.Stat, err error) {
	err = f.with(ref, func(s *fakeShard) error {
		stat = store.Stat{Ref: ref, Fence: s.fence, Stripes: uint32(len(s.headers)), State: s.state}
		return nil
	})
	return stat, err
}

func (f *fakeStore) Each(visit func(store.Stat) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, s := range f.shards {
		if !visit(store.Stat{Ref: frame.ShardRef{ShardKey: k, Generation: s.spec.Generation}, State: s.state}) {
			return
		}
	}
}

// discardStore takes appends and keeps nothing.
type discardStore struct{ *fakeStore }

func (discardStore) Append(store.Append) error { return nil }
