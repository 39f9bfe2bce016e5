package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Cell is the cell's identity; ID is 0 before FormCell.
type Cell struct {
	ID          layout.CellID      `cbor:"1,keyasint"`
	ShardLength layout.ShardOffset `cbor:"2,keyasint"`
	Members     []Member           `cbor:"3,keyasint,omitempty"` // metadata servers that were seen, by address
	Restored    []Gap              `cbor:"4,keyasint,omitempty"` // one for each restoration from a backup
	// Rebalancing is the log index at which the rebalance under way began; 0: none is.
	Rebalancing uint64 `cbor:"5,keyasint,omitempty"`
}

// Member is what is known of a metadata server's directory. An old copy of it has
// the same number and was opened less often.
type Member struct {
	Address   string `cbor:"1,keyasint"`
	Directory uint64 `cbor:"2,keyasint"` // drawn when the directory was first used
	Life      uint64 `cbor:"3,keyasint"` // how often it was opened
}

// Gap are the segment ids that may have been handed out after a backup was made and
// before it was restored: those above After, up to Last. Nobody knows what they hold.
type Gap struct {
	After layout.SegmentID `cbor:"1,keyasint,omitempty"`
	Last  layout.SegmentID `cbor:"2,keyasint"`
}

// Unknown tells whether a segment may be of the time between a backup and its
// restoration.
func (c *Cell) Unknown(id layout.SegmentID) bool {
	for _, g := range c.Restored {
		if id > g.After && id <= g.Last {
			return true
		}
	}
	return false
}

// Member gives what is known of the server of an address; zero when nothing is.
func (c *Cell) Member(address string) Member {
	for _, m := range c.Members {
		if m.Address == address {
			return m
		}
	}
	return Member{}
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
	if t.cell.ID == want.ID && t.cell.ShardLength == want.ShardLength {
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
