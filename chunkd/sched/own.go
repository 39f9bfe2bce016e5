package sched

import (
	"context"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/qos"
)

// OwnKey is the flow of what a store does by itself. It belongs to background, and
// to no tenant.
var OwnKey = mclock.Key{Class: layout.ClassBackground}

// TrialKey is the flow of measurements of a device on purpose, of no class and no
// tenant. They have background's weight; a limit that somebody set for background is
// none of theirs, else it would be taken for what the device can do.
var TrialKey = mclock.Key{Class: layout.ClassDefault}

// Own is a QoS as the device's store sees it (it is a store.Queue). The log, the
// index and the moves have a flow of their own, with the weight of a class that
// nobody has set: with background's tenth, writers would wait for the log of what
// they wrote long after their units had their turns.
type Own struct{ *QoS }

// NewOwn makes the scheduler of a device and its store.
func NewOwn() Own {
	q := Own{NewQoS(mclock.Options{})}
	for key, weight := range map[mclock.Key]int{OwnKey: qos.DefaultWeight, TrialKey: qos.Defaults(layout.ClassBackground).Weight} {
		if err := q.SetFlow(key, mclock.Params{Weight: weight}); err != nil {
			panic(err) // a fresh scheduler takes it
		}
	}
	return q
}

// Piece is how many bytes one turn should write at most.
func (q Own) Piece() int { return q.Quantum(true) }

// patience is how long a store waits for a turn. What has the device may wait for a
// shard that the store is in: see store.Queue.
const patience = 100 * time.Millisecond

// Turn runs work, which writes n bytes to the device, when its turn has come or
// patience is over.
func (q Own) Turn(n int, work func()) {
	tag := Tag{Class: OwnKey.Class, Tenant: OwnKey.Tenant, Write: true, Bytes: n, Deadline: time.Now().Add(patience)}
	if q.Do(context.Background(), tag, work) != nil {
		work() // late, or too many wait
	}
}
