package client

import (
	"sync"

	"strake/client/internal/write"
	"strake/internal/layout"
)

// watchEvery is how often a server that was left for its silence is looked at.
const watchEvery = write.AvoidFor / 4

// debts counts the appends and syncs that servers have not answered. The zero
// value works; safe for concurrent use.
type debts struct {
	mu      sync.Mutex
	open    map[layout.ServerID]int  // guarded by mu
	watched map[layout.ServerID]bool // guarded by mu
}

func (d *debts) add(server layout.ServerID, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open, d.watched = map[layout.ServerID]int{}, map[layout.ServerID]bool{}
	}
	d.open[server] += n
}

// watch tells whether a server that is watched still owes answers; when it owes
// none the watch is over. With begin it begins a watch, unless there is one.
func (d *debts) watch(server layout.ServerID, begin bool) (goOn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[server] == 0 || begin && d.watched[server] {
		if !begin {
			delete(d.watched, server)
		}
		return false
	}
	d.watched[server] = true
	return true
}

// keepOff has the cores avoid a server that was left for its silence as long as
// it owes answers: else segments that were granted before would lead back to it,
// and each way out costs a move. What it owes is answered, or fails with its
// connection, when it is back or gone.
func (w *writer) keepOff(server layout.ServerID) {
	if !w.debts.watch(server, true) {
		return
	}
	w.calls.start(func() {
		for {
			pause(w.life, watchEvery)
			if w.life.Err() != nil || !w.debts.watch(server, false) {
				return
			}
			w.serverDown(server)
		}
	})
}
