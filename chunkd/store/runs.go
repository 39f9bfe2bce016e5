package store

import (
	"strake/internal/layout"
	"strake/internal/vfs"
)

const (
	// maxRun is the most bytes that are written in one call.
	maxRun = 1 << 20
	// directFrom is the size of a write, in bytes, from which it is cheaper to pass
	// the page cache by (docs/performance.md).
	directFrom = 64 << 10
)

// runs writes units to a data file, those that lie one after another in one call.
// A parity shard of narrow stripes is one long run; in a data shard they leave
// holes.
type runs struct {
	file  *handle
	own   Queue
	buf   *[]byte // where a long run is put together; made with the first
	at    int64   // where the run begins
	bytes int
	units [][]byte
	dirty int // bytes in the page cache that no sync covers
}

// add takes the next unit, in ascending order; its bytes are looked at until the
// flush.
func (r *runs) add(off int64, unit []byte) error {
	if off != r.at+int64(r.bytes) || r.bytes+len(unit) > maxRun {
		if err := r.flush(); err != nil {
			return err
		}
		r.at = off
	}
	if len(unit) > 0 {
		r.bytes += len(unit)
		r.units = append(r.units, unit)
	}
	return nil
}

// flush writes what was added.
func (r *runs) flush() (err error) {
	switch {
	case r.bytes == 0:
	case r.bytes >= directFrom || r.bytes > r.own.Piece():
		if len(*r.buf) < r.bytes {
			*r.buf = vfs.AlignedBytes(max(r.bytes, maxRun))
		}
		n := 0
		for _, u := range r.units {
			n += copy((*r.buf)[n:], u)
		}
		err = r.direct((*r.buf)[:n])
	default:
		err = r.cached()
	}
	clear(r.units)
	r.units, r.bytes = r.units[:0], 0
	return err
}

// direct writes a long run past the page cache, each piece in its turn.
func (r *runs) direct(p []byte) (err error) {
	for at := r.at; len(p) > 0 && err == nil; {
		n := min(len(p), max(layout.BlockSize, r.own.Piece()&^(layout.BlockSize-1)))
		r.own.Turn(n, func() { _, err = r.file.WriteDirect(p[:n], at, false) })
		p, at = p[n:], at+int64(n)
	}
	return err
}

// cached writes a short run into the page cache, and syncs before that holds more
// than a piece: else the sync at the end would be one long burst.
func (r *runs) cached() (err error) {
	if r.dirty+r.bytes > r.own.Piece() {
		if err := r.sync(); err != nil {
			return err
		}
	}
	r.dirty += r.bytes
	if len(r.units) == 1 {
		_, err = r.file.WriteAt(r.units[0], r.at)
	} else {
		_, err = r.file.WritevAt(r.units, r.at)
	}
	return err
}

// sync makes all that was flushed durable.
func (r *runs) sync() (err error) {
	r.own.Turn(r.dirty, func() { err = r.file.Sync() })
	r.dirty = 0
	return err
}
