package vfs

// faultFile is a file whose calls Fault counts.
type faultFile struct {
	fs    *Fault
	below File
	path  string // as opened
}

// ReadAt implements File.
func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.begin(OpRead, f.path); err != nil {
		return 0, err
	}
	return f.below.ReadAt(p, off)
}

// WriteAt implements File.
func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.begin(OpWrite, f.path); err != nil {
		return 0, err
	}
	return f.below.WriteAt(p, off)
}

// ReadvAt implements File.
func (f *faultFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	if err := f.fs.begin(OpRead, f.path); err != nil {
		return 0, err
	}
	return f.below.ReadvAt(bufs, off)
}

// WritevAt implements File.
func (f *faultFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	if err := f.fs.begin(OpWrite, f.path); err != nil {
		return 0, err
	}
	return f.below.WritevAt(bufs, off)
}

// WriteDirect implements File: a write, and a sync where it shall be durable.
func (f *faultFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	if err := f.fs.begin(OpWrite, f.path); err != nil {
		return 0, err
	}
	n, err := f.below.WriteDirect(p, off, false)
	if err == nil && durable {
		err = f.Sync()
	}
	return n, err
}

// Sync implements File. A failed one over a Mem leaves what Linux leaves: the
// un-synced content reads back, a later Sync succeeds without writing it, and a
// power cut loses it.
func (f *faultFile) Sync() error {
	if err := f.fs.begin(OpSync, f.path); err != nil {
		if m, ok := f.below.(*memFile); ok {
			m.failSync()
		}
		return err
	}
	return f.below.Sync()
}

// StartWriteback implements File.
func (f *faultFile) StartWriteback(off, n int64) error {
	if err := f.fs.begin(OpWriteback, f.path); err != nil {
		return err
	}
	return f.below.StartWriteback(off, n)
}

// Truncate implements File.
func (f *faultFile) Truncate(size int64) error {
	if err := f.fs.begin(OpTruncate, f.path); err != nil {
		return err
	}
	return f.below.Truncate(size)
}

// PunchHole implements File.
func (f *faultFile) PunchHole(off, n int64) error {
	if err := f.fs.begin(OpPunch, f.path); err != nil {
		return err
	}
	return f.below.PunchHole(off, n)
}

// Size implements File.
func (f *faultFile) Size() (int64, error) {
	if err := f.fs.begin(OpSize, f.path); err != nil {
		return 0, err
	}
	return f.below.Size()
}

// Sector implements File. It is not counted.
func (f *faultFile) Sector() int64 { return f.below.Sector() }

// Fd implements File: there is none, else calls would bypass the counting.
func (f *faultFile) Fd() (uintptr, bool) { return 0, false }

// Close implements File. It is not counted and never fails by injection.
func (f *faultFile) Close() error { return f.below.Close() }
