package janitor

import "sync"

// slabBytes is what a batch takes as a rule: what is read for it, and what is made
// of that. A batch of large stripes may take more.
const slabBytes = batchBytes + batchBytes/2

// Slabs keeps the memory of batches for the next ones. Memory that is new for each
// costs more, in page faults and clearing, than all else that is done with the
// bytes. What nobody used for a while goes. Safe for concurrent use.
type Slabs struct{ pool sync.Pool }

func (p *Slabs) get() *[slabBytes]byte {
	if s, ok := p.pool.Get().(*[slabBytes]byte); ok {
		return s
	}
	return new([slabBytes]byte)
}

func (p *Slabs) put(s *[slabBytes]byte) { p.pool.Put(s) }

// memory hands out pieces of one slab, until the next batch begins.
type memory struct {
	slabs *Slabs // nil: no slab is kept, each piece is made

	mu   sync.Mutex
	slab *[slabBytes]byte // guarded by mu; nil until the first piece
	used int              // guarded by mu
}

// bytes gives n bytes that nobody else has, with anything in them.
func (m *memory) bytes(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slabs == nil || n > slabBytes-m.used {
		return make([]byte, n)
	}
	if m.slab == nil {
		m.slab = m.slabs.get()
	}
	b := m.slab[m.used : m.used+n : m.used+n]
	m.used += n
	return b
}

// again takes all pieces back: nobody uses the last batch's.
func (m *memory) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = 0
}

// end gives the slab back; nobody uses its pieces.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slab != nil {
		m.slabs.put(m.slab)
		m.slab = nil
	}
}
