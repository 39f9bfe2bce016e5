package mclock

import (
	"math/bits"
	"time"
)

// Cost is how long work keeps the device busy: a part for each operation and a
// part for each byte, of reads and of writes. It is not latency, most of which is
// waiting beside others. Nanoseconds.
type Cost struct {
	ReadOp, ReadByte, WriteOp, WriteByte float64
}

// firstCost is a middling flash device, until something was measured.
var firstCost = Cost{ReadOp: 20e3, ReadByte: 0.5, WriteOp: 20e3, WriteByte: 1}

// Bounds of what is believed: from memory to a disk that is about to die.
const (
	minOpCost, maxOpCost     = 100, 200e6
	minByteCost, maxByteCost = 0.005, 2e3
	maxBent                  = 4
)

const (
	// A lesson is at least so long, and so many requests: three times those under
	// way at its ends, which are counted in one lesson and were served in another.
	// Its length varies, because fair queueing mixes sizes in a fixed pattern:
	// lessons in step with it would all be alike.
	lessonTime     = 100 * time.Microsecond
	lessonRequests = 4
	lessonSpread   = 8
	// dither is by how much (in eighths) a lesson charges some sizes more and
	// others less than their cost. A fair mix never changes, and what never comes
	// apart can't be told apart; shares even out over a few lessons.
	dither = 4
	// learnRate is how much of an error one lesson corrects; maxStep bounds the
	// factor, so that one odd lesson (a stall) does little harm.
	learnRate = 0.3
	maxStep   = 1.5
	// straighten is how much of a size's own factor is given up with each lesson,
	// so that in the end the line explains what a line can.
	straighten = 1. / 512
)

// sizes is the number of sizes that are kept apart: up to 4 KiB, 8 KiB and so on
// to 16 MiB.
const sizes = 13

func sizeOf(bytes int) int { return min(bits.Len(uint(max(bytes-1, 0))>>12), sizes-1) }

// kindOf numbers reads and writes.
func kindOf(write bool) int {
	if write {
		return 1
	}
	return 0
}

// costs measures cost. While the device is saturated (as many at it as it takes,
// others waiting) the time that passes is the sum of the costs of what completes,
// whatever runs beside what. Such time is collected into a lesson; after each,
// the figures are corrected in proportion to their part in the prediction
// (normalized least mean squares in bounded factors, so that they stay positive).
// Time in which the device is not saturated teaches nothing of cost.
//
// Real devices are no straight line: many take the longer of an operation's time
// and the bytes' time. So each size has a factor of its own on top of the line,
// which is all that is known of sizes that were never seen.
type costs struct {
	op, byte [2]float64
	bent     [2][sizes]float64

	spent  time.Duration // saturated time of this lesson
	since  time.Duration // of the saturated time that runs; -1: none does
	did    [2][sizes]work
	number int
	drawn  uint32 // by a fixed rule: how long this lesson is and how it charges
}

// work is what completed of one kind and size in a lesson.
type work struct{ ops, bytes float64 }

// Capacity is what a device of that cost does in a second: of bytes in the longest
// quanta, or of the smallest requests, each of reads or writes, whichever is slower.
func (c Cost) Capacity() Rate {
	quantum := max(c.ReadOp+c.ReadByte*MaxQuantum, c.WriteOp+c.WriteByte*MaxQuantum)
	block := max(c.ReadOp+c.ReadByte*4096, c.WriteOp+c.WriteByte*4096)
	return Rate{Bytes: int64(MaxQuantum * float64(time.Second) / max(1, quantum)), Ops: int64(float64(time.Second) / max(1, block))}
}

func newCosts(first Cost) costs {
	c := costs{op: [2]float64{first.ReadOp, first.WriteOp}, byte: [2]float64{first.ReadByte, first.WriteByte}, since: -1}
	for kind := range c.bent {
		for size := range c.bent[kind] {
			c.bent[kind][size] = 1
		}
	}
	return c
}

// line gives the figures without the sizes' own.
func (c *costs) line() Cost { return Cost{c.op[0], c.byte[0], c.op[1], c.byte[1]} }

// of is the cost of one request.
func (c *costs) of(write bool, bytes int) time.Duration {
	k := kindOf(write)
	return max(1, time.Duration((c.op[k]+c.byte[k]*float64(bytes))*c.bent[k][sizeOf(bytes)]))
}

// charged is what a request's flow pays in this lesson: its cost, more or less.
func (c *costs) charged(r *Request) int64 {
	if c.drawn>>(kindOf(r.Write)*sizes+sizeOf(r.Bytes))&1 == 0 {
		return int64(r.cost) * (8 - dither) / 8
	}
	return int64(r.cost) * (8 + dither) / 8
}

// saturated is told whether the device is from now on.
func (c *costs) saturated(now time.Duration, yes bool) {
	if c.since >= 0 {
		c.spent += now - c.since
		c.since = now
	}
	if !yes {
		c.since = -1
	} else if c.since < 0 {
		c.since = now
	}
}

// done counts a completion; learnt tells that it was the last of a lesson.
func (c *costs) done(now time.Duration, width int, write bool, bytes int) (learnt bool) {
	if c.since < 0 {
		return false
	}
	c.saturated(now, true)
	w := &c.did[kindOf(write)][sizeOf(bytes)]
	w.ops++
	w.bytes += float64(bytes)
	c.number++
	times := 1 + int(c.drawn>>29)%lessonSpread
	if c.spent < lessonTime*time.Duration(times) || c.number < times*max(lessonRequests, 3*width) {
		return false
	}
	c.learn()
	c.spent, c.did, c.number = 0, [2][sizes]work{}, 0
	c.drawn = c.drawn*1664525 + 1013904223
	return true
}

// learn corrects first the line, then the sizes, each by a part of the error.
func (c *costs) learn() {
	var ops, bytes [2]float64
	var parts [2][sizes]float64
	var sum, squaresOfLine, squaresOfSizes float64
	for k := range c.did {
		for s, w := range c.did[k] {
			o, b := c.op[k]*w.ops*c.bent[k][s], c.byte[k]*w.bytes*c.bent[k][s]
			ops[k], bytes[k], parts[k][s] = ops[k]+o, bytes[k]+b, o+b
			squaresOfSizes += parts[k][s] * parts[k][s]
		}
		sum += ops[k] + bytes[k]
		squaresOfLine += ops[k]*ops[k] + bytes[k]*bytes[k]
	}
	wrong := learnRate * (float64(c.spent) - sum)
	for k := range c.did {
		correct(&c.op[k], wrong*ops[k]/squaresOfLine, minOpCost, maxOpCost)
		correct(&c.byte[k], wrong*bytes[k]/squaresOfLine, minByteCost, maxByteCost)
		for s, p := range parts[k] {
			if p > 0 {
				correct(&c.bent[k][s], wrong*p/squaresOfSizes, 1.0/maxBent, maxBent)
				c.bent[k][s] += (1 - c.bent[k][s]) * straighten
			}
		}
	}
}

// correct changes a figure by a part of it, within bounds.
func correct(figure *float64, part, least, most float64) {
	step := min(max(1+part, 1/maxStep), maxStep)
	*figure = min(max(*figure*step, least), most)
}

// latency is what requests of one kind and size take at the device.
type latency struct {
	usual time.Duration // recently
	alone time.Duration // with nothing beside; 0: not known
}

// smooth moves an average an eighth of the way to a sample.
func smooth(old *time.Duration, sample time.Duration) {
	if *old == 0 {
		*old = sample
		return
	}
	*old += (sample - *old) / 8
}
