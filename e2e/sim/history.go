package sim

import (
	"strake/internal/layout"
	"strake/proto/stripe"
)

// history is the oracle of one volume: which version of each block was cut under
// which epoch and seq, what the cores claimed, and where the log cut epochs off.
type history struct {
	s          *Sim
	id         layout.VolumeID
	name       string
	stamp      layout.VolumeID // what its blocks say that they are of: the first of its branches
	blocks     [][]version
	writers    map[layout.Epoch]*writerHistory
	cuts       map[layout.Epoch]layout.Seq // the seq that the epoch starts after, once that is decided
	removed    bool
	recovering bool // a recovery has begun and nothing is decided
	// What each snapshot that was asked for must hold at least, if the epoch is still that one.
	promised   map[string]layout.Seq
	promisedIn map[string]layout.Epoch
}

// version is one content of a block; number 0 reads as zeros. Epoch 0 is what a
// branch began with.
type version struct {
	epoch  layout.Epoch
	seq    layout.Seq
	number uint64
}

// writerHistory is what one writer did.
type writerHistory struct {
	epoch          layout.Epoch
	by             *clientProcess
	submitted      []blockWrite // all that it submitted
	seqs           []layout.Seq // of those that are cut or passed over (0)
	uncut          int          // of these, the first that has no seq
	refused        map[int]bool // of these, those that were refused
	cut            layout.Seq
	acked, flushed layout.Seq // claimed by the core
	durable        layout.Seq // the flushed seq when a Flush was answered
	dead           bool
}

// blockWrite is one block of a submitted operation.
type blockWrite struct {
	block  layout.BlockNumber
	number uint64
}

func newHistory(s *Sim, id layout.VolumeID, name string) *history {
	return &history{s: s, id: id, name: name, stamp: id, promised: map[string]layout.Seq{}, promisedIn: map[string]layout.Epoch{}, blocks: make([][]version, s.blocks), writers: map[layout.Epoch]*writerHistory{}, cuts: map[layout.Epoch]layout.Seq{}}
}

func (h *history) writer(e layout.Epoch) *writerHistory {
	w := h.writers[e]
	if w == nil {
		w = &writerHistory{epoch: e, refused: map[int]bool{}}
		h.writers[e] = w
	}
	return w
}

// submit notes an operation in its writer's order, and gives its place there.
func (h *history) submit(w *writerHistory, first layout.BlockNumber, count int, zero bool) (from, number int) {
	from = len(w.submitted)
	n := uint64(0)
	if !zero {
		h.s.versions++
		n = h.s.versions
	}
	for i := range count {
		w.submitted = append(w.submitted, blockWrite{first + layout.BlockNumber(i), n})
	}
	return from, int(n)
}

// withdraw takes back an operation that was not taken, or what was not cut of one
// that was refused.
func (h *history) withdraw(w *writerHistory, from, count int) {
	for i := max(from, w.uncut); i < from+count; i++ {
		w.refused[i] = true
	}
}

// next gives the next submitted block that has no seq.
func (w *writerHistory) next() (blockWrite, bool) {
	for w.uncut < len(w.submitted) && w.refused[w.uncut] {
		w.uncut++
		w.seqs = append(w.seqs, 0)
	}
	if w.uncut == len(w.submitted) {
		return blockWrite{}, false
	}
	w.uncut++
	return w.submitted[w.uncut-1], true
}

// cut takes a stripe in: its blocks are the next ones of its writer, in order.
func (h *history) cut(e layout.Epoch, x *stripe.Header) {
	w := h.writer(e)
	w.cut = x.Seq
	if x.Flags&stripe.Relocation != 0 {
		h.s.rare("a relocation")
		return // its blocks are what the log says that they are already
	}
	for _, r := range x.Ranges {
		for i := range r.Count {
			b, ok := w.next()
			at := r.Start + layout.BlockNumber(i)
			if !ok || b.block != at || (b.number == 0) != (r.Kind != stripe.Write) {
				h.s.fail("volume %d, epoch %d: seq %d cuts block %d (kind %d), the next submitted is block %d, version %d", h.id, e, x.Seq, at, r.Kind, b.block, b.number)
				return
			}
			w.seqs = append(w.seqs, x.Seq)
			h.blocks[at] = append(h.blocks[at], version{e, x.Seq, b.number})
		}
	}
}

// visible tells whether a stripe of an epoch is in the log as a view of a later
// epoch sees it: no epoch between cut it off.
func (h *history) visible(v version, view layout.Epoch) bool {
	for e, seq := range h.cuts { // each of them must let it pass: the order does not matter
		if e > v.epoch && e <= view && v.seq > seq {
			return false
		}
	}
	return v.epoch <= view
}

// latest is a view of all that was decided.
const latest = ^layout.Epoch(0)

// at gives a block's version in a view, among the stripes up to a seq.
func (h *history) at(b layout.BlockNumber, view layout.Epoch, upTo layout.Seq) uint64 {
	list := h.blocks[b]
	var best version
	for i := len(list) - 1; i >= 0; i-- {
		if v := list[i]; v.seq <= upTo && v.seq >= best.seq && h.visible(v, view) && (v.seq > best.seq || best.epoch == 0) {
			best = v
		}
	}
	return best.number
}

// own gives a block's version as its writer must see it: what it submitted last.
func (h *history) own(w *writerHistory, b layout.BlockNumber) uint64 {
	for i := len(w.submitted) - 1; i >= w.uncut; i-- {
		if w.submitted[i].block == b && !w.refused[i] {
			return w.submitted[i].number
		}
	}
	return h.at(b, w.epoch, ^layout.Seq(0))
}

// died notes that a process is no more: its writers claim nothing any more.
func (h *history) died(p *clientProcess) {
	for _, w := range h.writers {
		w.dead = w.dead || w.by == p
	}
}
