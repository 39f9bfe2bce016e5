package sim

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// P1: what a Flush covered reads back. Here: nothing that a core called flushed is
// ever cut off. That it reads back bit for bit is told by every read (wrong.go).

// claimFlushed takes a core's claim that all stripes up to seq are flushed.
func (h *history) claimFlushed(e layout.Epoch, seq layout.Seq) {
	w := h.writer(e)
	if seq > w.acked || seq > w.cut {
		h.s.fail("P1: volume %d, epoch %d: seq %d is flushed, acknowledged is %d, cut is %d", h.id, e, seq, w.acked, w.cut)
	}
	w.flushed = seq
	for _, later := range sortedIDs(h.cuts) {
		if later > e && h.cuts[later] < seq {
			h.s.fail("P1: volume %d: seq %d of epoch %d is flushed, but epoch %d starts after seq %d", h.id, seq, e, later, h.cuts[later])
		}
	}
}

// decide notes where an epoch starts: all that older epochs have beyond is cut off.
func (h *history) decide(e layout.Epoch, cut layout.Seq) {
	h.s.note("epoch starts", uint64(h.id), uint64(e), uint64(cut))
	h.recovering = false
	h.cuts[e] = cut
	h.keeps(e, cut)
	for _, x := range sortedIDs(h.writers) {
		if w := h.writers[x]; x < e && w.flushed > cut && h.visible(version{epoch: x, seq: w.flushed}, e-1) {
			h.s.fail("P1: volume %d: epoch %d starts after seq %d, but epoch %d had flushed seq %d", h.id, e, cut, x, w.flushed)
		}
	}
}

// answeredWrite checks an acknowledgement: every block of the operation has a
// seq, and all of them are acknowledged; flushed, if the write was durable.
func (h *history) answeredWrite(w *writerHistory, from, count int, durable bool, err error) {
	if err != nil {
		h.withdraw(w, from, count)
		return
	}
	reached := w.acked
	if durable {
		reached = w.flushed
	}
	h.checkReached(w, from, from+count, reached, "acknowledged")
}

// answeredFlush checks a flush: all that was submitted before it is flushed.
func (h *history) answeredFlush(w *writerHistory, before int, err error) {
	h.s.note("flush answered", uint64(h.id), uint64(w.epoch), uint64(w.flushed), uint64(errs.KindOf(err)))
	if err == nil {
		w.durable = w.flushed
		h.checkReached(w, 0, before, w.flushed, "flushed")
	}
}

// answeredFlushAcked checks a flush of what was acknowledged: that is flushed.
func (h *history) answeredFlushAcked(w *writerHistory, acked layout.Seq, err error) {
	if err != nil {
		return
	}
	if w.flushed < acked {
		h.s.fail("P1: volume %d, epoch %d: a flush is done up to seq %d, but seq %d was acknowledged before it", h.id, w.epoch, w.flushed, acked)
	}
	w.durable = max(w.durable, acked)
}

func (h *history) checkReached(w *writerHistory, from, to int, reached layout.Seq, what string) {
	for i := from; i < to; i++ {
		if w.refused[i] {
			continue
		}
		if i >= len(w.seqs) || w.seqs[i] > reached {
			h.s.fail("P1: volume %d, epoch %d: block %d (version %d) was called %s, which reaches up to seq %d",
				h.id, w.epoch, w.submitted[i].block, w.submitted[i].number, what, reached)
			return
		}
	}
}
