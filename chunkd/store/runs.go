package store

import "strake/internal/vfs"

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
	buf   *[]byte // where a long run is put together; made with the first
	at    int64   // where the run begins
	bytes int
	units [][]byte
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
	case r.bytes >= directFrom:
		if len(*r.buf) < r.bytes {
			*r.buf = vfs.AlignedBytes(max(r.bytes, maxRun))
		}
		n := 0
		for _, u := range r.units {
			n += copy((*r.buf)[n:], u)
		}
		_, err = r.file.WriteDirect((*r.buf)[:n], r.at, false)
	case len(r.units) == 1:
		_, err = r.file.WriteAt(r.units[0], r.at)
	default:
		_, err = r.file.WritevAt(r.units, r.at)
	}
	clear(r.units)
	r.units, r.bytes = r.units[:0], 0
	return err
}
