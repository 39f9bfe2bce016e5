package erasure

import (
	"sync"

	"github.com/klauspost/reedsolomon"

	"strake/internal/errs"
	"strake/internal/layout"
)

// pattern names a computation: which data units the stripe has, which units are
// read, which are computed.
type pattern struct {
	data, inputs, outputs layout.Mask
}

// program computes outputs as sums of inputs. Immutable, but for its pool.
type program struct {
	inputs, outputs layout.Mask
	rows            [][]byte            // per output its coefficients over the inputs
	kernel          reedsolomon.Encoder // inputs to outputs; nil for fewer than two inputs
	scratch         sync.Pool           // *[][]byte: inputs then outputs
}

// newProgram makes the program of a pattern whose inputs are as many as its
// data units.
func newProgram(code [][]byte, at pattern) (*program, error) {
	p := &program{inputs: at.inputs, outputs: at.outputs}
	n := at.inputs.Count() + at.outputs.Count()
	p.scratch.New = func() any { s := make([][]byte, n); return &s }
	if at.inputs == 0 {
		p.rows = make([][]byte, at.outputs.Count())
		return p, nil
	}
	known, err := dataFromInputs(code, at)
	if err != nil {
		return nil, err
	}
	for o := at.outputs; o != 0; o &= o - 1 {
		s, _ := o.Nth(0)
		p.rows = append(p.rows, combine(pick(code[s], at.data), known, at.inputs.Count()))
	}
	if at.inputs.Count() == 1 {
		return p, nil
	}
	p.kernel, err = reedsolomon.New(at.inputs.Count(), len(p.rows), reedsolomon.WithCustomMatrix(p.rows),
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
	return p, err
}

// dataFromInputs gives one row per data unit: its coefficients over the inputs.
// The lost data units solve as many parity equations as they are:
// M·lost = parity + N·known, so that lost = M⁻¹·parity + M⁻¹·N·known.
func dataFromInputs(code [][]byte, at pattern) ([][]byte, error) {
	known, lost, parity := at.inputs&at.data, at.data&^at.inputs, at.inputs&^at.data
	var m [][]byte    // parity equations over the lost units
	var side [][]byte // what each equation's other side is, over the inputs
	for p := parity; p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		m = append(m, pick(code[s], lost))
		row := make([]byte, at.inputs.Count())
		copy(row, pick(code[s], known)) // inputs are known data, then parity
		row[at.inputs.Rank(s)] = 1
		side = append(side, row)
	}
	inverse, err := invert(m)
	if err != nil {
		return nil, err
	}
	var rows [][]byte
	for d := at.data; d != 0; d &= d - 1 {
		s, _ := d.Nth(0)
		row := make([]byte, at.inputs.Count())
		if known.Has(s) {
			row[at.inputs.Rank(s)] = 1
		} else {
			row = combine(inverse[lost.Rank(s)], side, len(row))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// pick gives the coefficients of the members of a set.
func pick(row []byte, set layout.Mask) []byte {
	var out []byte
	for ; set != 0; set &= set - 1 {
		s, _ := set.Nth(0)
		out = append(out, row[s])
	}
	return out
}

// run computes the outputs in place.
func (p *program) run(units [][]byte) error {
	scratch := p.scratch.Get().(*[][]byte)
	defer p.release(scratch)
	if err := p.gather(*scratch, units); err != nil {
		return err
	}
	if p.kernel == nil {
		p.scale(*scratch)
		return nil
	}
	if err := p.kernel.Encode(*scratch); err != nil {
		return errs.As(err, errs.Internal, "code stripe")
	}
	return nil
}

// gather lists the inputs, then the outputs; all have one length.
func (p *program) gather(into, units [][]byte) error {
	n := 0
	for _, set := range [...]layout.Mask{p.inputs, p.outputs} {
		for ; set != 0; set &= set - 1 {
			s, _ := set.Nth(0)
			into[n] = units[s]
			if len(into[n]) != len(into[0]) || len(into[n]) == 0 {
				return errs.New(errs.InvalidArgument, "code stripe", "the unit of shard %d has %d bytes, others have %d", s, len(into[n]), len(into[0]))
			}
			n++
		}
	}
	return nil
}

// scale is the way for one input or none, the commonest stripe of all: it needs
// no tables and allocates nothing.
func (p *program) scale(units [][]byte) {
	var field reedsolomon.LowLevel
	inputs := p.inputs.Count()
	for i, out := range units[inputs:] {
		if inputs == 0 {
			clear(out)
			continue
		}
		field.GalMulSlice(p.rows[i][0], units[0], out)
	}
}

func (p *program) release(scratch *[][]byte) {
	clear(*scratch)
	p.scratch.Put(scratch)
}
