package store

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

func unitsOf(appends ...Append) (units []Unit) {
	for _, a := range appends {
		units = append(units, Unit{Header: a.Header, Payload: a.Payload})
	}
	return units
}

// someStripes are small, large and empty ones, without gaps.
func someStripes(segment layout.SegmentID) (list []Append) {
	at := layout.ShardOffset(0)
	for i, unit := range []uint32{4096, 64 << 10, 0, 8192, 4096, 128 << 10} {
		list = append(list, unitOf(segment, 5, layout.Seq(i+1), at, unit))
		at += layout.ShardOffset(unit)
	}
	return list
}

func checkAll(t *testing.T, s *Store, list []Append) {
	t.Helper()
	at := layout.ShardOffset(0)
	for _, a := range list {
		if len(a.Payload) > 0 {
			checkUnitReads(t, s, a, at)
		}
		at += layout.ShardOffset(len(a.Payload))
	}
	_, count, _, err := s.List(list[0].Ref, 0, 1<<20)
	ok(t, err)
	if count != len(list) {
		t.Fatalf("%d stripes are listed, want %d", count, len(list))
	}
	ok(t, s.Check())
}

func TestAFilledShardIsASource(t *testing.T) {
	fsys := formatted(t, newMem())
	s := opened(t, fsys)
	list := someStripes(1)
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Fill(testRef(1), unitsOf(list[:3]...), nil))
	ok(t, s.Fill(testRef(1), unitsOf(list[2:]...), nil))
	ok(t, s.Fill(testRef(1), unitsOf(list[1]), nil))
	ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
	ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
	ok(t, s.Finalize(testRef(1), 6, sealOf(list...)))
	checkAll(t, s, list)
	ok(t, s.Close())
	s = opened(t, fsys)
	checkAll(t, s, list)
	ok(t, s.Close())
}

func TestAnIncompleteShardIsMended(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	list := someStripes(1)
	ok(t, s.Create(testSpec(1)))
	for _, a := range list[:4] {
		ok(t, s.Append(a))
	}
	seal := sealOf(list...)
	is(t, s.Finalize(testRef(1), 6, seal), errs.Corrupt)
	is(t, s.Mend(testRef(1), 6, seal), errs.Corrupt)
	ok(t, s.Fill(testRef(1), unitsOf(list[4:]...), nil))
	ok(t, s.Mend(testRef(1), 6, seal))
	checkAll(t, s, list)
	ok(t, s.Close())
}

func TestRottenBytesAndAMissingFileAreMended(t *testing.T) {
	fsys := formatted(t, newMem())
	s := opened(t, fsys)
	list := someStripes(1)
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Fill(testRef(1), unitsOf(list...), nil))
	ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
	path := fileName{testRef(1).ShardKey, 1}.path()
	f, err := fsys.Open(path)
	ok(t, err)
	_, err = f.WriteAt([]byte("rot"), 70<<10)
	ok(t, errors.Join(err, f.Close()))
	ok(t, s.Fill(testRef(1), unitsOf(list[3]), nil))
	checkAll(t, s, list)
	ok(t, s.Close())
	ok(t, fsys.Remove(path))
	s = opened(t, fsys)
	if _, _, _, err := s.List(testRef(1), 0, 1<<20); err == nil {
		t.Fatal("a shard without its file lists as if nothing were wrong")
	}
	ok(t, s.Fill(testRef(1), unitsOf(list...), nil))
	ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
	checkAll(t, s, list)
	ok(t, s.Close())
}

