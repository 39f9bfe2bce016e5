package stripe

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Check tells whether the header's fields fit together. Both ends check: the
// writer before it sends, the reader after it decodes. The error is Corrupt.
func (h *Header) Check() error {
	bad := func(format string, args ...any) error {
		return errs.New(errs.Corrupt, "check stripe header", format, args...)
	}
	g, s := h.Geometry, h.Shape
	switch {
	case !g.Valid():
		return bad("geometry %v", g)
	case h.Flags&^(Relocation|MapPage) != 0:
		return bad("unknown flags %x", h.Flags)
	case s.Data == 0 || s.Data&^g.DataMask() != 0:
		return bad("data mask %b in geometry %v", s.Data, g)
	case s.Unit%layout.BlockSize != 0 || s.Unit > layout.MaxStripePayload:
		return bad("unit of %d bytes", s.Unit)
	case h.Offset < 0 || h.Offset%layout.BlockSize != 0 || h.Offset > layout.MaxShardLength-layout.ShardOffset(s.Unit):
		return bad("offset %d, unit %d", h.Offset, s.Unit)
	case h.Blocks > layout.MaxStripeBlocks:
		return bad("%d payload blocks", h.Blocks)
	case h.Seq == 0 || h.Flushed >= h.Seq && h.Flags&MapPage == 0:
		return bad("seq %d, flushed %d", h.Seq, h.Flushed)
	case !h.Participants().Has(h.Shard):
		return bad("shard %d takes no part", h.Shard)
	}
	if len(h.Ranges) > MaxRanges || h.EncodedLen() > MaxLen {
		return bad("%d ranges and %d checksums are longer than a header may be", len(h.Ranges), len(h.CRCs))
	}
	if want := h.Participants().Count() * int(s.UnitBlocks()); len(h.CRCs) != want {
		return bad("%d checksums, want %d", len(h.CRCs), want)
	}
	if err := h.checkFill(); err != nil {
		return err
	}
	return h.checkRanges()
}

// checkFill: the payload needs every data shard of the mask and no more.
func (h *Header) checkFill() error {
	units, unit := layout.BlockCount(h.Shape.Data.Count()), h.Shape.UnitBlocks()
	n := layout.BlockCount(h.Blocks)
	if unit == 0 && (n != 0 || units != 1) || unit > 0 && (n > units*unit || n <= (units-1)*unit) {
		return errs.New(errs.Corrupt, "check stripe header", "%d payload blocks in %d units of %d blocks", n, units, unit)
	}
	return nil
}

// checkRanges: the write ranges add up to the payload.
func (h *Header) checkRanges() error {
	const volumeBlocks = layout.MaxVolumeBytes / layout.BlockSize
	var blocks uint64
	for i, r := range h.Ranges {
		if r.Count == 0 || r.Kind < Write || r.Kind > Zero || r.Start > volumeBlocks-layout.BlockNumber(r.Count) {
			return errs.New(errs.Corrupt, "check stripe header", "range %d: block %d, count %d, kind %d", i, r.Start, r.Count, r.Kind)
		}
		if r.Kind == Write {
			blocks += uint64(r.Count)
		}
	}
	if h.Flags&MapPage != 0 {
		if len(h.Ranges) != 0 || h.Blocks == 0 {
			return errs.New(errs.Corrupt, "check stripe header", "a map stripe with %d ranges and %d blocks", len(h.Ranges), h.Blocks)
		}
		return nil
	}
	if len(h.Ranges) == 0 || blocks != uint64(h.Blocks) {
		return errs.New(errs.Corrupt, "check stripe header", "%d ranges hold %d blocks, the payload %d", len(h.Ranges), blocks, h.Blocks)
	}
	return nil
}
