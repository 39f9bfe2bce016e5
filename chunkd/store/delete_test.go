package store

import (
	"testing"

	"strake/internal/errs"
)

// A create that was held up comes after the delete that gave its segment up: what
// it made would stay for ever, as nobody knows of it.
func TestCreateAfterItsDeleteIsRefused(t *testing.T) {
	mem := newMem()
	s := opened(t, formatted(t, mem))
	is(t, s.Delete(testRef(1)), errs.NotHere)
	is(t, s.Create(testSpec(1)), errs.Conflict)
	ok(t, s.Delete(testRef(1)))
	next := testSpec(1)
	next.Generation = 2
	ok(t, s.Create(next))
	is(t, s.Delete(testRef(1)), errs.OK)
	ok(t, s.Check())
	ok(t, s.Close())
}