func TestAUnitThatDoesNotFitIsRefused(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	ok(t, s.Create(testSpec(1)))
	good := unitOf(1, 5, 1, 0, 8192)
	bad := unitsOf(good)[0]
	bad.Payload = append([]byte(nil), bad.Payload...)
	bad.Payload[5000] ^= 1
	is(t, s.Fill(testRef(1), []Unit{bad}, nil), errs.Corrupt)
	is(t, s.Fill(testRef(1), unitsOf(unitOf(2, 5, 1, 0, 4096)), nil), errs.Corrupt)
	is(t, s.Fill(testRef(1), unitsOf(unitOf(1, 5, 1, 1<<20, 4096)), nil), errs.OutOfRange)
	is(t, s.Fill(frame.ShardRef{ShardKey: testRef(1).ShardKey, Generation: 2}, unitsOf(good), nil), errs.StaleGeneration)
	is(t, s.Fill(testRef(2), nil, nil), errs.NotHere)
	if _, count, _, err := s.List(testRef(1), 0, 1<<20); err != nil || count != 0 {
		t.Fatalf("%d stripes, %v", count, err)
	}
	ok(t, s.Close())
}

// TestAFillIsWholeOrGoesOnAfterAPowerCut cuts the power after every disk
// operation of a rebuild: a new life goes on with it, and what is listed before
// is durable.
func TestAFillIsWholeOrGoesOnAfterAPowerCut(t *testing.T) {
	list := someStripes(1)
	for n := int64(1); ; n++ {
		disk := formatted(t, newMem()).(*vfs.Mem)
		fault := vfs.NewFault(disk)
		s := opened(t, fault)
		ok(t, s.Create(testSpec(1)))
		from := fault.Ops()
		fault.CutAt(from + n)
		err := errors.Join(s.Fill(testRef(1), unitsOf(list[:4]...), nil), s.Fill(testRef(1), unitsOf(list[4:]...), nil), s.Mend(testRef(1), 6, sealOf(list...)))
		whole := fault.Ops() < from+n
		disk = disk.Crash(rand.New(rand.NewPCG(uint64(n), 1)), int(n%3)*50)
		_ = s.Close()
		s = opened(t, disk)
		ok(t, s.Check())
		ok(t, s.Fill(testRef(1), unitsOf(list...), nil))
		ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
		checkAll(t, s, list)
		ok(t, s.Close())
		if whole {
			ok(t, err)
			return
		}
	}
}

// TestAFillThatAnErrorMetIsNotToldWhole has each disk operation of a rebuild fail, in
// turn: what was told to be done outlives the loss of all that was not synced, and
// what was not is done by the next life. Of those that failed, every other one is
// discarded.
func TestAFillThatAnErrorMetIsNotToldWhole(t *testing.T) {
	list := someStripes(1)
	for _, bad := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := int64(1); ; n += stride(t) {
			disk := formatted(t, newMem()).(*vfs.Mem)
			fault := vfs.NewFault(disk)
			s := opened(t, fault)
			ok(t, s.Create(testSpec(1)))
			from := fault.Ops()
			fault.FailAt(from+n, bad)
			err := errors.Join(s.Fill(testRef(1), unitsOf(list[:4]...), nil), s.Fill(testRef(1), unitsOf(list[4:]...), nil), s.Mend(testRef(1), 6, sealOf(list...)))
			met := fault.Ops() >= from+n
			tried := err != nil && n%2 == 1
			gone := tried && s.Discard(testRef(1)) == nil
			disk = disk.Crash(rand.New(rand.NewPCG(uint64(n), 1)), 0)
			_ = s.Close()
			s = opened(t, disk)
			ok(t, s.Check())
			_, there := s.Stat(testRef(1))
			switch {
			case tried && errs.KindOf(there) == errs.NotHere:
			case gone:
				t.Fatalf("operation %d fails with %v: the shard was discarded and is there: %v", n, bad, there)
			case err != nil:
				ok(t, s.Fill(testRef(1), unitsOf(list...), nil))
				ok(t, s.Mend(testRef(1), 6, sealOf(list...)))
				fallthrough
			default:
				checkAll(t, s, list)
			}
			ok(t, s.Close())
			if !met {
				ok(t, err)
				break
			}
		}
	}
}
