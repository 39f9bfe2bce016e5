package chunkd

import (
	"context"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/qos"
)

// ownKey is the flow of what a store does by itself. It belongs to background, and
// to no tenant.
var ownKey = mclock.Key{Class: layout.ClassBackground}

// ownQueue is a device's scheduler as its store sees it. The log, the index and the
// moves have a flow of their own, with the weight of a class that nobody has set:
// with background's tenth, writers would wait for the log of what they wrote long
// after their units had their turns.
type ownQueue struct{ *sched.QoS }

func newOwnQueue() ownQueue {
	q := ownQueue{sched.NewQoS(mclock.Options{})}
	if err := q.SetFlow(ownKey, mclock.Params{Weight: qos.DefaultWeight}); err != nil {
		panic(err) // a fresh scheduler takes it
	}
	return q
}

// Piece implements store.Queue.
func (q ownQueue) Piece() int { return q.Quantum(true) }

// patience is how long a store waits for a turn. What has the device may wait for a
// shard that the store is in: see store.Queue.
const patience = 100 * time.Millisecond

// Turn implements store.Queue.
func (q ownQueue) Turn(n int, work func()) {
	tag := sched.Tag{Class: ownKey.Class, Tenant: ownKey.Tenant, Write: true, Bytes: n, Deadline: time.Now().Add(patience)}
	if q.Do(context.Background(), tag, work) != nil {
		work() // late, or too many wait
	}
}
