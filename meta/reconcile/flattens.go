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
	branches  int // that stand on the origin
}

// flattens has the branches flattened that stand on a snapshot which people removed,
// once what only the snapshot holds is worth the copies: what a rollback left behind,
// and what the branches have overwritten since. Nothing else gives it back.
func (pl *plan) flattens(page []state.Volume) {
	for i := range page {
		v := &page[i]
		f, ok := pl.view.SnapshotByID(v.Origin)
		if v.Origin == 0 || !ok || !f.Removed || v.Flat != 0 || v.Flattening {
			delete(pl.p.cleaning.weighed, v.ID)
			continue
		}
		branches, read := pl.view.StandOn(f.ID)
		now := stand{v.Origin, v.Root.Number, pl.view.CountSnapshots(f.Family), len(branches)}
		if read || pl.p.cleaning.weighed[v.ID] == now {
			continue
		}
		pl.p.cleaning.weighed[v.ID] = now
		copied := uint64(0)
		for i := range branches {
			copied += copies(&branches[i])
		}
		if held := pl.view.Holds(&f); held >= copied+max(copied/flattenShare, pl.p.limits.GarbageLeast) {
			pl.add(Flatten{Volume: v.ID})
		}
	}
}

// copies is what the flattening of a branch stores anew, in bytes on all shards.
func copies(v *state.Volume) uint64 {
	if v.Purged || v.Flat != 0 {
		return 0
	}
	inherited := v.Root.Live - min(v.Root.Live, v.Root.Own)
	return inherited * layout.BlockSize / uint64(v.Geometry.K) * uint64(v.Geometry.Shards())
}
