package state

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand"
	"reflect"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// samples holds one command of each type with every field set.
func samples() []Command {
	g := layout.Geometry{K: 2, M: 1}
	ref := VolumeRef{ID: 3, Tenant: "t", Name: "v"}
	seal := possibleSeal(rand.New(rand.NewSource(1)), &Segment{ID: 9, Geometry: g, ShardLength: 1 << 20}, 5, 3)
	report := DeviceReport{UUID: layout.UUID{2}, Path: "/d", Total: 9, Used: 3, Reserved: 2, Incarnation: 4, State: DeviceLimping}
	return []Command{
		FormCell{ID: 1, Cell: 2, ShardLength: 1 << 20},
		RegisterServer{ID: 1, Cell: 2, UUID: layout.UUID{1}, DataAddress: "a", ControlAddress: "b", Domain: "z/r/h", Version: "1", Devices: []DeviceReport{report}},
		UpdateDevices{ID: 1, Devices: []DeviceUpdate{{Device: 1, Total: 9, Used: 8, Reserved: 7, State: DeviceDraining}}},
		SetServerState{ID: 1, Server: 2, Up: true, Registered: 3},
		OpenSession{ID: 1, Owner: "me", Janitor: true},
		CloseSession{ID: 1, Session: 2},
		ExpireSession{ID: 1, Session: 2},
		CreateVolume{ID: 1, Tenant: "t", Name: "v", SizeBytes: 4096, Geometry: g, Class: 3},
		ResizeVolume{ID: 1, Volume: ref, SizeBytes: 8192, Shrink: true, Session: 2, Epoch: 4},
		RemoveVolume{ID: 1, Volume: ref, Now: true, AtUnix: 77},
		UndeleteVolume{ID: 1, Volume: ref},
		PurgeVolume{ID: 1, Volume: 3},
		AcquireLease{ID: 1, Session: 2, Volume: ref, Force: true},
		ReleaseLease{ID: 1, Session: 2, Volume: 3, Epoch: 4, LastSeq: 5, Abandon: true},
		AllocateSegments{ID: 1, Session: 2, Volume: 3, Epoch: 4, Map: true, Count: 5, ShardLength: 4096, Placed: []PlacedSegment{{Geometry: g, ShardLength: 4096, Devices: []layout.DeviceID{1, 2, 3}}}},
		OpenSegments{ID: 1, Segments: []layout.SegmentID{2, 300}},
		DropSegments{ID: 1, Segments: []layout.SegmentID{2}},
		SealSegments{ID: 1, Volume: 2, Epoch: 3, Seals: []Seal{seal}},
		CloseEpoch{ID: 1, Volume: 2, Epoch: 3, Cut: 9, Seals: []Seal{seal}, Undecided: "why", AcceptLoss: true, AcceptAfter: 4, AtUnix: 77},
		RecordRoot{ID: 1, Volume: 2, Epoch: 3, Root: Root{Number: 4, Covers: 5, Page: []byte{6}}, MapLists: []Seal{seal}, Retired: []layout.SegmentID{7}, RetiredMap: []layout.SegmentID{8}, Flat: true},
		MarkFinalized{ID: 1, Segments: []layout.SegmentID{2}},
		ReplaceShard{ID: 1, Segment: 2, Shard: 3, Generation: 4, Device: 5},
		MarkDeleted{ID: 1, Segments: []layout.SegmentID{2}},
		MarkLost{ID: 1, Shards: []ShardAt{{Segment: 2, Shard: 3, Generation: 4}}},
		MarkSound{ID: 1, Shards: []ShardAt{{Segment: 2, Shard: 3, Generation: 4}}},
		ChangeDevices{ID: 1, Devices: []layout.DeviceID{2, 3}, Change: GiveUpDevice, Registered: 4},
		RemoveServer{ID: 1, Server: 2},
		SetClass{ID: 1, Class: ClassRecord{2, "c", 3, 4, 5, 6, 7, 8, 9, 10, 11}, Add: true, Seen: 12, CapacityBytes: 13, CapacityOps: 14},
		RemoveClass{ID: 1, Name: "c"},
		Reserve{ID: 1, Reservation: Reservation{2, "job", 3, 4, 5, 6, 7, "t"}, CapacityBytes: 8, CapacityOps: 9, Joint: true},
		RenewReservation{ID: 1, Job: "job", TTLNs: 2},
		EndReservation{ID: 1, Job: "job", Renewed: 2},
		RestoreCell{ID: 1},
		RecordMember{ID: 1, Member: Member{Address: "a:1", Directory: 2, Life: 3}},
		CreateSnapshots{ID: 1, Items: []SnapshotItem{{Volume: ref, Name: "s", Epoch: 2, Seq: 3}}, Tag: true, AtUnix: 77},
		RemoveSnapshot{ID: 1, Volume: ref, Name: "s"},
		CloneVolume{ID: 1, Volume: ref, Snapshot: "s", Tenant: "t", Name: "w"},
		RollbackVolume{ID: 1, Volume: ref, Snapshot: "s", AtUnix: 77},
		PinSnapshot{ID: 1, Session: 2, Volume: ref, Name: "s", Snapshot: 4},
		UnpinSnapshot{ID: 1, Session: 2, Snapshot: 4},
		HoldTag{ID: 1, Volume: ref, Name: "s", By: "job", Release: true},
		MarkTagReady{ID: 1, Snapshot: 4, Digest: bytes.Repeat([]byte{5}, DigestBytes), Blocks: 6},
		FreeSegments{ID: 1, Volume: 3},
		Rebalance{ID: 1, On: true, Began: 5, Why: "even"},
		FlattenVolume{ID: 1, Volume: ref, Stop: true},
	}
}

