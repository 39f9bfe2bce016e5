package limping

import (
	"fmt"
	"slices"
	"time"

	"strake/internal/layout"
)

// Limits are the rule's figures.
type Limits struct {
	Slow       time.Duration // 10 ms: whatever takes less is not slow
	Times      int           // 6: a slow device takes more than so many times the others' median
	SoundTimes int           // 3: a quick one at most so many times, or half of Slow
	Witnesses  int           // 2: who must say so
	Fresh      time.Duration // 15 s: how long a word or a measurement counts
	OwnStreak  int           // 3: slow measurements in a row that make a server a witness
	OwnAlone   int           // 10: and that are enough alone
	Quick      int           // 5: quick ones in a row that make a device sound
	Hold       time.Duration // 30 s: how long it must stay so
	MostHold   time.Duration // 15 min: that doubles up to this
	Forget     time.Duration // 1 h: after so long up, it begins anew
	Busy       uint64        // 4 MiB: a device that moves fewer bytes a second is not busy
}

// DefaultLimits gives the figures above.
func DefaultLimits() Limits {
	return Limits{Slow: 10 * time.Millisecond, Times: 6, SoundTimes: 3, Witnesses: 2, Fresh: 15 * time.Second, OwnStreak: 3, OwnAlone: 10,
		Quick: 5, Hold: 30 * time.Second, MostHold: 15 * time.Minute, Forget: time.Hour, Busy: 4 << 20}
}

// Device is a device that serves, as the state has it.
type Device struct {
	ID     layout.DeviceID
	Server layout.ServerID
	Limps  bool // on record
}

// Word is what a witness says of a device.
type Word struct {
	Took, Others time.Duration // what its reads take, and those of others
	Sound        bool          // it takes back what it said
}

// Measure is what a chunk server measured of a device; 0: nothing of that kind.
type Measure struct {
	Read, Write time.Duration
	Bytes       uint64 // a second, moved for others meanwhile
}

// Verdict says that a device limps from now on, or no more.
type Verdict struct {
	Device layout.DeviceID
	Limps  bool
	Why    string // for people
}

// maxWords bounds the words kept of one device.
const maxWords = 16

// Judge holds the evidence of a term.
type Judge struct {
	limits  Limits
	devices map[layout.DeviceID]*record
	order   []layout.DeviceID // of the last look, ascending
}

// record is what is known of a device that a look has seen.
type record struct {
	server layout.ServerID
	words  map[uint64]said

	measured   Measure
	measuredAt time.Duration
	slow       int // measurements in a row
	quick      int // the same
	slowText   string

	limps bool
	why   string
	calm  time.Duration // while it limps: since when nothing speaks against it
	hold  time.Duration // how long that must last
	upAt  time.Duration // while it doesn't: since when
}

type said struct {
	Word
	at time.Duration
}

// New makes a judge without evidence.
func New(l Limits) *Judge { return &Judge{limits: l, devices: map[layout.DeviceID]*record{}} }

// Say takes in a witness's word on a device that a look has seen; others are
// nobody's.
func (j *Judge) Say(witness uint64, id layout.DeviceID, w Word, now time.Duration) {
	r := j.devices[id]
	if r == nil {
		return
	}
	if w.Sound {
		delete(r.words, witness)
		return
	}
	if _, again := r.words[witness]; again || len(r.words) < maxWords {
		r.words[witness] = said{w, now}
	}
}

// Measured takes in what a server measured of its device.
func (j *Judge) Measured(id layout.DeviceID, m Measure, now time.Duration) {
	r := j.devices[id]
	if r == nil {
		return
	}
	r.measured, r.measuredAt = m, now
	others := j.others(r.server, now)
	switch text, slow, quick := j.compare(m, others); {
	case slow && !j.busy(m, others):
		r.slow, r.quick, r.slowText = r.slow+1, 0, text
	case quick:
		r.slow, r.quick = 0, r.quick+1
	default:
		r.slow, r.quick = 0, 0
	}
}

// others are the fresh measurements of the other servers' devices.
func (j *Judge) others(but layout.ServerID, now time.Duration) (list []Measure) {
	for _, id := range j.order {
		if r := j.devices[id]; r.server != but && r.measuredAt > 0 && now-r.measuredAt <= j.limits.Fresh && !r.limps {
			list = append(list, r.measured)
		}
	}
	return list
}

// compare holds a measurement against the others'.
func (j *Judge) compare(m Measure, others []Measure) (text string, slow, quick bool) {
	quick = true
	for _, kind := range []struct {
		name string
		of   func(Measure) time.Duration
	}{{"reads", func(m Measure) time.Duration { return m.Read }}, {"writes", func(m Measure) time.Duration { return m.Write }}} {
		own, median, ok := kind.of(m), time.Duration(0), false
		if median, ok = middle(others, kind.of); own == 0 || !ok {
			quick = quick && own < j.limits.Slow
			continue
		}
		if own >= j.limits.Slow && own > time.Duration(j.limits.Times)*median {
			slow = true
			text = fmt.Sprintf("its own server: small %s take %v, those of others %v", kind.name, round(own), round(median))
		}
		quick = quick && own <= max(j.limits.Slow/2, time.Duration(j.limits.SoundTimes)*median)
	}
	return text, slow, quick && !slow
}

// middle is the lower median of what two or more others measured.
func middle(others []Measure, of func(Measure) time.Duration) (time.Duration, bool) {
	var list []time.Duration
	for _, o := range others {
		if d := of(o); d > 0 {
			list = append(list, d)
		}
	}
	if len(list) < 2 {
		return 0, false
	}
	slices.Sort(list)
	return list[(len(list)-1)/2], true
}

// busy tells whether a device moves much more than the others: it may take longer.
func (j *Judge) busy(m Measure, others []Measure) bool {
	var list []uint64
	for _, o := range others {
		list = append(list, o.Bytes)
	}
	if m.Bytes < j.limits.Busy || len(list) == 0 {
		return false
	}
	slices.Sort(list)
	return m.Bytes > 2*list[(len(list)-1)/2]
}

// Limps tells the latest verdict on a device, and why.
func (j *Judge) Limps(id layout.DeviceID) (limps bool, why string) {
	if r := j.devices[id]; r != nil && r.limps {
		return true, r.why
	}
	return false, ""
}

// Knows tells whether a look has seen the device in this term: what is on record
// counts until then.
func (j *Judge) Knows(id layout.DeviceID) bool { return j.devices[id] != nil }

// Suspected tells whether a device is to be measured more often.
func (j *Judge) Suspected(id layout.DeviceID) bool {
	r := j.devices[id]
	return r != nil && (r.limps || r.slow > 0 || len(r.words) > 0)
}

// round leaves three digits or so.
func round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
