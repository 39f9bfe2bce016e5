package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Cell is the cell's identity; ID is 0 before FormCell.
type Cell struct {
	ID          layout.CellID      `cbor:"1,keyasint"`
	ShardLength layout.ShardOffset `cbor:"2,keyasint"`
}

func (c FormCell) check() error {
	if c.Cell == 0 {
		return errs.New(errs.InvalidArgument, "form cell", "the cell id is zero").WithHint("draw a random cell id")
	}
	if c.ShardLength == 0 {
		return nil
	}
	return checkShardLength("form cell", c.ShardLength)
}

func checkShardLength(op string, n layout.ShardOffset) error {
	if n < layout.BlockSize || n%layout.BlockSize != 0 || n > layout.MaxShardLength {
		return errs.New(errs.InvalidArgument, op, "shard length of %d bytes", n).
			WithHint("a shard length is a multiple of %d, up to %d", layout.BlockSize, layout.MaxShardLength)
	}
	return nil
}

func (c FormCell) apply(t *tables, r *Result) error {
	want := Cell{ID: c.Cell, ShardLength: c.ShardLength}
	if want.ShardLength == 0 {
		want.ShardLength = layout.DefaultShardLength
	}
	r.Cell = want.ID
	if t.cell == want {
		r.Repeat = true
		return nil
	}
	if t.cell.ID != 0 {
		return errs.New(errs.Conflict, "form cell", "this is cell %x with shards of %d bytes already, not %x with %d",
			uint64(t.cell.ID), t.cell.ShardLength, uint64(want.ID), want.ShardLength).
			WithHint("a cell forms once; start a new one in empty directories")
	}
	t.cell = want
	r.emit(CellFormed{Cell: want.ID, ShardLength: want.ShardLength})
	return nil
}
