package client

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// waitTold is how long something is waited for before people are told, waitMost
	// the longest time until they are told again.
	waitTold = 5 * time.Second
	waitMost = time.Minute
	// waitLook is how often it is looked at.
	waitLook = time.Second
)

// Waiting is something that has been waited for, for 5 s or longer.
type Waiting struct {
	Op     string        // what waits: `create volume v`, `write v`
	For    time.Duration // since when
	Reason string        // what it waits for, and why that does not come
}

// waits knows what a cell's callers wait for. One goroutine looks at it and tells
// what has taken long: after 5 s, 10 s, 20 s and so on, then once a minute. Safe for
// concurrent use.
type waits struct {
	cell *Cell
	done sync.WaitGroup

	mu    sync.Mutex
	last  uint64          // guarded by mu
	under map[uint64]wait // guarded by mu
}

// wait is a call under way.
type wait struct {
	op    string
	since time.Time
	why   string // used while the metadata service answers
}

func newWaits(c *Cell) *waits { return &waits{cell: c, under: map[uint64]wait{}} }

// begin notes that op waits; end tells that it no longer does.
func (w *waits) begin(op, why string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	id := w.last
	w.under[id] = wait{op, time.Now(), why}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.under, id)
	}
}

// start has a goroutine tell what takes long until ctx ends.
func (w *waits) start(ctx context.Context) {
	w.done.Go(func() {
		ticker := time.NewTicker(waitLook)
		defer ticker.Stop()
		told, reports := tellings{}, blockedReports{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			reports.send(ctx, w.cell)
			for _, one := range told.due(w.look(time.Now())) {
				w.tell(one)
			}
		}
	})
}

func (w *waits) tell(one Waiting) {
	w.cell.cfg.Logger.Warn("waiting", "task", one.Op, "dur", one.For.Round(time.Second), "err", one.Reason)
	if w.cell.cfg.Waiting != nil {
		w.cell.cfg.Waiting(one)
	}
}

// look gathers what is waited for.
func (w *waits) look(now time.Time) (list []Waiting) {
	trouble, ok := w.cell.meta.Trouble()
	w.mu.Lock()
	for _, u := range w.under {
		one := Waiting{u.op, now.Sub(u.since), u.why}
		if ok {
			one.Reason = trouble.Reason
		}
		list = append(list, one)
	}
	w.mu.Unlock()
	for _, v := range w.cell.writers() {
		if one, _, waits := v.w.waiting(trouble.Reason); waits {
			list = append(list, one)
		}
	}
	return list
}

// blockedReports tells the metadata service, for `strake explain volume`, which
// writers have waited for a second or longer, and when they no longer do.
type blockedReports map[*Volume]bool

func (b blockedReports) send(ctx context.Context, c *Cell) {
	still := map[*Volume]bool{}
	for _, v := range c.writers() {
		one, server, waits := v.w.waiting("")
		waits = waits && one.For >= waitLook
		if waits {
			still[v] = true
		}
		if waits || b[v] {
			b.report(ctx, v, one, server, waits)
		}
	}
	clear(b)
	maps.Copy(b, still)
}

func (b blockedReports) report(ctx context.Context, v *Volume, one Waiting, server layout.ServerID, waits bool) {
	l := v.w.lease
	r := &pb.ReportBlockedRequest{Session: uint64(l.session), Volume: uint64(l.volume), Epoch: uint64(l.epoch)}
	if waits {
		r.Server, r.Ms, r.Reason = uint64(server), uint64(one.For.Milliseconds()), one.Reason
	}
	ctx, cancel := context.WithTimeout(ctx, waitLook/2)
	defer cancel()
	_ = l.cell.meta.DoWithin(ctx, waitLook/2, func(ctx context.Context, m pb.MetaClient) error { // for people only
		_, err := m.ReportBlocked(ctx, r)
		return err
	})
}

// waiting tells what holds the writer up; outage is why the metadata service does
// not answer, empty while it does.
func (w *writer) waiting(outage string) (one Waiting, server layout.ServerID, ok bool) {
	w.v.mu.Lock()
	server, since, ok := w.core.Waits(w.now())
	refused := w.refused
	w.v.mu.Unlock()
	one = Waiting{Op: "write " + w.v.name, For: since}
	switch {
	case !ok:
		return one, 0, false
	case server != 0:
		one.Reason = w.v.cell.places.named(server) + " does not answer, and the writer could not move on yet"
		if refused != nil {
			one.Reason += ": " + refused.Error()
		}
	case outage != "":
		one.Reason = outage
	case refused != nil:
		one.Reason = refused.Error()
	default:
		one.Reason = "the metadata service has given no segment yet"
	}
	return one, server, true
}

// named names a chunk server to people.
func (p *placements) named(id layout.ServerID) string {
	a, _ := p.address(id)
	return fmt.Sprintf("chunk server %d at %s", id, a.data)
}

// tellings decides when what is waited for is told, by what waits.
type tellings map[string]time.Duration

// due gives what is to be told now, and forgets what no longer waits.
func (t tellings) due(now []Waiting) (list []Waiting) {
	still := map[string]bool{}
	for _, one := range now {
		if one.For < waitTold || still[one.Op] {
			continue
		}
		still[one.Op] = true
		if one.For >= t[one.Op] {
			t[one.Op] = one.For + min(one.For, waitMost)
			list = append(list, one)
		}
	}
	for op := range t {
		if !still[op] {
			delete(t, op)
		}
	}
	return list
}
