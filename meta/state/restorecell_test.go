package state

import (
	"bytes"
	"encoding/hex"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

// TestARestoredStateUsesNothingTwice: over random histories, after RestoreCell every
// invariant holds, nobody holds a lease, and all ids and epochs lie beyond the old.
func TestARestoredStateUsesNothingTwice(t *testing.T) {
	for seed := int64(1); seed <= 40; seed++ {
		g := &commander{rnd: rand.New(rand.NewSource(seed))}
		s := New()
		for i := uint64(1); i <= 300; i++ {
			s.Apply(i, g.next(s.View()))
		}
		before := s.View()
		if r := s.Apply(301, RestoreCell{}); r.Err != nil {
			t.Fatalf("seed %d: %v", seed, r.Err)
		}
		after := s.View()
		if err := after.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(after.Sessions()) != 0 || after.LastSegment() <= before.LastSegment() {
			t.Fatalf("seed %d: %d sessions, last segment %d, was %d", seed, len(after.Sessions()), after.LastSegment(), before.LastSegment())
		}
		cell := after.Cell()
		if cell.Unknown(before.LastSegment()) || !cell.Unknown(before.LastSegment()+1) || !cell.Unknown(after.LastSegment()) || cell.Unknown(after.LastSegment()+1) {
			t.Fatalf("seed %d: gaps %+v after segment %d", seed, cell.Restored, before.LastSegment())
		}
		page, _ := before.Volumes("", "", 0)
		for _, old := range page {
			v, ok := after.Volume(old.ID)
			if !ok || v.Holder != 0 || old.Epoch > 0 && v.Epoch <= old.Epoch {
				t.Fatalf("seed %d: volume %+v, was %+v", seed, v, old)
			}
		}
		var image bytes.Buffer
		if _, err := s.Snapshot().WriteTo(&image); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(&image); err != nil {
			t.Fatalf("seed %d: its snapshot is not read: %v", seed, err)
		}
	}
}

func TestAnOlderLifeOfADirectoryIsNotRecorded(t *testing.T) {
	s := New()
	at := uint64(0)
	apply := func(c Command) Result {
		at++
		return s.Apply(at, c)
	}
	record := func(dir, life uint64) errs.Kind {
		return errs.KindOf(apply(RecordMember{Member: Member{Address: "a:1", Directory: dir, Life: life}}).Err)
	}
	apply(FormCell{Cell: 1})
	for _, c := range []struct {
		dir, life uint64
		want      errs.Kind
	}{{5, 3, errs.OK}, {5, 4, errs.OK}, {5, 3, errs.Conflict}, {5, 4, errs.OK}, {6, 1, errs.OK}, {5, 9, errs.OK}, {0, 0, errs.OK}, {5, 1, errs.OK}} {
		if got := record(c.dir, c.life); got != c.want {
			t.Errorf("directory %d, life %d: got %v, want %v", c.dir, c.life, got, c.want)
		}
	}
}

// TestAcceptedLossIsOnRecord: who gave up what stays in the volume's record.
func TestAcceptedLossIsOnRecord(t *testing.T) {
	s := New()
	at := uint64(0)
	apply := func(c Command) Result {
		at++
		r := s.Apply(at, c)
		return r
	}
	apply(FormCell{Cell: 1})
	for n := byte(1); n <= 2; n++ {
		apply(RegisterServer{UUID: layout.UUID{n}, DataAddress: "d", ControlAddress: "c", Domain: string('a' + rune(n)),
			Devices: []DeviceReport{{UUID: layout.UUID{n, 1}, Total: 1 << 30, Incarnation: 1}}})
	}
	apply(CreateVolume{ID: 1, Name: "v", SizeBytes: 1 << 20})
	apply(OpenSession{ID: 2, Owner: "writer"})
	apply(AcquireLease{ID: 3, Session: 1, Volume: VolumeRef{ID: 1}})
	r := apply(AllocateSegments{ID: 4, Session: 1, Volume: 1, Epoch: 1, Count: 1,
		Placed: []PlacedSegment{{Geometry: layout.Geometry{K: 1, M: 1}, ShardLength: 1 << 20, Devices: []layout.DeviceID{1, 2}}}})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	apply(OpenSegments{Segments: r.Segments})
	apply(CloseSession{Session: 1})
	apply(OpenSession{ID: 5, Owner: "ada"})
	apply(AcquireLease{ID: 6, Session: 2, Volume: VolumeRef{ID: 1}})
	seals := []Seal{{Segment: r.Segments[0], Shards: make([]ShardSeal, 2)}}
	if r := apply(CloseEpoch{Volume: 1, Epoch: 2, Cut: 0, AcceptLoss: true, AcceptAfter: 3, Seals: seals}); errs.KindOf(r.Err) != errs.InvalidArgument {
		t.Fatalf("more was lost than accepted: %v", r.Err)
	}
	if r := apply(CloseEpoch{Volume: 1, Epoch: 2, Cut: 0, AcceptLoss: true, AtUnix: 99, Seals: seals}); r.Err != nil {
		t.Fatal(r.Err)
	}
	v, _ := s.View().Volume(1)
	if want := (Loss{Epoch: 2, By: "ada", AtUnix: 99}); len(v.Losses) != 1 || v.Losses[0] != want {
		t.Fatalf("got %+v, want %+v", v.Losses, want)
	}
	if err := s.View().Check(); err != nil {
		t.Error(err)
	}
}

// TestCloseEpochOfEarlierProgramsIsRead: it had no word of accepted loss.
func TestCloseEpochOfEarlierProgramsIsRead(t *testing.T) {
	old := CloseEpoch{ID: 1, Volume: 2, Epoch: 3, Undecided: "why"}
	b, err := hex.DecodeString("0113a40101020203030663776879")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if c := got.(CloseEpoch); c.ID != old.ID || c.Volume != old.Volume || c.Epoch != old.Epoch || c.Undecided != old.Undecided || c.AcceptLoss {
		t.Errorf("got %+v, want %+v", c, old)
	}
}
