package limping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strake/internal/layout"
)

// Look judges the devices that serve, in the order of their ids, and gives the
// verdicts that are new.
func (j *Judge) Look(devices []Device, now time.Duration) (list []Verdict) {
	j.meet(devices, now)
	heard := j.credible(now)
	for _, id := range j.order {
		r := j.devices[id]
		parts := r.against(heard, &j.limits)
		switch {
		case !r.limps && (len(parts) >= j.limits.Witnesses || r.slow >= j.limits.OwnAlone):
			j.fell(r, parts, now)
			list = append(list, Verdict{id, true, r.why})
		case r.limps && j.rose(r, len(parts) > 0, now):
			list = append(list, Verdict{id, false, fmt.Sprintf("it was quick, and nobody complained, for %v", now-r.calm)})
		}
	}
	return list
}

// meet takes in which devices there are.
func (j *Judge) meet(devices []Device, now time.Duration) {
	j.order = j.order[:0]
	for _, d := range devices {
		r := j.devices[d.ID]
		if r == nil {
			r = &record{words: map[uint64]said{}, upAt: -j.limits.Forget}
			j.devices[d.ID] = r
			if d.Limps { // by the last leader's judgement
				r.limps, r.calm, r.hold, r.why = true, now, j.limits.Hold, "it did when this leader took over"
			}
		}
		r.server = d.Server
		j.order = append(j.order, d.ID)
	}
	slices.Sort(j.order)
	maps.DeleteFunc(j.devices, func(id layout.DeviceID, _ *record) bool {
		_, there := slices.BinarySearch(j.order, id)
		return !there
	})
}

// credible forgets old words, and tells who is to be heard: whoever blames more
// than a quarter of the devices is not.
func (j *Judge) credible(now time.Duration) map[uint64]bool {
	blames := map[uint64]int{}
	for _, r := range j.devices {
		maps.DeleteFunc(r.words, func(_ uint64, w said) bool { return now-w.at > j.limits.Fresh })
		for witness := range r.words {
			blames[witness]++
		}
	}
	heard := map[uint64]bool{}
	for witness, n := range blames {
		heard[witness] = n <= max(1, len(j.order)/4)
	}
	return heard
}

// against gives what speaks against a device, a part for each witness.
func (r *record) against(heard map[uint64]bool, l *Limits) (parts []string) {
	if r.slow >= l.OwnStreak {
		parts = append(parts, r.slowText)
	}
	for _, witness := range slices.Sorted(maps.Keys(r.words)) {
		if w := r.words[witness]; heard[witness] {
			parts = append(parts, fmt.Sprintf("session %d: reads take %v, those of others %v", witness, round(w.Took), round(w.Others)))
		}
	}
	return parts
}

// fell makes a device one that limps.
func (j *Judge) fell(r *record, parts []string, now time.Duration) {
	if now-r.upAt >= j.limits.Forget {
		r.hold = 0
	}
	r.hold = min(max(2*r.hold, j.limits.Hold), j.limits.MostHold)
	r.limps, r.calm, r.quick, r.why = true, now, 0, strings.Join(parts, "; ")
}

// rose tells whether a device that limps is up again, and makes it so.
func (j *Judge) rose(r *record, blamed bool, now time.Duration) bool {
	unmeasured := now-r.measuredAt > j.limits.Fresh // by a server that measures nothing
	if blamed || r.slow > 0 || r.quick < j.limits.Quick && !unmeasured {
		r.calm = now
	}
	if now-r.calm < r.hold {
		return false
	}
	r.limps, r.upAt, r.why = false, now, ""
	return true
}
