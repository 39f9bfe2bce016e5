package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// inLog makes a device with n durable units of shard 1 in the log, seqs from 1,
// and tells where each record stands, as file and offset.
func inLog(t *testing.T, n int) (mem *vfs.Mem, places []string, offs []int64) {
	t.Helper()
	mem = newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	for i := range n {
		a := unitOf(1, 5, layout.Seq(i+1), layout.ShardOffset(i)*4096, 4096)
		a.Durable = true
		ok(t, s.Append(a))
	}
	sh, err := s.table.pin(testRef(1))
	ok(t, err)
	for _, e := range sh.entries {
		if e.state != logged {
			t.Fatalf("seq %d is not in the log", e.seq)
		}
		places, offs = append(places, e.file.name), append(offs, e.pos)
	}
	return mem.Crash(nil, 0), places, offs
}

func fencedKinds(t *testing.T, mem *vfs.Mem) (kinds []string, err error) {
	t.Helper()
	s := opened(t, mem)
	list, err := s.Fence(testRef(1), 6)
	for _, f := range list {
		kinds = append(kinds, fmt.Sprintf("%d:%v", f.Seq, errs.KindOf(f.Err)))
	}
	again, againErr := s.Fence(testRef(1), 6)
	if len(again) != len(list) || errs.KindOf(err) != errs.KindOf(againErr) {
		t.Fatalf("the answer changed: %d, %v, then %d, %v", len(list), err, len(again), againErr)
	}
	ok(t, s.Close())
	s = opened(t, mem) // and it stays after a restart
	again, againErr = s.Fence(testRef(1), 6)
	if len(again) != len(list) || errs.KindOf(err) != errs.KindOf(againErr) {
		t.Fatalf("the answer changed over a restart: %d, %v, then %d, %v", len(list), err, len(again), againErr)
	}
	ok(t, s.Close())
	return kinds, err
}

func TestRotOfPayloadInLogIsCannotTellOfThatStripe(t *testing.T) {
	mem, places, offs := inLog(t, 3)
	ok(t, mem.FlipBit(places[1], offs[1]+2000, 1))
	kinds, err := fencedKinds(t, mem)
	ok(t, err)
	if got := fmt.Sprint(kinds); got != "[1:ok 2:corrupt 3:ok]" {
		t.Fatalf("got %s", got)
	}
	s := opened(t, mem)
	var b [4096]byte
	_, err = s.Read(testRef(1), []frame.ReadRange{{Offset: 4096, Length: 4096}}, b[:])
	is(t, err, errs.Corrupt)
	_, err = s.Read(testRef(1), []frame.ReadRange{{Offset: 8192, Length: 4096}}, b[:])
	ok(t, err)
	ok(t, s.Close())
}

func TestRotOfHeadInLogIsCannotTellOfAnything(t *testing.T) {
	mem, places, offs := inLog(t, 3)
	ok(t, mem.FlipBit(places[1], offs[1]+10, 1))
	_, err := fencedKinds(t, mem)
	is(t, err, errs.Corrupt)
}

// A record that a newer build wrote must not be skipped: it holds a write.
func TestRecordOfAnotherVersionInLogIsRefused(t *testing.T) {
	mem, places, offs := inLog(t, 3)
	f, err := mem.Open(places[2])
	ok(t, err)
	head := make([]byte, format.LogHeadLen)
	_, err = f.ReadAt(head, offs[2])
	ok(t, err)
	head[4] = format.LogVersion + 1
	sum := sha256.Sum256(append(slices.Clone(testID.LogKey[:]), head[:72]...))
	copy(head[72:], sum[:8])
	_, err = f.WriteAt(head, offs[2])
	ok(t, errors.Join(err, f.Sync(), f.Close()))
	_, err = Open(mem, format.Superblock{}, testOptions)
	is(t, err, errs.Version)
}

