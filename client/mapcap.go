package client

import (
	"sync"
	"sync/atomic"
)

// mapAccount keeps what the extent maps of a cell's volumes hold in memory under one
// cap. While all of them together are below it each takes what it likes. Else who has
// more than its share, the cap over the number of volumes, gives pages up: a volume at
// its next look at its map, or, where it is idle, when another needs the room. The zero
// value is ready.
type mapAccount struct {
	total atomic.Int64 // bytes, of all volumes

	mu      sync.Mutex
	volumes map[*Volume]bool // guarded by mu: those that were noted
}

// note takes in what a volume's map holds now, in bytes. Called with v.mu held.
func (a *mapAccount) note(v *Volume, bytes int64) {
	if v.mapGone || bytes == v.mapHeld {
		return
	}
	if v.mapHeld == 0 {
		a.mu.Lock()
		if a.volumes == nil {
			a.volumes = map[*Volume]bool{}
		}
		a.volumes[v] = true
		a.mu.Unlock()
	}
	a.total.Add(bytes - v.mapHeld)
	v.mapHeld = bytes
}

// forget takes a volume out that is closed.
func (a *mapAccount) forget(v *Volume) {
	v.mu.Lock()
	a.total.Add(-v.mapHeld)
	v.mapHeld, v.mapGone = 0, true
	v.mu.Unlock()
	a.mu.Lock()
	delete(a.volumes, v)
	a.mu.Unlock()
}

// share is what each volume may keep while the cap is reached, in bytes.
func (a *mapAccount) share(limit int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return limit / int64(max(1, len(a.volumes)))
}

// evict keeps the maps' pages under their cap. Called with v.mu held.
func (v *Volume) evict() {
	a, limit := &v.cell.maps, v.cell.cfg.MapCap
	a.note(v, v.tree.MemoryBytes())
	if a.total.Load() <= limit {
		return
	}
	share := a.share(limit)
	v.shrink(share)
	if a.total.Load() > limit {
		a.shrinkOthers(v, share)
	}
}

// shrink gives up pages of a map that has more than its share: as many as there are
// too many in all, and an eighth of the cap, so that this is not done at each read.
// Called with v.mu held.
func (v *Volume) shrink(share int64) {
	a, limit := &v.cell.maps, v.cell.cfg.MapCap
	if v.mapGone || v.mapHeld <= share/8*7 {
		return
	}
	v.tree.Evict(max(share/8*7, v.mapHeld-(a.total.Load()-limit)-limit/8))
	a.note(v, v.tree.MemoryBytes())
}

// shrinkOthers shrinks the maps of volumes but one. What is in use just now is left
// out: it looks by itself, and waiting for it could go round in a circle.
func (a *mapAccount) shrinkOthers(but *Volume, share int64) {
	a.mu.Lock()
	var idle []*Volume
	for v := range a.volumes {
		if v != but && v.mu.TryLock() {
			idle = append(idle, v)
		}
	}
	a.mu.Unlock()
	for _, v := range idle {
		if a.total.Load() > v.cell.cfg.MapCap {
			v.shrink(share)
		}
		v.mu.Unlock()
	}
}
