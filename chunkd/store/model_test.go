package store

import (
	"bytes"
	"slices"
	"testing"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// model remembers what a store was asked and what it promised, over its lives.
type model struct {
	formatted   bool
	incarnation layout.Incarnation
	shards      map[layout.SegmentID]*modelShard
}

type modelShard struct {
	tried, created           bool
	deleteTried, deleted     bool
	finalizeTried, finalized bool
	last                     layout.Seq
	seal                     stripe.ShardSeal
	fence                    layout.Epoch // acknowledged
	fenced                   []Fenced     // the answer
	units                    []*modelUnit // by seq
}

type modelUnit struct {
	Append
	seq      layout.Seq
	offset   layout.ShardOffset
	appended bool // acknowledged
	synced   bool // acknowledged
}

func newModel() *model { return &model{shards: map[layout.SegmentID]*modelShard{}} }

func (m *model) shard(id layout.SegmentID) *modelShard {
	if m.shards[id] == nil {
		m.shards[id] = &modelShard{}
	}
	return m.shards[id]
}

// run is one life of a store under a model. Errors are remembered as "not
// promised"; the script goes on.
type run struct {
	m *model
	s *Store
}

func (r *run) create(id layout.SegmentID) {
	sh := r.m.shard(id)
	sh.tried = true
	if r.s.Create(testSpec(id)) == nil {
		sh.created = true
	}
}

// append adds a unit at the end of a shard.
func (r *run) append(id layout.SegmentID, unit uint32, durable bool) {
	sh := r.m.shard(id)
	u := &modelUnit{seq: 1}
	if n := len(sh.units); n > 0 {
		last := sh.units[n-1]
		u.seq, u.offset = last.seq+1, last.offset+layout.ShardOffset(len(last.Payload))
	}
	u.Append = unitOf(id, 5, u.seq, u.offset, unit)
	u.Durable = durable
	sh.units = append(sh.units, u)
	if r.s.Append(u.Append) == nil {
		u.appended = true
		if durable {
			sh.acked()
		}
	}
}

// acked: all that was appended in this life is durable now.
func (sh *modelShard) acked() {
	for _, u := range sh.units {
		u.synced = u.synced || u.appended
	}
}

func (r *run) sync(ids ...layout.SegmentID) {
	var refs []frame.ShardRef
	for _, id := range ids {
		refs = append(refs, testRef(id))
	}
	if r.s.Sync(5, r.s.Incarnation(), refs) == nil {
		for _, id := range ids {
			r.m.shard(id).acked()
		}
	}
}

func (r *run) fence(id layout.SegmentID, epoch layout.Epoch) {
	sh := r.m.shard(id)
	if list, err := r.s.Fence(testRef(id), epoch); err == nil {
		sh.fence, sh.fenced = epoch, list
	}
}

func (r *run) finalize(id layout.SegmentID, last layout.Seq) {
	sh := r.m.shard(id)
	sh.finalizeTried, sh.last, sh.seal = true, last, stripe.ShardSeal{}
	for _, u := range sh.units {
		if u.seq <= last && u.appended {
			h, _, _ := stripe.Decode(u.Header)
			sh.seal.Add(h)
		}
	}
	sh.finalized = r.s.Finalize(testRef(id), last, sh.seal) == nil
}

func (r *run) delete(id layout.SegmentID) {
	sh := r.m.shard(id)
	sh.deleteTried = true
	sh.deleted = r.s.Delete(testRef(id)) == nil
}

// life opens a store, runs a script, and closes it. Units that were not synced
// before are not expected any more.
func (m *model) life(fsys vfs.FS, script func(*run)) {
	s, err := Open(fsys, format.Superblock{}, testOptions)
	if err != nil {
		return
	}
	m.incarnation = s.Incarnation()
	m.forgetUnsynced()
	r := &run{m, s}
	script(r)
	if s.Close() == nil {
		for _, sh := range m.shards {
			sh.acked()
		}
	}
}

func (m *model) forgetUnsynced() {
	for _, sh := range m.shards {
		for _, u := range sh.units {
			u.appended = u.synced
		}
	}
}

// verify opens what is left and compares it with what was promised.
func (m *model) verify(t *testing.T, fsys vfs.FS) {
	t.Helper()
	s, err := Open(fsys, format.Superblock{}, testOptions)
	if !m.formatted {
		if err == nil {
			ok(t, s.Close())
		}
		return
	}
	ok(t, err)
	if s.Incarnation() <= m.incarnation {
		t.Fatalf("I9: incarnation %d after %d", s.Incarnation(), m.incarnation)
	}
	ok(t, s.Check())
	for id, sh := range m.shards {
		sh.verify(t, s, id)
	}
	ok(t, s.Check())
	ok(t, s.Close())
}

func (sh *modelShard) verify(t *testing.T, s *Store, id layout.SegmentID) {
	t.Helper()
	stat, err := s.Stat(testRef(id))
	if sh.deleted {
		is(t, err, errs.NotHere)
		is(t, s.Create(testSpec(id)), errs.Conflict)
		ok(t, s.Delete(testRef(id)))
		return
	}
	if err != nil {
		if sh.created && !sh.deleteTried {
			t.Fatalf("shard %d is lost: %v", id, err)
		}
		return
	}
	if sh.finalized && stat.State != StateFinalized {
		t.Fatalf("shard %d is %v, it was finalized", id, stat.State)
	}
	if sh.finalized {
		ok(t, s.Finalize(testRef(id), sh.last, sh.seal))
	}
	if sh.fence != 0 && !sh.finalizeTried {
		ok(t, s.CheckRecovery(testRef(id), sh.fence))
		is(t, s.Append(unitOf(id, 5, 1000, 512<<10, 4096)), errs.StaleEpoch)
	}
	sh.verifyUnits(t, s, id, sh.listed(t, s, id), stat.State)
	fenced, err := s.Fence(testRef(id), max(sh.fence, 9))
	ok(t, err)
	sh.verifyFence(t, id, fenced, stat.State)
}

// listed gives the headers of a shard's list by seq.
func (sh *modelShard) listed(t *testing.T, s *Store, id layout.SegmentID) map[layout.Seq][]byte {
	t.Helper()
	all := map[layout.Seq][]byte{}
	for next := layout.Seq(1); next != 0; {
		headers, count, after, err := s.List(testRef(id), next, 500)
		ok(t, err)
		for range count {
			h, n, err := stripe.Decode(headers)
			ok(t, err)
			if h.Seq < next || all[h.Seq] != nil {
				t.Fatalf("shard %d: seq %d is listed out of order", id, h.Seq)
			}
			all[h.Seq] = headers[:n]
			headers = headers[n:]
			next = h.Seq
		}
		if next = after; len(headers) != 0 {
			t.Fatal("bytes after the last header")
		}
	}
	return all
}

func (sh *modelShard) verifyUnits(t *testing.T, s *Store, id layout.SegmentID, listed map[layout.Seq][]byte, state State) {
	t.Helper()
	for _, u := range sh.units {
		header := listed[u.seq]
		dropped := sh.finalizeTried && u.seq > sh.last
		if header == nil {
			if u.synced && !dropped {
				t.Fatalf("shard %d (%v): seq %d was synced and is lost", id, state, u.seq)
			}
			continue
		}
		delete(listed, u.seq)
		if !bytes.Equal(header, u.Header) {
			t.Fatalf("shard %d: seq %d has another header", id, u.seq)
		}
		if sh.finalized && dropped {
			t.Fatalf("shard %d: seq %d is beyond the seal", id, u.seq)
		}
		if len(u.Payload) > 0 {
			checkUnitReads(t, s, u.Append, u.offset)
		}
	}
	if len(listed) > 0 {
		t.Fatalf("shard %d lists stripes that nobody appended: %v", id, listed)
	}
}

// verifyFence: all answers are "have it", and an answer that was given once stays.
func (sh *modelShard) verifyFence(t *testing.T, id layout.SegmentID, list []Fenced, state State) {
	t.Helper()
	for _, f := range list {
		if f.Err != nil {
			t.Fatalf("shard %d: seq %d: %v", id, f.Seq, f.Err)
		}
	}
	if sh.fence == 0 || sh.finalizeTried {
		return
	}
	same := func(a, b Fenced) bool { return a.Seq == b.Seq && bytes.Equal(a.Header, b.Header) }
	if !slices.EqualFunc(sh.fenced, list, same) {
		t.Fatalf("shard %d (%v): the fence's answer changed from %d to %d stripes", id, state, len(sh.fenced), len(list))
	}
}
