package reconcile

import (
	"fmt"
	"maps"

	"strake/internal/layout"
	"strake/meta/state"
)

// garbageShare is the part of what a volume stores that, once it is garbage, makes a
// janitor clean it; the janitor judges for itself how far.
const garbageShare = 10 // a tenth

// cleaning is what is known of volumes that janitors clean.
type cleaning struct {
	idle  sightings[layout.VolumeID]     // that want it and have no writer
	ended map[layout.VolumeID]bool       // cleaned since the last plan
	left  map[layout.VolumeID]cleanState // as their last cleaning left them: nothing more is to be had
	after string                         // a name: where the next plan goes on
	// outlived are the seqs of the newest snapshots that were removed in this term as
	// the oldest of their branches. What is not known here is not cleaned: a leader that
	// is new knows with the next removal.
	outlived map[layout.VolumeID]state.Outlived
	// weighed are branches of removed snapshots that were left as they are, for now.
	weighed map[layout.VolumeID]stand
}

// cleanState tells whether anything changed that cleaning depends on.
type cleanState struct {
	root       layout.RootNumber
	last       layout.Seq
	held       layout.Held // a snapshot more holds back more, one less may not
	flattening bool
}

func (c cleanState) stands(now cleanState) bool {
	return c.root == now.root && c.last == now.last && c.held.Newest <= now.held.Newest && c.held.Outlived == now.held.Outlived && c.flattening == now.flattening
}

func newCleaning() cleaning {
	return cleaning{idle: newSightings[layout.VolumeID](), ended: map[layout.VolumeID]bool{}, left: map[layout.VolumeID]cleanState{},
		outlived: map[layout.VolumeID]state.Outlived{}, weighed: map[layout.VolumeID]stand{}}
}

// SnapshotRemoved notes that a snapshot was removed, which hides one that something
// stands on. view is the state since.
func (p *Planner) SnapshotRemoved(view *state.View, f *state.Frozen) {
	if !view.Oldest(f) {
		return
	}
	o := p.cleaning.outlived[f.Volume]
	if o.Any = max(o.Any, f.Seq); f.Kind == state.TagSnapshot {
		o.Tag = max(o.Tag, f.Seq)
	}
	p.cleaning.outlived[f.Volume] = o
}

// Held says what snapshots hold of a volume.
func (p *Planner) Held(view *state.View, id layout.VolumeID) layout.Held {
	return view.HeldOf(id, p.cleaning.outlived[id])
}

// cleans hands volumes to janitors that hold garbage, or are to be flattened, while
// nobody writes them: a writer cleans its own volume. One that was cleaned is left
// alone until it is written again or a snapshot of it goes: what the last cleaning
// left can't be had. So is one whose writer was gone before its first root: its janitor
// counts.
func (pl *plan) cleans() {
	up := pl.upServers()
	if len(up) == 0 {
		return
	}
	c := &pl.p.cleaning
	for id := range c.ended {
		if v, ok := pl.view.Volume(id); ok {
			c.left[id] = pl.cleanState(&v)
		}
		delete(c.ended, id)
	}
	page, more := pl.view.Volumes("", c.after, pl.p.limits.Scan)
	pl.flattens(page)
	for i := range page {
		v := &page[i]
		c.after = v.Tenant + "/" + v.Name
		reason := pl.wantsCleaning(v)
		if reason == "" || pl.p.cleaning.idle.see(v.ID, pl.now) < pl.p.limits.CleanAfter {
			continue
		}
		t := Clean{Volume: v.ID, Reason: reason}
		t.Server = up[(uint64(v.ID)+uint64(pl.failures(t)))%uint64(len(up))] // another one after a failure
		pl.add(t)
	}
	if !more {
		c.after = ""
		c.idle.passed()
		maps.DeleteFunc(c.outlived, func(id layout.VolumeID, _ state.Outlived) bool {
			_, ok := pl.view.Volume(id)
			return !ok
		})
	}
}

func (pl *plan) cleanState(v *state.Volume) cleanState {
	return cleanState{v.Root.Number, v.LastSeq, pl.p.Held(pl.view, v.ID), v.Flattening}
}

// wantsCleaning says why a janitor should look after a volume; empty: it should not.
func (pl *plan) wantsCleaning(v *state.Volume) string {
	if v.Holder != 0 || v.Unsealed > 0 || !v.Closed {
		return ""
	}
	garbage, least := v.Garbage(), pl.p.limits.GarbageLeast
	uncounted := !v.Counted() && v.StoredBytes >= v.RetiredBytes+least
	dirty := uncounted || garbage >= least && garbage >= v.StoredBytes/garbageShare
	switch left, cleaned := pl.p.cleaning.left[v.ID]; {
	case !dirty && !v.Flattening:
		delete(pl.p.cleaning.left, v.ID)
		return ""
	case cleaned && left.stands(pl.cleanState(v)):
		return ""
	case v.Flattening:
		return "it is to be flattened"
	case uncounted:
		return fmt.Sprintf("nobody has counted how much of the %s that it stores is garbage", layout.SizeText(v.StoredBytes))
	}
	return fmt.Sprintf("%s of the %s that it stores are garbage", layout.SizeText(garbage), layout.SizeText(v.StoredBytes))
}
