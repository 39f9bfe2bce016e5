package mclock

// The heaps that flows with queued requests are in.
const (
	byReserve = iota // by R: flows with a reservation
	byLimit          // by L: flows that must wait for it
	byWeight         // by P: flows that may be served
	byUrgency        // by P: those of them whose class has a latency target
	heaps
)

// heap is a binary heap of flows by key. A flow knows its place in it; keys stand
// in the heap itself, because looking at a thousand flows is what takes time.
type heap struct {
	which int
	items []entry
}

type entry struct {
	key  int64
	flow *flow
}

// top gives the flow with the smallest key, nil when there is none.
func (h *heap) top() (*flow, int64) {
	if len(h.items) == 0 {
		return nil, 0
	}
	return h.items[0].flow, h.items[0].key
}

// set puts a flow in under a key, or moves it there.
func (h *heap) set(f *flow, key int64) {
	i := f.pos[h.which] - 1
	if i < 0 {
		i = len(h.items)
		h.items = append(h.items, entry{})
	} else if h.items[i].key == key {
		return
	}
	h.settle(i, entry{key, f})
}

// drop takes a flow out, if it is in.
func (h *heap) drop(f *flow) {
	i := f.pos[h.which] - 1
	if i < 0 {
		return
	}
	f.pos[h.which] = 0
	last := len(h.items) - 1
	moved := h.items[last]
	h.items[last] = entry{}
	h.items = h.items[:last]
	if i < last {
		h.settle(i, moved)
	}
}

// before orders by key, then by name, so that equal inputs give equal orders.
func (a entry) before(b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if a.flow.key.Class != b.flow.key.Class {
		return a.flow.key.Class < b.flow.key.Class
	}
	return a.flow.key.Tenant < b.flow.key.Tenant
}

// settle puts an entry where the hole at i allows it.
func (h *heap) settle(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.items[child+1].before(h.items[child]) {
			child++
		}
		if !h.items[child].before(e) {
			break
		}
		h.put(i, h.items[child])
		i = child
	}
	h.put(i, e)
}

func (h *heap) put(i int, e entry) {
	h.items[i] = e
	e.flow.pos[h.which] = i + 1
}