func TestEveryCommandRoundTrips(t *testing.T) {
	seen := map[Type]bool{}
	for _, want := range samples() {
		v := reflect.ValueOf(want)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%T: the sample leaves %s empty", want, v.Type().Field(i).Name)
			}
		}
		got, err := Decode(Encode(want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v %v, want %+v", want, got, err, want)
		}
		seen[want.Type()] = true
	}
	if len(seen) != int(TypeFlattenVolume) {
		t.Errorf("%d types have samples, there are %d", len(seen), TypeFlattenVolume)
	}
}

func TestUnknownCommandsAndFieldsAreRefused(t *testing.T) {
	good := Encode(CloseSession{ID: 1, Session: 2})
	for _, c := range []struct {
		name string
		b    []byte
		kind errs.Kind
	}{
		{"empty", nil, errs.Corrupt},
		{"a later version", append([]byte{Version + 1}, good[1:]...), errs.Version},
		{"version 0", append([]byte{0}, good[1:]...), errs.Version},
		{"type 200", append([]byte{1, 200}, good[2:]...), errs.Version},
		{"unknown field", []byte{1, byte(TypeCloseSession), 0xa3, 1, 1, 2, 2, 9, 9}, errs.Version},
		{"field twice", []byte{1, byte(TypeCloseSession), 0xa2, 1, 1, 1, 2}, errs.Corrupt},
		{"bytes left over", append(bytes.Clone(good), 0), errs.Corrupt},
		{"longer number than needed", []byte{1, byte(TypeCloseSession), 0xa2, 1, 0x18, 1, 2, 2}, errs.Corrupt},
		{"too long", make([]byte, MaxCommandBytes+1), errs.TooLarge},
	} {
		if cmd, err := Decode(c.b); errs.KindOf(err) != c.kind {
			t.Errorf("%s: got %+v %v, want %v", c.name, cmd, err, c.kind)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range samples() {
		f.Add(Encode(c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cmd, err := Decode(b)
		if err != nil {
			return
		}
		if !bytes.Equal(Encode(cmd)[1:], b[1:]) {
			t.Fatalf("%+v does not encode to what it was decoded from", cmd)
		}
		s := New()
		s.Apply(1, FormCell{Cell: 1})
		s.Apply(2, cmd)
		if err := s.View().Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRestore(f *testing.F) {
	s, g := New(), &commander{rnd: rand.New(rand.NewSource(1))}
	for i := range uint64(300) {
		s.Apply(i+1, g.next(s.View()))
		if i%60 == 0 {
			f.Add(snapshotBytes(f, s))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reseal(b)
		s, err := Restore(bytes.NewReader(b))
		if err != nil {
			return
		}
		if !bytes.Equal(snapshotBytes(t, s), b) {
			t.Fatal("a restored state gives another snapshot")
		}
		g := &commander{rnd: rand.New(rand.NewSource(2))}
		for range 20 {
			s.Apply(s.View().Applied()+1, g.next(s.View()))
		}
	})
}

// reseal makes the checksums of a mutated snapshot right, so that the fuzzer
// gets past them to the records.
func reseal(b []byte) {
	le := binary.LittleEndian
	if len(b) < 16 {
		return
	}
	le.PutUint32(b[12:], crc32.Checksum(b[:12], stripe.Castagnoli))
	for b = b[16:]; len(b) >= frameHeader+4; {
		n := frameHeader + int(le.Uint32(b[4:]))
		if n > len(b)-4 {
			return
		}
		le.PutUint32(b[n:], crc32.Checksum(b[:n], stripe.Castagnoli))
		b = b[n+4:]
	}
}

func TestAnyFlippedBitOfASnapshotIsFound(t *testing.T) {
	s := history(t, 5, 300, func(*State, Command, Result) {})
	b := snapshotBytes(t, s)
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 1 << (i % 8)
		if _, err := Restore(bytes.NewReader(bad)); errs.KindOf(err) != errs.Corrupt && errs.KindOf(err) != errs.Version {
			t.Fatalf("byte %d of %d flipped: %v", i, len(b), err)
		}
	}
	for _, n := range []int{0, 5, 16, len(b) / 2, len(b) - 1} {
		if _, err := Restore(bytes.NewReader(b[:n])); errs.KindOf(err) != errs.Corrupt {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := Restore(bytes.NewReader(append(bytes.Clone(b), 0))); errs.KindOf(err) != errs.Corrupt {
		t.Fatal("a byte after the end went unseen")
	}
}

// TestARestoredStateIsWholeWhateverTheBytesSaid changes bytes under right
// checksums: what Restore accepts holds every invariant and can be used.
func TestARestoredStateIsWholeWhateverTheBytesSaid(t *testing.T) {
	rnd, accepted := rand.New(rand.NewSource(4)), 0
	for seed := range int64(3) {
		b := snapshotBytes(t, history(t, seed, 300, func(*State, Command, Result) {}))
		for range 1000 {
			bad := bytes.Clone(b)
			for range 1 + rnd.Intn(2) {
				bad[16+rnd.Intn(len(b)-16)] ^= byte(1 << rnd.Intn(8))
			}
			reseal(bad)
			s, err := Restore(bytes.NewReader(bad))
			if err != nil {
				continue
			}
			accepted++
			if err := s.View().Check(); err != nil {
				t.Fatalf("seed %d: Restore accepted a state that is broken: %v", seed, err)
			}
			g := &commander{rnd: rnd}
			for range 10 {
				s.Apply(s.View().Applied()+1, g.next(s.View()))
			}
		}
	}
	if accepted < 25 {
		t.Errorf("%d of 3000 changed snapshots were accepted: the test tests little", accepted)
	}
}
