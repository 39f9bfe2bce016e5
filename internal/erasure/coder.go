package erasure

import (
	"sync"

	"strake/internal/errs"
	"strake/internal/layout"
)

// maxPrograms bounds the kept programs of one coder. Writers need k² at most
// (widths and rotations); readers a few per failed device.
const maxPrograms = 4096

// Coder encodes and decodes stripes of one geometry. Safe for concurrent use.
type Coder struct {
	geometry layout.Geometry
	rows     [][]byte // k+m rows of k coefficients; immutable

	mu       sync.RWMutex
	programs map[pattern]*program // guarded by mu; at most maxPrograms
}

// For makes a coder. Error: InvalidArgument for a geometry out of range.
func For(g layout.Geometry) (*Coder, error) {
	if !g.Valid() {
		return nil, errs.New(errs.InvalidArgument, "make coder", "geometry %v, at most %d+%d is possible", g, layout.MaxData, layout.MaxParity)
	}
	rows, err := matrixOf(g)
	if err != nil {
		return nil, errs.As(err, errs.Internal, "make coder %v", g)
	}
	return &Coder{geometry: g, rows: rows, programs: map[pattern]*program{}}, nil
}

// Geometry is what the coder was made for.
func (c *Coder) Geometry() layout.Geometry { return c.geometry }

// Encode fills the parity units of a stripe. units are by shard: a nil data
// unit reads as zeros, every parity unit is a buffer to fill. All have the same
// length: whole units, or the same range of each. Error: InvalidArgument.
func (c *Coder) Encode(units [][]byte) error {
	if err := c.checkCount(units); err != nil {
		return err
	}
	var data layout.Mask
	for s := range units[:c.geometry.K] {
		if units[s] != nil {
			data = data.With(layout.ShardIndex(s))
		}
	}
	p, err := c.program(pattern{data: data, inputs: data, outputs: c.geometry.ParityMask()})
	if err != nil {
		return err
	}
	return p.run(units)
}

// Reconstruct computes the units in want from those in have. units are by
// shard; those in want are buffers to fill, others than have and want are not
// looked at. Data units in zero are known to be zeros and need no bytes. All
// have the same length: whole units, or the same range of each. As many units
// of have are read as the stripe has data units outside zero; data first.
// Errors: Unavailable when have is too small, InvalidArgument.
func (c *Coder) Reconstruct(units [][]byte, have, zero, want layout.Mask) error {
	if err := c.checkCount(units); err != nil {
		return err
	}
	all, data := c.geometry.DataMask()|c.geometry.ParityMask(), c.geometry.DataMask()&^zero
	switch {
	case (have|want)&^all != 0 || zero&^c.geometry.DataMask() != 0:
		return errs.New(errs.InvalidArgument, "reconstruct", "have %b, zero %b, want %b in geometry %v", have, zero, want, c.geometry)
	case have&want != 0:
		return errs.New(errs.InvalidArgument, "reconstruct", "shards %b are both at hand and wanted", have&want)
	case want == 0:
		return nil
	}
	inputs, ok := choose(have&^zero, data)
	if !ok {
		return errs.New(errs.Unavailable, "reconstruct", "%d units at hand (%b), %d needed", (have &^ zero).Count(), have&^zero, data.Count())
	}
	for z := want & zero; z != 0; z &= z - 1 {
		s, _ := z.Nth(0)
		clear(units[s])
	}
	if want &^= zero; want == 0 {
		return nil
	}
	p, err := c.program(pattern{data: data, inputs: inputs, outputs: want})
	if err != nil {
		return err
	}
	return p.run(units)
}

// choose takes as many units of have as there are data units: data first, then
// parity in order.
func choose(have, data layout.Mask) (inputs layout.Mask, ok bool) {
	inputs = have & data
	for parity := have &^ data; inputs.Count() < data.Count(); parity &= parity - 1 {
		s, more := parity.Nth(0)
		if !more {
			return 0, false
		}
		inputs = inputs.With(s)
	}
	return inputs, true
}

func (c *Coder) checkCount(units [][]byte) error {
	if len(units) != c.geometry.Shards() {
		return errs.New(errs.InvalidArgument, "code stripe", "%d units for geometry %v", len(units), c.geometry)
	}
	return nil
}

// program gives the program of a pattern, made on first use.
func (c *Coder) program(at pattern) (*program, error) {
	c.mu.RLock()
	p := c.programs[at]
	c.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p, err := newProgram(c.rows, at)
	if err != nil {
		return nil, errs.As(err, errs.Internal, "code stripe %v", c.geometry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[at] = p
	return p, nil
}
