package write

// How many writes and flushes a habit looks back on, and how many flushes make one.
const (
	habitMost = 256
	habitFew  = 4
)

// habit tells whether the volume's writer flushes each of its writes. It counts
// recent writes and flushes; older ones count half, and half again.
type habit struct{ writes, flushes uint16 }

func (h *habit) wrote() {
	h.writes++
	h.age()
}

func (h *habit) flushed() {
	h.flushes++
	h.age()
}

func (h *habit) age() {
	if h.writes+h.flushes >= habitMost {
		h.writes, h.flushes = h.writes/2, h.flushes/2
	}
}

// flushesEach: the flushes are at least three for five writes. Many writers at
// once write in a bunch before they flush in a bunch, so it is not one for one.
func (h *habit) flushesEach() bool { return h.flushes >= habitFew && 5*h.flushes >= 3*h.writes }
