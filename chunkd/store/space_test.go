package store

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// fill writes a foreign file until the disk is full.
func fill(t *testing.T, mem *vfs.Mem) {
	t.Helper()
	f, err := mem.Create("foreign")
	ok(t, err)
	b := make([]byte, 4096)
	for i := range b {
		b[i] = 1
	}
	for off := int64(0); ; off += 4096 {
		if _, err := f.WriteAt(b, off); err != nil {
			break
		}
	}
	ok(t, f.Sync())
	ok(t, mem.SyncDir("."))
	ok(t, f.Close())
}

func TestFullDiskLosesNothingAndStillDeletes(t *testing.T) {
	mem := vfs.NewMem(vfs.MemOptions{Capacity: 96 << 20})
	s := opened(t, formatted(t, mem))
	for id := range 3 {
		ok(t, s.Create(testSpec(segment(id+1))))
	}
	first := unitOf(1, 5, 1, 0, 64<<10)
	ok(t, s.Append(first))
	synced(t, s, 1)
	fill(t, mem)
	is(t, s.Append(unitOf(1, 5, 2, 64<<10, 64<<10)), errs.NoSpace)
	is(t, s.Create(testSpec(9)), errs.NoSpace)

	kept := 0 // small appends go on as long as the log has room
	for i := range layout.Seq(200) {
		a := unitOf(2, 5, i+1, layout.ShardOffset(i)*4096, 4096)
		a.Durable = true
		if err := s.Append(a); err != nil {
			is(t, err, errs.NoSpace)
			break
		}
		kept++
	}
	if kept == 0 || kept == 200 {
		t.Fatalf("%d small appends were taken by a full disk", kept)
	}
	ok(t, s.Err())
	_ = s.Close()

	s = opened(t, mem)
	checkUnitReads(t, s, first, 0)
	for i := range kept {
		at := layout.ShardOffset(i) * 4096
		checkUnitReads(t, s, unitOf(2, 5, layout.Seq(i+1), at, 4096), at)
	}
	ok(t, s.Delete(testRef(1)))
	ok(t, s.Delete(testRef(3)))
	ok(t, mem.Remove("foreign"))
	ok(t, s.Create(testSpec(9)))
	ok(t, s.Append(unitOf(9, 5, 1, 0, 64<<10)))
	synced(t, s, 9)
	ok(t, s.Check())
	ok(t, s.Close())
}

func TestDeletesWorkOnAFullDiskUntilItHasRoomAgain(t *testing.T) {
	mem := vfs.NewMem(vfs.MemOptions{Capacity: 96 << 20})
	s := opened(t, formatted(t, mem))
	const shards = 30
	for id := range shards {
		ok(t, s.Create(testSpec(segment(id+1))))
		ok(t, s.Append(unitOf(segment(id+1), 5, 1, 0, 64<<10)))
		synced(t, s, segment(id+1))
	}
	fill(t, mem)
	for id := range shards {
		ok(t, s.Delete(testRef(segment(id+1))))
	}
	ok(t, s.Err())
	ok(t, s.Check())
	ok(t, s.Close())
	s = opened(t, mem)
	if u := s.Usage(); u.Shards != 0 || u.Stored != 0 || u.Reserved != 0 {
		t.Fatalf("got %+v after all was deleted", u)
	}
	ok(t, s.Close())
}

func TestCreateIsRefusedByAccountAndFinalizeGivesBack(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	n := 0
	for ; ; n++ {
		if err := s.Create(testSpec(segment(n + 1))); err != nil {
			is(t, err, errs.NoSpace)
			break
		}
	}
	if u := s.Usage(); u.Reserved != uint64(n)<<20 || u.Free >= 1<<20 || n < 40 {
		t.Fatalf("%d shards of 1 MiB, account %+v", n, u)
	}
	a := unitOf(1, 5, 1, 0, 4096)
	ok(t, s.Append(a))
	ok(t, s.Finalize(testRef(1), 1, sealOf(a)))
	if u := s.Usage(); u.Reserved != uint64(n-1)<<20+4096 || u.Stored != 4096 {
		t.Fatalf("account %+v after a finalize", u)
	}
	ok(t, s.Create(testSpec(segment(n+1))))
	ok(t, s.Check())
	ok(t, s.Close())
}

func TestLogKeepsWithinItsBound(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	for i := range layout.Seq(200) { // four times the log
		a := unitOf(1, 5, i+1, layout.ShardOffset(i)*4096, 4096)
		a.Durable = true
		ok(t, s.Append(a))
	}
	names, err := mem.List(logDir)
	ok(t, err)
	total := int64(0)
	for _, name := range names {
		info, err := mem.Stat(logDir + "/" + name)
		ok(t, err)
		total += info.Size()
	}
	if total > testOptions.LogBytes {
		t.Fatalf("the log has %d bytes, %d are allowed", total, testOptions.LogBytes)
	}
	ok(t, s.Check())
	ok(t, s.Close())
}
