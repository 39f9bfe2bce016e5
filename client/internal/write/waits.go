package write

import (
	"time"

	"strake/internal/layout"
)

// Waits tells what holds the writer up, and since how long: the server that the
// oldest acknowledgement waits for or, when none does, the oldest sync; server 0: it
// waits for a segment. ok is false when nothing waits.
func (c *Core) Waits(now time.Duration) (server layout.ServerID, wait time.Duration, ok bool) {
	if c.err != nil {
		return 0, 0, false
	}
	if server, wait, ok = c.Blocked(now); ok {
		return server, wait, true
	}
	if c.need && c.pending.len() > 0 {
		return 0, now - c.pending.at(0).at, true
	}
	for _, d := range c.round {
		if w := now - d.sentAt; !ok || w > wait {
			server, wait, ok = d.server.id, w, true
		}
	}
	return server, wait, ok
}
