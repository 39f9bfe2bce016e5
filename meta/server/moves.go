package server

import (
	"sync"
	"time"

	"strake/meta/state"
)

const (
	volumeMovesPerSecond = 1.0
	// cellMovesShare is the share of open segments that may move in a minute.
	cellMovesShare = 0.05
	// minCellMoves is what a cell grants in a minute however small it is: so few
	// can't feed an overload, and a writer that is cut off from a second server
	// must not wait for a minute.
	minCellMoves = 10
	// maxMoveVolumes bounds the volumes whose budgets are remembered.
	maxMoveVolumes = 1 << 16
	// recountAfter is how old the count of open segments may be.
	recountAfter = 10 * time.Second
)

// moveBudget grants moves by time-out: one a second for each volume, and a
// twentieth of the open segments a minute for the cell, but at least ten. It counts the leader's
// monotonic time and begins full with each term.
type moveBudget struct {
	mu      sync.Mutex
	cell    bucket               // guarded by mu
	open    int                  // guarded by mu: segments that took appends when counted
	counted time.Time            // guarded by mu
	volumes map[volumeID]*bucket // guarded by mu
}

// bucket holds up to `most` tokens and gains rate a second.
type bucket struct {
	tokens float64
	at     time.Time
}

func newMoveBudget() *moveBudget { return &moveBudget{volumes: map[volumeID]*bucket{}} }

func (m *moveBudget) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cell, m.counted, m.volumes = bucket{}, time.Time{}, map[volumeID]*bucket{}
}

// take pays for one move of a volume; when it can't, it tells how long to wait.
func (m *moveBudget) take(volume volumeID, view *state.View) (retry time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.count(now, view)
	perMinute := max(minCellMoves, cellMovesShare*float64(m.open))
	m.cell.fill(now, perMinute/60, perMinute)
	v, ok := m.volumes[volume]
	if !ok {
		if len(m.volumes) >= maxMoveVolumes {
			m.forget(now)
		}
		v = &bucket{}
		m.volumes[volume] = v
	}
	v.fill(now, volumeMovesPerSecond, 1)
	if wait := max(v.wait(volumeMovesPerSecond), m.cell.wait(perMinute/60)); wait > 0 {
		return wait
	}
	v.tokens--
	m.cell.tokens--
	return 0
}

// count counts the cell's open segments, now and then.
func (m *moveBudget) count(now time.Time, view *state.View) {
	if !m.counted.IsZero() && now.Sub(m.counted) < recountAfter {
		return
	}
	m.counted, m.open = now, 0
	for after, more := "", true; more; {
		var page []state.Volume
		page, more = view.Volumes("", after, state.MaxPage)
		for i := range page {
			m.open += int(page[i].Unsealed)
			after = page[i].Tenant + "/" + page[i].Name
		}
	}
}

// forget drops budgets that are full again.
func (m *moveBudget) forget(now time.Time) {
	for id, b := range m.volumes {
		if now.Sub(b.at).Seconds() >= 1/volumeMovesPerSecond {
			delete(m.volumes, id)
		}
	}
}

// fill adds what was gained since the last call; a new bucket is full.
func (b *bucket) fill(now time.Time, rate, most float64) {
	if b.at.IsZero() {
		b.tokens = most
	}
	b.tokens = min(most, b.tokens+now.Sub(b.at).Seconds()*rate)
	b.at = now
}

// wait is how long it takes until a token is there.
func (b *bucket) wait(rate float64) time.Duration {
	if b.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - b.tokens) / rate * float64(time.Second))
}
