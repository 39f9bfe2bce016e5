package write

import (
	"time"

	"strake/internal/layout"
)

const (
	rateSlot  = time.Second
	rateSlots = 60
	// recentSlots are those of the latest rate.
	recentSlots = 10
)

// rate counts the bytes of shard length that were used in the last minute, by
// the second.
type rate struct {
	slots [rateSlots]layout.ShardOffset
	at    int64 // number of the slot being filled
	sum   layout.ShardOffset
	begun int64 // number of the first slot with something in it
	any   bool
}

func (r *rate) add(now time.Duration, n layout.ShardOffset) {
	r.turn(now)
	if !r.any {
		r.begun, r.any = r.at, true
	}
	r.slots[r.at%rateSlots] += n
	r.sum += n
}

// tenSeconds is what the next ten seconds take: as much as the last ten, or as
// ten of the last minute did on average, whichever is more. A writer that is
// younger than that is taken to go on as it began.
func (r *rate) tenSeconds(now time.Duration) layout.ShardOffset {
	r.turn(now)
	if !r.any {
		return 0
	}
	age := r.at - r.begun + 1
	var recent layout.ShardOffset
	for i := range min(age, recentSlots) {
		recent += r.slots[(r.at-i)%rateSlots]
	}
	return max(per(recent, min(age, recentSlots)), per(r.sum, min(age, rateSlots)))
}

// per is what ten seconds take of what so many slots took.
func per(n layout.ShardOffset, slots int64) layout.ShardOffset {
	return n * recentSlots / layout.ShardOffset(slots)
}

func (r *rate) turn(now time.Duration) {
	at := int64(now / rateSlot)
	for i := 0; r.at < at && i < rateSlots; i++ {
		r.at++
		r.sum -= r.slots[r.at%rateSlots]
		r.slots[r.at%rateSlots] = 0
	}
	r.at = max(r.at, at)
	if r.sum == 0 {
		r.any = false // a writer that paused for a minute begins anew
	}
}
