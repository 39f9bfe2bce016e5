package server

import (
	"sync"
	"time"

	"strake/internal/layout"
	"strake/meta/limping"
	"strake/meta/reconcile"
	"strake/meta/state"
)

// control shares the term's planner between the calls that hear of servers and
// sessions and the loop that asks for plans. While this server does not lead
// there is no planner, and what is heard is dropped: the next leader gives
// everybody the full time. The planner's clock leaves out times in which this
// process stood still (a paused machine, SIGSTOP): whoever was not heard then may
// well have called.
type control struct {
	limits  reconcile.Limits
	limping limping.Limits
	still   time.Duration // between two looks at the clock: longer, and the process stood still

	mu      sync.Mutex
	looked  time.Time          // guarded by mu: last at the clock
	now     time.Duration      // guarded by mu: of the planner, from the term's begin on
	planner *reconcile.Planner // guarded by mu; nil while not leading
	judge   *limping.Judge     // guarded by mu; of the planner's term
}

func newControl(t Timing) *control {
	l := reconcile.DefaultLimits()
	l.DownAfter, l.UpAfter = t.ServerSilence, t.ServerSilence*2/3
	l.SessionTTL, l.PurgeAfter, l.RecoverAfter, l.CleanAfter = t.SessionTTL, t.PurgeAfter, t.RecoverAfter, t.CleanAfter
	l.RebuildAfter, l.DeleteAfter = t.RebuildAfter, t.DeleteAfter
	l.CreateWithin = max(t.ChunkCall*(allocateTries+1), l.CreateWithin)
	limps := limping.DefaultLimits()
	limps.Hold = t.LimpingHold
	return &control{limits: l, limping: limps, still: max(t.ServerSilence/2, 2*t.Control)}
}

func (c *control) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked, c.now, c.planner = time.Now(), 0, reconcile.New(c.limits)
	c.judge = limping.New(c.limping)
}

func (c *control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planner = nil
}

// with calls f with the planner and its clock, while this server leads.
func (c *control) with(f func(p *reconcile.Planner, now time.Duration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.planner == nil {
		return
	}
	f(c.planner, c.tick())
}

// tick moves the planner's clock on. mu is held.
func (c *control) tick() time.Duration {
	if since := time.Since(c.looked); since <= c.still {
		c.now += since
	}
	c.looked = time.Now()
	return c.now
}

func (c *control) heard(id serverID) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Heard(id, now) })
}

// holds notes what devices store by a heartbeat.
func (c *control) holds(devices []saying) {
	c.with(func(p *reconcile.Planner, _ time.Duration) {
		for _, d := range devices {
			p.Holds(d.Device, d.Used)
		}
	})
}

func (c *control) kept(id sessionID) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Kept(id, now) })
}

// removed notes that a snapshot was removed.
func (c *control) removed(view *state.View, f *state.Frozen) {
	c.with(func(p *reconcile.Planner, _ time.Duration) { p.SnapshotRemoved(view, f) })
}

// held says what snapshots hold of a volume.
func (c *control) held(view *state.View, id layout.VolumeID) (held layout.Held) {
	c.with(func(p *reconcile.Planner, _ time.Duration) { held = p.Held(view, id) })
	return held
}

func (c *control) plan(view *state.View) (tasks []reconcile.Task) {
	c.with(func(p *reconcile.Planner, now time.Duration) { tasks = p.Plan(view, now) })
	return tasks
}

func (c *control) done(t reconcile.Task, ok bool) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Done(t, ok, now) })
}
