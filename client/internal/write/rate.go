package write

import (
	"time"

	"strake/internal/layout"
)

const (
	rateSlot  = 10 * time.Second
	rateSlots = 6 // a minute
)

// rate counts the bytes of shard length that were used in the last minute.
type rate struct {
	slots [rateSlots]layout.ShardOffset
	at    int64 // number of the slot being filled
	sum   layout.ShardOffset
}

func (r *rate) add(now time.Duration, n layout.ShardOffset) {
	r.turn(now)
	r.slots[r.at%rateSlots] += n
	r.sum += n
}

// tenSeconds is what ten seconds of the last minute took on average.
func (r *rate) tenSeconds(now time.Duration) layout.ShardOffset {
	r.turn(now)
	return r.sum / rateSlots
}

func (r *rate) turn(now time.Duration) {
	at := int64(now / rateSlot)
	for i := 0; r.at < at && i < rateSlots; i++ {
		r.at++
		r.sum -= r.slots[r.at%rateSlots]
		r.slots[r.at%rateSlots] = 0
	}
	r.at = max(r.at, at)
}
