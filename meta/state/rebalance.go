package state

// Rebalance begins or ends the moving of sealed segments from full devices to
// empty ones. The leader ends it when devices are even, or can't become more so.
type Rebalance struct {
	ID CommandID `cbor:"1,keyasint,omitempty"`
	On bool      `cbor:"2,keyasint,omitempty"`
	// Began is, with On false and not 0, the rebalance that is meant: that of this
	// log index. Another one goes on.
	Began uint64 `cbor:"3,keyasint,omitempty"`
	// Why is told when the leader ends it.
	Why string `cbor:"4,keyasint,omitempty"`
}

// Type, CommandID and request: see Command.
func (c Rebalance) Type() Type           { return TypeRebalance }
func (c Rebalance) CommandID() CommandID { return c.ID }
func (c Rebalance) request() Command     { return c }
func (c Rebalance) check() error         { return nil }

// apply never refuses: to begin what goes on already changes nothing.
func (c Rebalance) apply(t *tables, r *Result) error {
	began := t.cell.Rebalancing
	switch {
	case c.On && began == 0:
		t.cell.Rebalancing = t.applied
		r.emit(RebalanceBegan{})
	case !c.On && began != 0 && (c.Began == 0 || c.Began == began):
		t.cell.Rebalancing = 0
		r.emit(RebalanceEnded{Why: c.Why})
	}
	return nil
}
