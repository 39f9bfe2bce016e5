package sim

import (
	"fmt"

	"strake/client/simclient"
	"strake/internal/layout"
)

// P2: after any crash a volume equals a prefix of its write order. The log tells
// the prefix (its last seq), the history what it holds, block for block.

// opened checks a writer's start: it goes on right after what the log decided.
func (h *history) opened(v *simclient.Volume, by *clientProcess) *writerHistory {
	w := h.writer(v.Epoch)
	w.by = by
	cut, known := h.cuts[v.Epoch]
	w.cut, w.acked, w.flushed = cut, cut, cut
	if !known || v.Applied() != cut || v.FlushedSeq() != cut {
		h.s.fail("P2: volume %d: the writer of epoch %d starts with seq %d in its map and %d flushed; the log says %d (%v)", h.id, v.Epoch, v.Applied(), v.FlushedSeq(), cut, known)
	}
	return w
}

// explain names the property that a wrong version breaks.
func (h *history) explain(r *reading, block layout.BlockNumber, got, want uint64) string {
	view, upTo := latest, r.v.Applied()
	if r.w != nil {
		view = r.w.epoch
	}
	what := "P2: the content is no prefix of the write order"
	for _, v := range h.blocks[block] {
		if v.number == got && got != 0 && !h.visible(v, view) {
			what = fmt.Sprintf("P4: a stripe of epoch %d (seq %d) that was cut off is readable", v.epoch, v.seq)
		}
	}
	for _, v := range h.blocks[block] {
		if w := h.writers[v.epoch]; v.number == want && w != nil && v.seq <= w.durable && h.visible(v, view) {
			what = fmt.Sprintf("P1: seq %d of epoch %d was flushed and does not read back", v.seq, v.epoch)
		}
	}
	return fmt.Sprintf("%s: volume %d, block %d, view of epoch %d up to seq %d: got version %d, want %d; history %v",
		what, h.id, block, r.v.Epoch, upTo, got, want, h.blocks[block])
}
