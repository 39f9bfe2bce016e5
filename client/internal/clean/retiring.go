package clean

import (
	"maps"
	"slices"

	"strake/client/internal/extent"
	"strake/internal/layout"
)

// Retiring remembers data segments that hold no live block and that the metadata
// service has not retired yet: most were not sealed when it was asked.
type Retiring struct {
	waiting map[layout.SegmentID]bool
	asked   []layout.SegmentID // with the root under way
	empty   []layout.SegmentID // of those waiting: without a live block when the map was frozen
}

// MaxRetired bounds the segments of one list that a root retires; the next one takes
// the rest.
const MaxRetired = 1024

// NewRetiring begins with segments that may be empty.
func NewRetiring(ids ...layout.SegmentID) *Retiring {
	r := &Retiring{waiting: map[layout.SegmentID]bool{}}
	for _, id := range ids {
		r.waiting[id] = true
	}
	return r
}

// Add has the empty segments of a list wait.
func (r *Retiring) Add(list []extent.SegmentLive) {
	for _, s := range list {
		if s.Blocks == 0 {
			r.waiting[s.Segment] = true
		}
	}
}

// Look finds which of the segments that wait are empty now and take no more stripes:
// one that was on its way already may move into a segment that does, so that a root
// covers it and names it. need are pages that are missing for it.
func (r *Retiring) Look(tree *extent.Map, appendable func(layout.SegmentID) bool) (need []extent.PageRef) {
	r.empty = r.empty[:0]
	for _, id := range slices.Sorted(maps.Keys(r.waiting)) {
		n, missing := tree.Live(id)
		switch {
		case missing != nil:
			if len(need) == 0 || need[len(need)-1] != missing[0] {
				need = append(need, missing...)
			}
		case appendable(id): // the next root looks again
		case n > 0:
			delete(r.waiting, id) // the checkpoint that finds it empty tells
		case len(r.empty) < MaxRetired:
			r.empty = append(r.empty, id)
		}
	}
	return need
}

// Wish gives the segments that a root retires: those it found empty itself, and
// those of the last Look.
func (r *Retiring) Wish(found []layout.SegmentID) []layout.SegmentID {
	r.asked = append(slices.Clone(found), r.empty...)
	slices.Sort(r.asked)
	r.asked = slices.Compact(r.asked)
	return r.asked[:min(len(r.asked), MaxRetired)]
}

// Told takes in which of them are retired; the others wait.
func (r *Retiring) Told(gone []layout.SegmentID) {
	for _, id := range r.asked {
		r.waiting[id] = true
	}
	for _, id := range gone {
		delete(r.waiting, id)
	}
	r.asked = nil
}
