package store

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestSmallUnitsAreReadFromMemoryUntilTheyMove: neither a read nor the move looks
// at the log, and the move writes what lies together in one call.
func TestSmallUnitsAreReadFromMemoryUntilTheyMove(t *testing.T) {
	fault := vfs.NewFault(newMem())
	s := opened(t, formatted(t, fault))
	defer s.Close()
	ok(t, s.Create(testSpec(1)))
	var want []byte
	for i := range 6 {
		a := unitOf(1, 5, layout.Seq(i+1), layout.ShardOffset(i)*4096, 4096)
		ok(t, s.Append(a))
		want = append(want, a.Payload...)
	}
	synced(t, s, 1)
	var logReads, dataWrites atomic.Int64
	fault.Hook(func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.OpRead && strings.HasPrefix(op.Path, logDir):
			logReads.Add(1)
		case op.Kind == vfs.OpWrite && strings.HasPrefix(op.Path, shardDir):
			dataWrites.Add(1)
		}
		return nil
	})
	all := []frame.ReadRange{{Length: uint32(len(want))}}
	got := make([]byte, len(want))
	for _, when := range []string{"logged", "moved"} {
		clear(got)
		_, err := s.Read(testRef(1), all, got)
		ok(t, err)
		crcs, err := s.CRCs(testRef(1), all, nil)
		ok(t, err)
		list, n, _, err := s.List(testRef(1), 1, 1<<20)
		ok(t, err)
		if !bytes.Equal(got, want) || len(crcs) != 6 || crcs[3] != crcOf(want[3*4096:]) || n != 6 || len(list) == 0 {
			t.Fatalf("%s: the units read back wrong, %d listed", when, n)
		}
		ok(t, s.moveAll())
	}
	if logReads.Load() != 0 || dataWrites.Load() != 1 {
		t.Errorf("%d reads of the log, %d writes of the data file; want none and 1", logReads.Load(), dataWrites.Load())
	}
	if n := s.pending.Load(); n != 0 {
		t.Errorf("%d bytes are pending and nothing is", n)
	}
	ok(t, s.Check())
}

func TestRunsWriteTheirUnitsWhereTheyBelong(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	defer s.Close()
	spec := testSpec(1)
	spec.Length = 8 << 20
	ok(t, s.Create(spec))
	file, err := s.files.acquire(fileName{spec.Key, 1})
	ok(t, err)
	defer s.files.release(file)
	var buf []byte
	w := runs{file: file, own: atOnce{}, buf: &buf}
	want := make([]byte, 6<<20)
	at := 0
	for i, n := range []int{4096, 4096, -8192, 4096, -4096, 65536, 4096, 0, -4096, 1 << 20, 1 << 20, 4096, -4096, 2 << 20} {
		if n < 0 { // a hole
			at -= n
			continue
		}
		unit := bytes.Repeat([]byte{byte(i + 1)}, n)
		ok(t, w.add(int64(at), unit))
		at += copy(want[at:], unit)
	}
	ok(t, w.flush())
	got := make([]byte, at)
	_, err = file.ReadAt(got, 0)
	ok(t, err)
	if !bytes.Equal(got, want[:at]) {
		t.Fatal("the file is not what was added")
	}
}

func TestRecordsAreAtLeastAsLongAsAsked(t *testing.T) {
	for n := int64(512); n < 1<<20; n += 512 {
		class, capacity := classOf(n)
		again, same := classOf(capacity)
		if capacity < n || capacity > n+n/4+512 || again != class || same != capacity {
			t.Fatalf("%d bytes: class %d of %d bytes; that is class %d of %d", n, class, capacity, again, same)
		}
	}
}

// TestSumsOfTheCallerAreHeldAgainstTheHeader: they spare the store the work, not
// the comparison.
func TestSumsOfTheCallerAreHeldAgainstTheHeader(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	defer s.Close()
	ok(t, s.Create(testSpec(1)))
	a := unitOf(1, 5, 1, 0, 8192)
	right := []uint32{crcOf(a.Payload), crcOf(a.Payload[4096:])}
	a.Sums = []uint32{right[0], right[1] ^ 1}
	is(t, s.Append(a), errs.Corrupt)
	a.Sums = right[:1]
	is(t, s.Append(a), errs.InvalidArgument)
	a.Sums = right
	ok(t, s.Append(a))
}

// TestLogBatchesCountWhatTheDeviceWrites: padding included.
func TestLogBatchesCountWhatTheDeviceWrites(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	defer s.Close()
	ok(t, s.Create(testSpec(1)))
	before := s.Counters()
	ok(t, s.Append(unitOf(1, 5, 1, 0, 4096)))
	synced(t, s, 1)
	after := s.Counters()
	if n := after.LogBytes - before.LogBytes; n != layout.BlockSize+format.LogStep {
		t.Errorf("%d bytes for one small append", n)
	}
	if n := after.Fsyncs - before.Fsyncs; n != 1 {
		t.Errorf("%d fsyncs for one small append", n)
	}
}
