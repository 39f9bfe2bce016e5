package write

import "time"

// Abort drops the map checkpoint that is under way, for a reason of the shell's
// own: a page could not be loaded, or its caller gave up. Aborted comes. Between
// Checkpointed and Recorded it does nothing: the outcome must be known first.
func (w *MapWriter) Abort(now time.Duration, err error) {
	if w.c.err == nil && (w.state == mapPlacing || w.state == mapFinishing) {
		w.c.abort(err)
		w.step(now)
	}
}
