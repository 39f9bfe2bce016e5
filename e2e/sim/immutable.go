package sim

import (
	"slices"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// P5: a snapshot's bytes never change, whatever is written, cleaned, rebuilt, rolled
// back or deleted, and through any crash. What it holds follows from the history at
// the moment at which the log makes it: the stripes up to its seq, all of them
// flushed. Every read of it, and of the branches that begin as it, is held against
// that. A segment that was freed while it was needed can't be read.

// snapshot is what a snapshot must hold for ever.
type snapshot struct {
	id     layout.SnapshotID
	of     *history
	name   string
	seq    layout.Seq
	want   []uint64 // versions
	hidden bool     // removed, while something may stand on it yet
	gone   bool
}

// froze notes a snapshot that the log made.
func (s *Sim) froze(v *state.View, e state.SnapshotCreated) {
	f, _ := v.SnapshotByID(e.Snapshot)
	h := s.volume(f.Volume)
	s.note("snapshot", uint64(f.ID), uint64(f.Volume), uint64(f.Seq), uint64(f.Epoch))
	n := &snapshot{id: f.ID, of: h, name: f.Name, seq: f.Seq, want: make([]uint64, s.blocks)}
	for b := range n.want {
		n.want[b] = h.at(layout.BlockNumber(b), f.Epoch, f.Seq)
	}
	s.frozen[f.ID] = n
	w := h.writers[f.Epoch]
	if f.Seq > h.cuts[f.Epoch] && (w == nil || f.Seq > w.flushed) {
		s.fail("P5: snapshot %d of volume %d holds seq %d of epoch %d, which is not flushed", f.ID, h.id, f.Seq, f.Epoch)
	}
	promised := h.promised[f.Name]
	if r, ok := v.Volume(f.Volume); ok && r.Holder == 0 && w != nil {
		// Its writer is gone: what was acknowledged and not flushed may be too.
		promised = min(promised, w.flushed)
	}
	if f.Seq < promised && h.promisedIn[f.Name] == f.Epoch {
		s.fail("P5: snapshot %d of volume %d ends at seq %d, but seq %d was acknowledged before it was asked for", f.ID, h.id, f.Seq, promised)
	}
}

// asksForSnapshot notes what a snapshot that somebody asks for now must hold.
func (h *history) asksForSnapshot(name string) {
	for _, e := range sortedIDs(h.writers) {
		h.promised[name], h.promisedIn[name] = h.writers[e].acked, e
	}
}

// keeps checks that a recovery cut nothing off that a snapshot holds.
func (h *history) keeps(e layout.Epoch, cut layout.Seq) {
	for _, id := range sortedIDs(h.s.frozen) {
		if n := h.s.frozen[id]; n.of == h && n.seq > cut && !n.gone {
			h.s.fail("P5: volume %d: epoch %d starts after seq %d, but snapshot %d holds seq %d", h.id, e, cut, id, n.seq)
		}
	}
}

// branched makes the history of a volume that began as a snapshot.
func (s *Sim) branched(v *state.View, id layout.VolumeID, from layout.SnapshotID) {
	r, _ := v.Volume(id)
	n := s.frozen[from]
	s.note("branch", uint64(id), uint64(from))
	h := newHistory(s, id, r.Name)
	h.stamp = n.of.stamp
	h.cuts[r.Epoch] = n.seq // all before is the snapshot's
	for b, number := range n.want {
		if number == 0 {
			continue
		}
		h.blocks[b] = []version{{number: number}}
		if s.linear != nil && b < linearBlocks { // the register begins with what the branch inherits
			s.linear.Write(0, blockName(id, layout.BlockNumber(b)), number).Done(0)
		}
	}
	s.volumes = append(s.volumes, h)
}

// readSnapshot reads a part of a snapshot, and holds it against what it must be.
func (s *Sim) readSnapshot(f *simclient.Fiber, v *simclient.Volume, first layout.BlockNumber, count layout.BlockCount) bool {
	n := s.frozen[v.Snapshot()]
	data, err := v.Read(f, first, count)
	if !f.Alive() {
		return false
	}
	s.note("read snapshot", uint64(n.id), uint64(first), uint64(count), uint64(errs.KindOf(err)))
	if err != nil {
		if kind := errs.KindOf(err); kind == errs.NotFound || kind == errs.Corrupt && len(s.hurt) == 0 || s.healed {
			s.fail("P5: snapshot %d of volume %d can't be read: %v", n.id, n.of.id, err)
		}
		return true
	}
	s.checkFrozenBytes(n, first, data)
	return true
}

func (s *Sim) checkFrozenBytes(n *snapshot, first layout.BlockNumber, data []byte) {
	for i := 0; i < len(data); i += layout.BlockSize {
		b := first + layout.BlockNumber(i/layout.BlockSize)
		got, ok := stampOf(data[i:i+layout.BlockSize], n.of.stamp, b)
		if want := n.want[b]; !ok || got != want {
			s.fail("P5: snapshot %d of volume %d (seq %d), block %d: got version %d (whole %v), want %d; history %v",
				n.id, n.of.id, n.seq, b, got, ok, want, n.of.blocks[b])
			return
		}
	}
}

// standing lists the snapshots of a family that can be opened by name.
func (s *Sim) standing(name string) (list []*snapshot) {
	for _, id := range sortedIDs(s.frozen) {
		if n := s.frozen[id]; n.of.name == name && !n.hidden {
			list = append(list, n)
		}
	}
	return list
}

// unfroze follows what the log did to snapshots and branches.
func (s *Sim) unfroze(v *state.View, e state.Event) {
	switch e := e.(type) {
	case state.SnapshotCreated:
		s.froze(v, e)
	case state.SnapshotRemoved:
		s.frozen[e.Snapshot].hidden = true
		s.rare("a snapshot removed")
	case state.VolumeRemoved:
		s.volume(e.Volume).removed = true
	case state.SnapshotGone:
		s.frozen[e.Snapshot].gone = true
	case state.VolumeCloned:
		s.branched(v, e.Volume, e.Snapshot)
		s.rare("a clone made")
	case state.VolumeRolledBack:
		s.branched(v, e.Volume, e.Snapshot)
		s.rare("a volume rolled back")
		older := slices.ContainsFunc(s.standing(s.volume(e.Volume).name), func(n *snapshot) bool { return n.id < e.Snapshot })
		if older {
			s.rare("a rollback under an old snapshot")
		}
	}
}
