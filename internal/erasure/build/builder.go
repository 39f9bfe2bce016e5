package build

import (
	"math/bits"
	"sync"

	"strake/internal/erasure"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const (
	// column bounds the bytes of one unit that are worked on at once.
	column = 16 << 10
	// smallest is the size of the smallest pooled buffer; classes double.
	smallest = layout.BlockSize
	classes  = 15 // up to MaxParity x MaxStripePayload
)

// zeros pads the last unit. It is never written to.
var zeros [64 << 10]byte

// Builder makes units. Safe for concurrent use.
type Builder struct {
	coders  *erasure.Set
	zeroCRC uint32
	units   sync.Pool          // *Units
	parity  [classes]sync.Pool // *[]byte of smallest << class bytes
}

// New makes a builder.
func New(coders *erasure.Set) *Builder {
	return &Builder{coders: coders, zeroCRC: stripe.BlockCRC(zeros[:layout.BlockSize])}
}

// Build makes the units of a stripe from its payload: h.Blocks blocks in pieces
// of whole blocks. It fills in h.CRCs (reusing their array); the rest of h is
// given, but for Shard, which does not matter. The units hold slices of the
// payload, which must not change until they are released.
// Error: InvalidArgument when payload, blocks and shape don't fit together.
func (b *Builder) Build(h *stripe.Header, payload [][]byte) (*Units, error) {
	if err := checkPayload(h, payload); err != nil {
		return nil, err
	}
	coder, err := b.coders.For(h.Geometry)
	if err != nil {
		return nil, err
	}
	u, _ := b.units.Get().(*Units)
	if u == nil {
		u = &Units{builder: b}
	}
	u.cut(h, payload)
	u.addParity(h)
	crcs := h.Participants().Count() * int(h.Shape.UnitBlocks())
	if cap(h.CRCs) < crcs {
		h.CRCs = make([]uint32, crcs)
	}
	h.CRCs = h.CRCs[:crcs]
	if err := u.encode(h, coder); err != nil {
		u.Release()
		return nil, err
	}
	return u, nil
}

// checkPayload: the payload needs every data shard of the mask and no more.
func checkPayload(h *stripe.Header, payload [][]byte) error {
	bad := func(format string, args ...any) error {
		return errs.New(errs.InvalidArgument, "build stripe", format, args...)
	}
	bytes := 0
	for i, p := range payload {
		if len(p)%layout.BlockSize != 0 {
			return bad("piece %d has %d bytes, no whole blocks", i, len(p))
		}
		bytes += len(p)
	}
	n, units, unit := layout.BlockCount(h.Blocks), layout.BlockCount(h.Shape.Data.Count()), h.Shape.UnitBlocks()
	switch {
	case !h.Geometry.Valid() || h.Shape.Data == 0 || h.Shape.Data&^h.Geometry.DataMask() != 0 || h.Shape.Unit%layout.BlockSize != 0:
		return bad("data shards %b with units of %d bytes in geometry %v", h.Shape.Data, h.Shape.Unit, h.Geometry)
	case h.Blocks > layout.MaxStripeBlocks || int64(bytes) != n.Bytes():
		return bad("%d bytes of payload for %d blocks", bytes, h.Blocks)
	case n > units*unit || unit > 0 && n <= (units-1)*unit:
		return bad("%d blocks in %d units of %d blocks", n, units, unit)
	}
	return nil
}

// buffer gives at least n bytes.
func (b *Builder) buffer(n int) (*[]byte, int) {
	class := max(0, bits.Len(uint(n-1))-bits.Len(smallest-1))
	if p, _ := b.parity[class].Get().(*[]byte); p != nil {
		return p, class
	}
	p := make([]byte, smallest<<class)
	return &p, class
}
