package server

import (
	"sync"
	"time"

	"strake/meta/reconcile"
	"strake/meta/state"
)

// control shares the term's planner between the calls that hear of servers and
// sessions and the loop that asks for plans. While this server does not lead
// there is no planner, and what is heard is dropped: the next leader gives
// everybody the full time.
type control struct {
	limits reconcile.Limits

	mu      sync.Mutex
	began   time.Time          // guarded by mu: of the term, the zero of the planner's clock
	planner *reconcile.Planner // guarded by mu; nil while not leading
}

func newControl(t Timing) *control {
	l := reconcile.DefaultLimits()
	l.DownAfter, l.UpAfter = t.ServerSilence, t.ServerSilence*2/3
	l.SessionTTL, l.PurgeAfter, l.RecoverAfter = t.SessionTTL, t.PurgeAfter, t.RecoverAfter
	l.RebuildAfter = t.RebuildAfter
	l.CreateWithin = max(t.ChunkCall*(allocateTries+1), l.CreateWithin)
	return &control{limits: l}
}

func (c *control) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.planner = time.Now(), reconcile.New(c.limits)
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
	if c.planner != nil {
		f(c.planner, time.Since(c.began))
	}
}

func (c *control) heard(id serverID) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Heard(id, now) })
}

func (c *control) kept(id sessionID) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Kept(id, now) })
}

func (c *control) plan(view *state.View) (tasks []reconcile.Task) {
	c.with(func(p *reconcile.Planner, now time.Duration) { tasks = p.Plan(view, now) })
	return tasks
}

func (c *control) done(t reconcile.Task, ok bool) {
	c.with(func(p *reconcile.Planner, now time.Duration) { p.Done(t, ok, now) })
}
