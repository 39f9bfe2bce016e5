package state

import (
	"bytes"
	"math/rand"
	"reflect"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

func snapshotBytes(t testing.TB, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := s.Snapshot().WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("write snapshot: %d of %d bytes, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// atIndex gives the snapshot as if the last command had stood at index.
func atIndex(t testing.TB, s *State, index uint64) []byte {
	t.Helper()
	c := &State{t: s.t.clone()}
	c.t.applied = index
	return snapshotBytes(t, c)
}

// history applies random commands and calls each after every one.
func history(t *testing.T, seed int64, n int, each func(s *State, cmd Command, r Result)) *State {
	t.Helper()
	s, g := New(), &commander{rnd: rand.New(rand.NewSource(seed))}
	for i := range n {
		cmd := g.next(s.View())
		r := s.Apply(uint64(i+1), cmd)
		if r.Err != nil && errs.KindOf(r.Err) == errs.Internal {
			t.Fatalf("seed %d command %d %T%+v: %v", seed, i+1, cmd, cmd, r.Err)
		}
		each(s, cmd, r)
	}
	return s
}

const seeds, length = 6, 500

func TestInvariantsHoldAfterEachCommand(t *testing.T) {
	done := map[Type]int{}
	for seed := range int64(4 * seeds) {
		history(t, seed, length, func(s *State, cmd Command, r Result) {
			if r.Err == nil {
				done[cmd.Type()]++
			}
			if err := s.View().Check(); err != nil {
				t.Fatalf("seed %d index %d %T%+v: %v", seed, s.View().Applied(), cmd, cmd, err)
			}
		})
	}
	for typ := TypeFormCell; typ <= TypeFlattenVolume; typ++ {
		switch typ {
		case TypeCloseSession, TypeRemoveServer, TypeRestoreCell, TypeRecordMember, TypeRebalance:
			continue // not drawn
		}
		if done[typ] == 0 {
			t.Errorf("no command of type %d succeeded in any history: the test tests little", typ)
		}
	}
}

func TestEpochsOnlyGrowAndIdsAreNeverUsedAgain(t *testing.T) {
	for seed := range int64(seeds) {
		epochs, used := map[layout.VolumeID]layout.Epoch{}, map[any]bool{}
		fresh := func(id any) {
			if used[id] {
				t.Fatalf("seed %d: %T %v was handed out twice", seed, id, id)
			}
			used[id] = true
		}
		history(t, seed, length, func(s *State, cmd Command, r Result) {
			for _, e := range r.Events {
				switch e := e.(type) {
				case SegmentAllocated:
					fresh(e.Segment)
				case VolumeCreated:
					fresh(e.Volume)
				case VolumeCloned:
					fresh(e.Volume)
					v, _ := s.View().Volume(e.Volume)
					epochs[e.Volume] = v.Epoch // of its origin
				case VolumeRolledBack:
					fresh(e.Volume)
					v, _ := s.View().Volume(e.Volume)
					epochs[e.Volume] = v.Epoch
				case SnapshotCreated:
					fresh(e.Snapshot)
				case SessionOpened:
					fresh(e.Session)
				case LeaseTaken:
					if e.Epoch != epochs[e.Volume]+1 {
						t.Fatalf("seed %d: volume %d went from epoch %d to %d", seed, e.Volume, epochs[e.Volume], e.Epoch)
					}
					epochs[e.Volume] = e.Epoch
				}
			}
		})
	}
}

func TestASealNeverChanges(t *testing.T) {
	for seed := range int64(seeds) {
		seals := map[layout.SegmentID]Seal{}
		history(t, seed, length, func(s *State, cmd Command, r Result) {
			for _, e := range r.Events {
				if e, ok := e.(SegmentSealed); ok {
					seg, _ := s.View().Segment(e.Segment)
					if _, twice := seals[e.Segment]; twice {
						t.Fatalf("seed %d: segment %d was sealed twice", seed, e.Segment)
					}
					seals[e.Segment] = seg.Seal
				}
			}
			for id, was := range seals {
				if seg, ok := s.View().Segment(id); ok && !seg.Seal.equal(&was) {
					t.Fatalf("seed %d after %T: segment %d's seal changed", seed, cmd, id)
				}
			}
		})
	}
}

func TestARefusedCommandChangesNothing(t *testing.T) {
	for seed := range int64(4) {
		var before []byte
		history(t, seed, length/2, func(s *State, cmd Command, r Result) {
			now := atIndex(t, s, 0)
			if r.Err != nil && before != nil && !bytes.Equal(before, now) {
				t.Fatalf("seed %d: %T%+v was refused (%v) and changed the state", seed, cmd, cmd, r.Err)
			}
			before = now
		})
	}
}

func TestARepeatedCommandGivesItsFirstResultAndChangesNothing(t *testing.T) {
	for seed := range int64(4) {
		s, g := New(), &commander{rnd: rand.New(rand.NewSource(seed))}
		for i := uint64(1); i < length; i += 2 {
			cmd := g.next(s.View())
			first := s.Apply(i, cmd)
			before := atIndex(t, s, 0)
			again := s.Apply(i+1, cmd)
			switch cmd.Type() {
			case TypeRegisterServer, TypeFreeSegments, TypeEndReservation:
				continue // a new life each time; freeing goes on; what ended is gone
			}
			if first.Err != nil {
				continue
			}
			if again.Err != nil || again.Session != first.Session || again.Volume != first.Volume || again.Epoch != first.Epoch || !reflect.DeepEqual(again.Segments, first.Segments) {
				t.Fatalf("seed %d: %T%+v gave %+v, then %+v", seed, cmd, cmd, first, again)
			}
			if len(again.Events) > 0 || !bytes.Equal(before, atIndex(t, s, 0)) {
				t.Fatalf("seed %d: the repeat of %T%+v changed the state: %+v", seed, cmd, cmd, again.Events)
			}
		}
	}
}

func TestTheSameLogGivesTheSameStateAndResults(t *testing.T) {
	for seed := range int64(4) {
		other := New()
		s := history(t, seed, length, func(s *State, cmd Command, r Result) {
			decoded, err := Decode(Encode(cmd))
			if err != nil {
				t.Fatalf("%T%+v: %v", cmd, cmd, err)
			}
			if got := other.Apply(s.View().Applied(), decoded); !reflect.DeepEqual(got, r) {
				t.Fatalf("seed %d: %T%+v gave %+v, replayed %+v", seed, cmd, cmd, r, got)
			}
		})
		if !bytes.Equal(snapshotBytes(t, s), snapshotBytes(t, other)) {
			t.Fatalf("seed %d: equal logs gave different snapshots", seed)
		}
	}
}

func TestARestoredStateGoesOnLikeTheFirst(t *testing.T) {
	for seed := range int64(4) {
		var restored *State
		history(t, seed, length, func(s *State, cmd Command, r Result) {
			index := s.View().Applied()
			if restored != nil {
				if got := restored.Apply(index, cmd); !reflect.DeepEqual(got, r) {
					t.Fatalf("seed %d: %T%+v gave %+v, after a restore %+v", seed, cmd, cmd, r, got)
				}
			}
			if index%100 != 0 {
				return
			}
			b := snapshotBytes(t, s)
			var err error
			if restored, err = Restore(bytes.NewReader(b)); err != nil {
				t.Fatalf("seed %d index %d: %v", seed, index, err)
			}
			if err := restored.View().Check(); err != nil || !bytes.Equal(b, snapshotBytes(t, restored)) {
				t.Fatalf("seed %d index %d: the restored state differs (%v)", seed, index, err)
			}
		})
	}
}

func TestASnapshotIsWrittenWhileCommandsAreApplied(t *testing.T) {
	s, g := New(), &commander{rnd: rand.New(rand.NewSource(3))}
	done := make(chan []byte, length)
	var want [][]byte
	for i := uint64(1); i <= length; i++ {
		s.Apply(i, g.next(s.View()))
		if i%50 == 0 {
			want = append(want, snapshotBytes(t, s))
			snapshot := s.Snapshot()
			go func() {
				var b bytes.Buffer
				snapshot.WriteTo(&b)
				done <- b.Bytes()
			}()
		}
	}
	for range want {
		got, found := <-done, false
		for _, w := range want {
			found = found || bytes.Equal(got, w)
		}
		if !found {
			t.Fatal("a snapshot that was written beside Apply is none of the states that were")
		}
	}
}
