package disks

import (
	"slices"

	"strake/internal/vfs"
)

// remoteFile is an open file of a remoteFS, or a held lock.
type remoteFile struct {
	fs     *remoteFS
	handle uint64
	sector int64
}

var _ vfs.File = (*remoteFile)(nil)

func (r *remoteFile) do(q request) (*reply, error) {
	q.Handle = r.handle
	return r.fs.do(q)
}

func (r *remoteFile) only(q request) error {
	_, err := r.do(q)
	return err
}

// count makes a call that tells how many bytes it moved, also when it fails.
func (r *remoteFile) count(q request) (int, error) {
	a, err := r.do(q)
	if a == nil {
		return 0, err
	}
	return int(a.N), err
}

// ReadAt implements vfs.File.
func (r *remoteFile) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadvAt([][]byte{p}, off)
}

// ReadvAt implements vfs.File.
func (r *remoteFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	var want int64
	for _, b := range bufs {
		want += int64(len(b))
	}
	a, err := r.do(request{Call: callRead, Off: off, N: want})
	if a == nil {
		return 0, err
	}
	rest := a.Data
	for _, b := range bufs {
		rest = rest[copy(b, rest):]
	}
	return len(a.Data), err
}

// WriteAt implements vfs.File.
func (r *remoteFile) WriteAt(p []byte, off int64) (int, error) {
	return r.count(request{Call: callWrite, Off: off, Data: p})
}

// WritevAt implements vfs.File.
func (r *remoteFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	return r.WriteAt(slices.Concat(bufs...), off)
}

// WriteDirect implements vfs.File.
func (r *remoteFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	return r.count(request{Call: callWriteDirect, Off: off, Data: p, Durable: durable})
}

// Sector implements vfs.File.
func (r *remoteFile) Sector() int64 { return r.sector }

// Sync implements vfs.File.
func (r *remoteFile) Sync() error { return r.only(request{Call: callSync}) }

// StartWriteback implements vfs.File.
func (r *remoteFile) StartWriteback(off, n int64) error {
	return r.only(request{Call: callWriteback, Off: off, N: n})
}

// Truncate implements vfs.File.
func (r *remoteFile) Truncate(size int64) error { return r.only(request{Call: callTruncate, N: size}) }

// PunchHole implements vfs.File.
func (r *remoteFile) PunchHole(off, n int64) error {
	return r.only(request{Call: callPunch, Off: off, N: n})
}

// Size implements vfs.File.
func (r *remoteFile) Size() (int64, error) {
	a, err := r.do(request{Call: callSize})
	if err != nil {
		return 0, err
	}
	return a.N, nil
}

// Fd implements vfs.File: there is none.
func (r *remoteFile) Fd() (uintptr, bool) { return 0, false }

// Close implements vfs.File and vfs.Lock.
func (r *remoteFile) Close() error { return r.only(request{Call: callClose}) }
