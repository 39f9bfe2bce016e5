package store

import (
	"bytes"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

func checkUnitReads(t *testing.T, s *Store, a Append, offset layout.ShardOffset) {
	t.Helper()
	ranges := []frame.ReadRange{{Offset: offset, Length: uint32(len(a.Payload))}}
	got := make([]byte, len(a.Payload))
	_, err := s.Read(a.Ref, ranges, got)
	ok(t, err)
	if !bytes.Equal(got, a.Payload) {
		t.Fatalf("unit at %d of shard %v reads differently", offset, a.Ref.ShardKey)
	}
	crcs, err := s.CRCs(a.Ref, ranges, nil)
	ok(t, err)
	for i, c := range crcs {
		if want := crcOf(a.Payload[i*layout.BlockSize:]); c != want {
			t.Fatalf("checksum of block %d is %x, want %x", i, c, want)
		}
	}
	headers, err := s.Headers(a.Ref, ranges)
	ok(t, err)
	if len(headers) != 1 || !bytes.Equal(headers[0], a.Header) {
		t.Fatalf("got %d headers, want the one that was appended", len(headers))
	}
}

func TestUnitReadsTheSameInMemoryLogAndDataFile(t *testing.T) {
	fsys := formatted(t, newMem())
	s := opened(t, fsys)
	ok(t, s.Create(testSpec(1)))
	small, large := unitOf(1, 5, 1, 0, 4096), unitOf(1, 5, 2, 4096, 64<<10)
	ok(t, s.Append(small))
	ok(t, s.Append(large))
	look := func() {
		t.Helper()
		checkUnitReads(t, s, small, 0)
		checkUnitReads(t, s, large, 4096)
	}
	look()
	synced(t, s, 1)
	look()
	ok(t, s.moveAll())
	look()
	ok(t, s.Check())
	ok(t, s.Close())
	s = opened(t, fsys)
	look()
	ok(t, s.Finalize(testRef(1), 2, sealOf(small, large)))
	look()
	look()
	ok(t, s.Check())
	ok(t, s.Close())
}

func TestLogIsReplayedAfterPowerCut(t *testing.T) {
	fsys := newMem()
	formatted(t, fsys)
	s := opened(t, fsys)
	ok(t, s.Create(testSpec(1)))
	var all []Append
	for i := range layout.Seq(20) {
		a := unitOf(1, 5, i+1, layout.ShardOffset(i)*4096, 4096)
		ok(t, s.Append(a))
		synced(t, s, 1)
		all = append(all, a)
	}
	after := fsys.Crash(nil, 0)
	s = opened(t, after)
	for i, a := range all {
		checkUnitReads(t, s, a, layout.ShardOffset(i)*4096)
	}
	list, err := s.Fence(testRef(1), 6)
	ok(t, err)
	if len(list) != 20 {
		t.Fatalf("got %d stripes, want 20", len(list))
	}
	for _, f := range list {
		ok(t, f.Err)
	}
	is(t, s.Append(unitOf(1, 5, 21, 20*4096, 4096)), errs.StaleEpoch)
	ok(t, s.Finalize(testRef(1), 10, sealOf(all[:10]...)))
	ok(t, s.Check())
	ok(t, s.Delete(testRef(1)))
	ok(t, s.Delete(testRef(1)))
	is(t, s.Create(testSpec(1)), errs.Conflict)
	ok(t, s.Check())
	ok(t, s.Close())
	_ = vfs.ErrPowerCut
}
