package state

import (
	"fmt"
	"testing"

	"strake/internal/layout"
)

// frozenVolume gives a cell with one volume of n segments, 256 MiB of data each,
// and as many snapshots.
func frozenVolume(t testing.TB, segments, snapshots int) *State {
	s := grow(t, 20, 1, segments)
	v, _ := s.View().Volume(1)
	for i := range snapshots {
		c := CreateSnapshots{ID: 1<<50 + CommandID(i), Items: []SnapshotItem{{Volume: VolumeRef{ID: 1}, Name: fmt.Sprintf("old-%d", i), Epoch: v.Epoch, Seq: v.LastSeq}}}
		if r := s.Apply(s.View().Applied()+1, c); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return s
}

// TestASnapshotIsOneEntryThatReadsNoSegment counts what a create and a removal
// allocate: the same for a volume of 1 GiB and of 1 TiB, with 10 snapshots and
// with 10,000.
func TestASnapshotIsOneEntryThatReadsNoSegment(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	allocated := func(segments, snapshots int) float64 {
		s := frozenVolume(t, segments, snapshots)
		id := CommandID(1 << 51)
		return testing.AllocsPerRun(100, func() { makeAndRemove(t, s, &id) })
	}
	small, large, many := allocated(8, 10), allocated(4096, 10), allocated(8, 10_000)
	if large > 1.5*small+20 || many > 1.5*small+20 {
		t.Errorf("1 GiB: %.0f allocations, 1 TiB: %.0f, 10,000 snapshots: %.0f", small, large, many)
	}
}

func makeAndRemove(t testing.TB, s *State, id *CommandID) {
	v, _ := s.View().Volume(1)
	for _, c := range []Command{
		CreateSnapshots{ID: *id + 1, Items: []SnapshotItem{{Volume: VolumeRef{ID: 1}, Name: "s", Epoch: v.Epoch, Seq: v.LastSeq}}},
		RemoveSnapshot{ID: *id + 2, Volume: VolumeRef{ID: 1}, Name: "s"},
	} {
		if r := s.Apply(s.View().Applied()+1, c); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	*id += 2
}

// BenchmarkSnapshot is a create with its removal in the state machine alone.
func BenchmarkSnapshot(b *testing.B) {
	for _, c := range []struct{ segments, snapshots int }{{8, 10}, {4096, 10}, {4096, 10_000}} {
		b.Run(fmt.Sprintf("GiB=%d/snapshots=%d", c.segments/4, c.snapshots), func(b *testing.B) {
			s := frozenVolume(b, c.segments, c.snapshots)
			id := CommandID(1 << 51)
			for b.Loop() {
				makeAndRemove(b, s, &id)
			}
		})
	}
}

// BenchmarkOpenSnapshot is what the metadata service does for a reader.
func BenchmarkOpenSnapshot(b *testing.B) {
	for _, c := range []struct{ segments, snapshots int }{{8, 10}, {4096, 10}, {4096, 10_000}} {
		b.Run(fmt.Sprintf("GiB=%d/snapshots=%d", c.segments/4, c.snapshots), func(b *testing.B) {
			v := frozenVolume(b, c.segments, c.snapshots).View()
			for b.Loop() {
				if _, err := v.OpenSnapshot(layout.SnapshotID(c.snapshots)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPurge removes a volume for ever that has 10,000 snapshots: one entry.
func BenchmarkPurge(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := frozenVolume(b, 4096, 10_000)
		v, _ := s.View().Volume(1)
		if r := s.Apply(s.View().Applied()+1, ExpireSession{Session: v.Holder}); r.Err != nil {
			b.Fatal(r.Err)
		}
		b.StartTimer()
		r := s.Apply(s.View().Applied()+1, RemoveVolume{ID: 1 << 55, Volume: VolumeRef{ID: 1}, Now: true})
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
