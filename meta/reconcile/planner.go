package reconcile

import (
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// Planner is one leader's judgement over its term.
type Planner struct {
	limits Limits

	heard     map[layout.ServerID]pulse
	firstSeen map[layout.ServerID]time.Duration // servers not heard in this term
	kept      map[layout.SessionID]time.Duration

	tries    map[key]try // tasks in flight, and those that failed lately
	inFlight [kinds]int

	// Since when there has been what a plan waits for.
	allocated sightings[layout.SegmentID]
	orphaned  sightings[layout.VolumeID]
	removed   sightings[layout.VolumeID]
	gone      sightings[layout.DeviceID]

	rebuilds rebuilds
	targets  map[layout.ServerID]int // rebuilds handed out and not done, by server
	balance  balancing
	cleaning cleaning

	// Where the next plan goes on in each listing.
	allocatedAfter   layout.SegmentID
	unfinalizedAfter layout.SegmentID
	deletableAfter   layout.SegmentID
	purgedAfter      layout.VolumeID
	purgedSegment    layout.SegmentID
	orphanedAfter    layout.VolumeID
	removedAfter     string // a state.Volume.RemovedKey
	undigestedAfter  layout.SnapshotID
}

// pulse is what was heard of a server.
type pulse struct {
	last   time.Duration
	steady time.Duration // since then without a silence of DownAfter
}

// try is a task's history.
type try struct {
	running  bool
	failures int
	ended    time.Duration // when the last one failed
}

// New makes the Planner of a term that begins.
func New(limits Limits) *Planner {
	return &Planner{limits: limits,
		heard:     make(map[layout.ServerID]pulse),
		firstSeen: make(map[layout.ServerID]time.Duration),
		kept:      make(map[layout.SessionID]time.Duration),
		tries:     make(map[key]try),
		allocated: newSightings[layout.SegmentID](),
		orphaned:  newSightings[layout.VolumeID](),
		removed:   newSightings[layout.VolumeID](),
		gone:      newSightings[layout.DeviceID](),
		rebuilds:  rebuilds{queued: make(map[layout.SegmentID]bool)},
		targets:   make(map[layout.ServerID]int),
		balance:   newBalancing(),
		cleaning:  newCleaning()}
}

// Heard notes a server's sign of life.
func (p *Planner) Heard(id layout.ServerID, now time.Duration) {
	h, ok := p.heard[id]
	if !ok || now-h.last > p.limits.DownAfter {
		h.steady = now
	}
	h.last = now
	p.heard[id] = h
}

// Kept notes that a session was renewed.
func (p *Planner) Kept(id layout.SessionID, now time.Duration) { p.kept[id] = now }

// Done says how a task of a plan ended; now is when. Every task that was handed
// out must be reported, also one that the shell gave up.
func (p *Planner) Done(t Task, ok bool, now time.Duration) {
	k := t.key()
	was := p.tries[k]
	if was.running {
		p.inFlight[k.kind]--
		if r, is := t.(Rebuild); is {
			p.targets[r.Server]--
			if r.Balance {
				p.balance.done(&r, ok)
			}
		}
	}
	if ok {
		if c, is := t.(Clean); is {
			p.cleaning.ended[c.Volume] = true
		}
		delete(p.tries, k)
		return
	}
	p.tries[k] = try{failures: was.failures + 1, ended: now}
}

// Plan gives the tasks that should be begun now. The order is that of urgency:
// who is there, what is lost without a writer, what takes space, the rest.
func (p *Planner) Plan(view *state.View, now time.Duration) []Task {
	pl := &plan{p: p, view: view, now: now}
	pl.servers()
	pl.sessions()
	pl.giveUps()
	pl.recoveries()
	pl.giveBacks()
	pl.finalizes()
	pl.rebuild()
	pl.rebalance()
	pl.frees()
	pl.digests()
	pl.deletes()
	pl.cleans()
	pl.purges()
	p.forget(now)
	return pl.tasks
}

// plan is one plan in the making.
type plan struct {
	p     *Planner
	view  *state.View
	now   time.Duration
	tasks []Task
}

// full tells whether the plan, or the kind, has no room for another task.
func (pl *plan) full(k kind) bool {
	return len(pl.tasks) >= pl.p.limits.Plan || pl.p.inFlight[k] >= pl.p.limits.most(k)
}

// waits tells whether a task is running, or waits after a failure.
func (pl *plan) waits(k key) bool {
	was := pl.p.tries[k]
	return was.running || was.failures > 0 && pl.now-was.ended < pl.p.backoff(was.failures)
}

// add hands a task out unless it is running, waits after a failure, or there
// is no room for it.
func (pl *plan) add(t Task) {
	k := t.key()
	was := pl.p.tries[k]
	if pl.waits(k) || pl.full(k.kind) {
		return
	}
	was.running = true
	pl.p.tries[k] = was
	pl.p.inFlight[k.kind]++
	pl.tasks = append(pl.tasks, t)
}

// failures is how often the task failed in a row.
func (pl *plan) failures(t Task) int { return pl.p.tries[t.key()].failures }

func (p *Planner) backoff(failures int) time.Duration {
	wait := p.limits.Backoff
	for ; failures > 1 && wait < p.limits.MaxBackoff; failures-- {
		wait *= 2
	}
	return min(wait, p.limits.MaxBackoff)
}

// forget drops the history of failures that nobody asked for again: what they
// were about is settled. The order in which a map is gone through does not matter.
func (p *Planner) forget(now time.Duration) {
	for k, t := range p.tries {
		if !t.running && now-t.ended > 10*p.limits.MaxBackoff {
			delete(p.tries, k)
		}
	}
}
