package reconcile

import (
	"strake/internal/layout"
	"strake/meta/state"
)

// flattenShare is how much of what a branch would copy must come back for it to be
// flattened unasked: a quarter.
const flattenShare = 4

// stand is what the weighing of a branch against its origin depends on.
type stand struct {
	origin    layout.SnapshotID
	root      layout.RootNumber
	snapshots int // of the origin's family: others may need the same
}

// flattens has a branch flattened that is all that stands on a snapshot which people
// removed, once what only the snapshot holds is worth the copy: what a rollback left
// behind, and what the branch has overwritten since. Nothing else gives it back.
func (pl *plan) flattens(page []state.Volume) {
	for i := range page {
		v := &page[i]
		f, ok := pl.view.SnapshotByID(v.Origin)
		if v.Origin == 0 || !ok || !f.Removed || v.Flat != 0 || v.Flattening {
			delete(pl.p.cleaning.weighed, v.ID)
			continue
		}
		now := stand{v.Origin, v.Root.Number, pl.view.CountSnapshots(f.Family)}
		if pl.p.cleaning.weighed[v.ID] == now {
			continue
		}
		if branches, read := pl.view.StandOn(f.ID); len(branches) > 1 || read {
			continue
		}
		pl.p.cleaning.weighed[v.ID] = now
		copied := uint64((v.Root.Live-min(v.Root.Live, v.Root.Own))*layout.BlockSize) / uint64(v.Geometry.K) * uint64(v.Geometry.Shards())
		if held := pl.view.Holds(&f); held >= copied+max(copied/flattenShare, pl.p.limits.GarbageLeast) {
			pl.add(Flatten{Volume: v.ID})
		}
	}
}
