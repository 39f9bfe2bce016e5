package state

import "strake/internal/errs"

// dispatch carries out one command: what no state would accept is refused
// first, then repeats are answered, then the command decides. A command that was carried
// out gives the state its version.
func (t *tables) dispatch(c Command) Result {
	if err := c.check(); err != nil {
		return refused(err)
	}
	if memorable(c) && c.CommandID() == 0 {
		return refused(errs.New(errs.InvalidArgument, "apply command", "a command that makes something needs a command id").
			WithHint("draw a random command id, and use it again for each repeat"))
	}
	if t.cell.ID == 0 && c.Type() != TypeFormCell {
		return refused(errs.New(errs.Unavailable, "apply command", "the cell has not formed").
			WithHint("wait until the metadata servers have formed the cell"))
	}
	if r, ok := t.repeated(c); ok {
		return r
	}
	var r Result
	if err := c.apply(t, &r); err != nil {
		return refused(err)
	}
	t.version = max(t.version, Since(c))
	t.remember(c, &r)
	return r
}
