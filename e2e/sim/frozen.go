package sim

import (
	"reflect"

	"strake/internal/layout"
	"strake/meta/state"
)

// Sealed is frozen: a seal never changes, and a segment that was sealed is never
// open again.

// sealing is how a segment ended.
type sealing struct {
	seal  state.Seal
	live  bool // by its own writer, not by a recovery
	isMap bool
}

func (s *Sim) freeze(v *state.View, id layout.SegmentID, live bool) {
	g, _ := v.Segment(id)
	s.note("sealed", uint64(id), uint64(g.Seal.First), uint64(g.Seal.Last), uint64(g.Seal.Count))
	if was := s.sealed[id]; was != nil {
		s.fail("frozen: segment %d is sealed twice", id)
	}
	s.sealed[id] = &sealing{g.Seal, live, g.Map}
	vol, _ := v.Volume(g.Volume)
	if h := s.volume(g.Volume); live && !g.Map && g.Seal.Last > h.writer(g.Epoch).flushed && vol.Epoch == g.Epoch && h.writers[g.Epoch].by != nil {
		s.fail("frozen: segment %d is sealed live up to seq %d, flushed is %d", id, g.Seal.Last, h.writer(g.Epoch).flushed)
	}
}

// checkFrozen compares all seals with how they were made.
func (s *Sim) checkFrozen(v *state.View) {
	for _, id := range sortedIDs(s.sealed) {
		g, ok := v.Segment(id)
		if !ok || g.State == state.Dropped {
			continue
		}
		if g.Unsealed() || !reflect.DeepEqual(g.Seal, s.sealed[id].seal) {
			s.fail("frozen: segment %d was sealed at seq %d, and is %v at seq %d", id, s.sealed[id].seal.Last, g.State, g.Seal.Last)
		}
	}
}
