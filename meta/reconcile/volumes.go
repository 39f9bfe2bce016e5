package reconcile

import (
	"fmt"

	"strake/internal/layout"
	"strake/meta/state"
)

// recoveries hands volumes that lost their writer to janitors, one at a time
// each. A writer that comes back within RecoverAfter recovers by itself.
func (pl *plan) recoveries() {
	up := pl.upServers()
	page, more := pl.view.Unrecovered(pl.p.orphanedAfter, pl.p.limits.Scan)
	for _, v := range page {
		pl.p.orphanedAfter = v.ID
		if age := pl.p.orphaned.see(v.ID, pl.now); age < pl.p.limits.RecoverAfter || len(up) == 0 {
			continue
		}
		t := Recover{Volume: v.ID, Reason: reason(&v)}
		t.Server = up[(uint64(v.ID)+uint64(pl.failures(t)))%uint64(len(up))] // another one after a failure
		pl.add(t)
	}
	if !more {
		pl.p.orphanedAfter = 0
		pl.p.orphaned.passed()
	}
}

func reason(v *state.Volume) string {
	if v.Undecided != "" {
		return "undecided: " + v.Undecided
	}
	return fmt.Sprintf("%d unsealed segments without a writer", v.Unsealed)
}

// upServers are the servers that can be asked, in id order.
func (pl *plan) upServers() (up []layout.ServerID) {
	for _, s := range pl.view.Servers() {
		if s.Up && !pl.silent(s.ID) {
			up = append(up, s.ID)
		}
	}
	return up
}

// silent tells whether a server that is up by the state is about to be marked down.
func (pl *plan) silent(id layout.ServerID) bool {
	h, heard := pl.p.heard[id]
	return heard && pl.now-h.last > pl.p.limits.DownAfter
}

// heard tells whether a server was heard lately, whatever the state says.
func (pl *plan) heard(id layout.ServerID) bool {
	h, heard := pl.p.heard[id]
	return heard && pl.now-h.last <= pl.p.limits.DownAfter
}

// purges ends removed volumes whose time is over. A new leader counts anew, so
// a volume is kept at least as long as was said.
func (pl *plan) purges() {
	page, more := pl.view.RemovedVolumes("", pl.p.removedAfter, pl.p.limits.Scan)
	for _, v := range page {
		pl.p.removedAfter = v.RemovedKey()
		if pl.p.removed.see(v.ID, pl.now) >= pl.p.limits.PurgeAfter && v.Holder == 0 {
			pl.add(Purge{Volume: v.ID})
		}
	}
	if !more {
		pl.p.removedAfter = ""
		pl.p.removed.passed()
	}
}

// digests hands tags without a digest to janitors. One that can't be read waits for its
// next try, and those after it have their turn.
func (pl *plan) digests() {
	up := pl.upServers()
	if len(up) == 0 {
		return
	}
	page := pl.view.Undigested(pl.p.undigestedAfter, pl.p.limits.Scan)
	for _, f := range page {
		pl.p.undigestedAfter = f.ID
		t := Digest{Snapshot: f.ID}
		t.Server = up[(uint64(f.ID)+uint64(pl.failures(t)))%uint64(len(up))] // another one after a failure
		pl.add(t)
	}
	if len(page) < pl.p.limits.Scan {
		pl.p.undigestedAfter = 0
	}
}