// The same of a stripe's header in a record that is sound: at the log's end it is not
// taken for a torn one, and below not for a damaged one.
func TestAStripeOfAnotherVersionInLogIsRefused(t *testing.T) {
	for _, at := range []int{2, 0} { // the last record, and one below
		mem, places, offs := inLog(t, 3)
		f, err := mem.Open(places[at])
		ok(t, err)
		record := make([]byte, 8192)
		_, err = f.ReadAt(record, offs[at])
		ok(t, err)
		head, good := format.DecodeLogHead(record, &testID.LogKey)
		if !good {
			t.Fatal("no head")
		}
		head.HeaderCRC = newerHeader(record[format.LogHeadLen:][:head.Header])
		head.Put(record, &testID.LogKey)
		_, err = f.WriteAt(record[:head.Len()], offs[at])
		ok(t, errors.Join(err, f.Sync(), f.Close()))
		_, err = Open(mem, format.Superblock{}, testOptions)
		is(t, err, errs.Version)
	}
}

// The same in the index, of a shard that can still change: also when it is fenced.
func TestAStripeOfAnotherVersionInTheIndexIsRefused(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	a := unitOf(1, 5, 2, 4096, 4096)
	newerHeader(a.Header)
	b := s.index.db.NewBatch()
	ok(t, errors.Join(b.Set(format.AppendStripeKey(nil, format.KindStripe, a.Ref.ShardKey, 4096, 2), a.Header, nil), s.index.commit(b)))
	_, err := s.Fence(testRef(1), 6)
	is(t, err, errs.Version)
	ok(t, s.Close())
	_, err = Open(mem, format.Superblock{}, testOptions)
	is(t, err, errs.Version)
}

// newerHeader makes a stripe header one of the next version, and gives its checksum.
func newerHeader(b []byte) uint32 {
	b[4]++
	end := len(b) - 4
	sum := crc32.Checksum(b[:end], stripe.Castagnoli)
	binary.LittleEndian.PutUint32(b[end:], sum)
	return sum
}

// A kind of record that a newer build added must not be skipped either.
func TestAnIndexWithRecordsOfAnUnknownKindIsRefused(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	b := s.index.db.NewBatch()
	ok(t, errors.Join(b.Set([]byte("n12345678"), []byte{1}, nil), s.index.commit(b), s.Close()))
	_, err := Open(mem, format.Superblock{}, testOptions)
	is(t, err, errs.Version)
}

func TestTornTailIsNeverHadIt(t *testing.T) {
	mem, places, offs := inLog(t, 3)
	ok(t, mem.FlipBit(places[2], offs[2]+2000, 1)) // as if its sync had never come back
	kinds, err := fencedKinds(t, mem)
	ok(t, err)
	if got := fmt.Sprint(kinds); got != "[1:ok 2:ok]" {
		t.Fatalf("got %s", got)
	}
}

func TestForgedRecordInPayloadIsNotReplayed(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Create(testSpec(2)))
	victim := unitOf(2, 5, 1, 0, 4096)
	head := format.LogHead{LSN: 1 << 40, First: 1 << 40, Key: victim.Ref.ShardKey, Generation: 1, Seq: 1, Header: uint32(len(victim.Header)),
		Payload: 4096, HeaderCRC: headerCRC(victim.Header), Incarnation: 1}
	forged := make([]byte, head.Len())
	head.Put(forged, &[16]byte{}) // the forger does not know the key
	copy(forged[format.LogHeadLen:], victim.Header)
	if _, ok := format.DecodeLogHead(forged, &testID.LogKey); ok {
		t.Fatal("a forged head was taken")
	}
	ok(t, s.Close())
}

func TestMissingDataFileIsCannotTell(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Close())
	ok(t, mem.Remove(fileName{testRef(1).ShardKey, 1}.path()))
	s = opened(t, mem)
	_, err := s.Fence(testRef(1), 6)
	is(t, err, errs.Corrupt)
	ok(t, s.Close())
}

