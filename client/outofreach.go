package client

import (
	"context"
	"time"
)

const (
	// outOfReach bounds how long a read waits for servers that are out of reach when the
	// others are too few: several that start again together are no error to an
	// application, and writes wait as well.
	outOfReach = 10 * time.Second
	// reachPause is the wait before they are asked again; it doubles up to reachMost.
	reachPause = 50 * time.Millisecond
	reachMost  = time.Second
)

// awaiting is the wait of a read for servers that are out of reach. The zero value has
// not begun.
type awaiting struct {
	until time.Time
	next  time.Duration
	end   func()
}

// more waits before the servers are asked again; false: not any longer.
func (w *awaiting) more(ctx context.Context, v *Volume, why error) bool {
	if w.end == nil {
		w.until, w.next = time.Now().Add(outOfReach), reachPause
		w.end = v.cell.waits.begin("read "+v.name, why.Error())
	}
	if time.Now().Add(w.next).After(w.until) {
		return false
	}
	pause(ctx, w.next)
	w.next = min(2*w.next, reachMost)
	return ctx.Err() == nil && v.cell.life.Err() == nil && !v.closed.Load()
}

// over ends the wait, if it began.
func (w *awaiting) over() {
	if w.end != nil {
		w.end()
	}
}
