package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// formPause is the wait between two tries to record the cell.
const formPause = 100 * time.Millisecond

// form gives the cell its identity. The first leader does it; an unequal repeat
// by a later one is refused, and the first stands.
func (s *Server) form(ctx context.Context) error {
	for ctx.Err() == nil {
		_, err := s.propose(ctx, state.FormCell{Cell: layout.CellID(random()), ShardLength: layout.ShardOffset(s.opts.ShardLength)})
		if cell := s.machine.View().Cell().ID; err == nil || cell != 0 {
			s.log.Info("cell formed", "cell", fmt.Sprintf("%016x", uint64(cell)))
			return nil
		}
		if kind := errs.KindOf(err); kind != errs.Unavailable && kind != errs.Overloaded {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(formPause):
		}
	}
	return ctx.Err()
}

// random draws an identifier; never 0, nor all ones.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])>>1 | 1
}