func TestWipedIndexIsRefused(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Close())
	names, err := mem.List(indexDir)
	ok(t, err)
	for _, name := range names {
		ok(t, mem.Remove(indexDir+"/"+name))
	}
	_, err = Open(mem, format.Superblock{}, testOptions)
	is(t, err, errs.Corrupt)
}

func TestFirstFsyncErrorEndsTheDevice(t *testing.T) {
	fault := vfs.NewFault(newMem())
	s := opened(t, formatted(t, fault))
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Append(unitOf(1, 5, 1, 0, 4096)))
	fault.Hook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return fmt.Errorf("medium error")
		}
		return nil
	})
	refs := []frame.ShardRef{testRef(1)}
	is(t, s.Sync(5, s.Incarnation(), refs), errs.Unavailable)
	fault.Heal() // a later fsync would succeed, for bytes that are gone
	is(t, s.Sync(5, s.Incarnation(), refs), errs.Unavailable)
	is(t, s.Append(unitOf(1, 5, 2, 4096, 4096)), errs.Unavailable)
	_, err := s.Read(testRef(1), []frame.ReadRange{{Length: 4096}}, make([]byte, 4096))
	is(t, err, errs.Unavailable)
	_, err = s.Fence(testRef(1), 6)
	is(t, err, errs.Unavailable)
	select {
	case <-s.Failed():
	default:
		t.Fatal("Failed is not closed")
	}
	is(t, s.Close(), errs.Unavailable)
}

func TestAnotherCellsDeviceIsRefused(t *testing.T) {
	mem := newMem()
	formatted(t, mem)
	_, err := Open(mem, format.Superblock{Cell: 1}, testOptions)
	is(t, err, errs.WrongCell)
	_, err = Open(mem, format.Superblock{Server: layout.UUID{99}}, testOptions)
	is(t, err, errs.WrongCell)
	is(t, Format(mem, testID), errs.AlreadyExists)
	s := opened(t, mem)
	_, err = Open(mem, format.Superblock{}, testOptions)
	is(t, err, errs.Busy)
	ok(t, s.SetDevice(4))
	ok(t, s.SetDevice(4))
	is(t, s.SetDevice(5), errs.Conflict)
	ok(t, s.Close())
	sb, err := Inspect(mem)
	ok(t, err)
	if sb.Device != 4 || sb.Incarnation != 1 {
		t.Fatalf("got %+v", sb)
	}
}

// TestRotOfIndexIsNeverTakenForAbsence flips a bit at many places of the index,
// in its write-ahead log too: what was durable is either still there, or the
// device or the shard can't tell. The last batch is excepted (see indexlog.go).
func TestRotOfIndexIsNeverTakenForAbsence(t *testing.T) {
	const units = 6
	made := newMem()
	s := opened(t, formatted(t, made))
	ok(t, s.Create(testSpec(1)))
	for i := range units {
		a := unitOf(1, 5, layout.Seq(i+1), layout.ShardOffset(i)*16384, 16384)
		a.Durable = true
		ok(t, s.Append(a))
	}
	left := made.Crash(nil, 0)
	logs, err := left.List(indexDir)
	ok(t, err)
	for _, name := range logs {
		path := indexDir + "/" + name
		info, err := left.Stat(path)
		ok(t, err)
		for off := int64(0); off < info.Size(); off += 1 + info.Size()/40 {
			mem := made.Crash(nil, 0)
			if mem.FlipBit(path, off, 2) != nil {
				continue
			}
			s, err := Open(mem, format.Superblock{}, testOptions)
			if err != nil {
				continue // the device can't tell
			}
			list, err := s.Fence(testRef(1), 6)
			if err == nil && len(list) < units-1 {
				t.Errorf("a bit flipped at %d of %s: the shard lists %d of %d stripes", off, name, len(list), units)
			}
			_ = s.Close()
		}
	}
}
