package server

import (
	"strake/chunkd/sched"
	"strake/internal/vfs"
)

// sendfileFrom is the length of a range, in bytes, from which it is sent from the
// page cache (docs/performance.md).
const sendfileFrom = 64 << 10

// filePieces makes the request's pieces of files, to be sent from the page cache
// without a copy here. false, and no pieces, when the connection can't do that or
// a part would have to come from memory or from the device: then it is read, in the
// device's turns. The turns that are taken here are for the account.
func (c *conn) filePieces(r *request) (bool, error) {
	if c.files == nil {
		return false, nil
	}
	for _, g := range r.read.Ranges {
		fd, off, release, ok := uintptr(0), int64(0), func() {}, false
		if g.Length >= sendfileFrom {
			fd, off, release, ok = r.dev.Store.File(r.read.Shard, g)
		}
		if !ok {
			c.dropPieces(r)
			return false, nil
		}
		r.pieces = append(r.pieces, piece{file: fileRange{fd, off, int(g.Length), release}})
		if !vfs.Cached(fd, off, int64(g.Length)) {
			c.dropPieces(r)
			return false, nil
		}
	}
	for left := r.read.Bytes(); left > 0; left -= sched.Quantum {
		tag := r.tag(false, min(left, sched.Quantum))
		tag.Part = r.began
		if err := r.turn(c.srv.ctx, tag, r.lookWork); err != nil {
			return false, err // the caller drops the pieces
		}
	}
	return true, nil
}

// lookAgain is the work of what is sent from the page cache: none, but to see that
// the reader may have it.
func (r *request) lookAgain() {
	from := r.started()
	r.err = r.permitted()
	r.ended(from)
}

// dropPieces gives back what the request's pieces hold.
func (c *conn) dropPieces(r *request) {
	for _, p := range r.pieces {
		if c.srv.pool.put(p.buf); p.file.release != nil {
			p.file.release()
		}
	}
	clear(r.pieces)
	r.pieces = r.pieces[:0]
}
