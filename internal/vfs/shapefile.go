package vfs

// shapeFile is a file that Shape slows down. Methods that it does not have cost
// no device time.
type shapeFile struct {
	File
	fs    *Shape
	dirty *dirty // guarded by fs.mu
}

// ReadAt implements File.
func (f *shapeFile) ReadAt(p []byte, off int64) (int, error) {
	end := f.fs.read(len(p))
	n, err := f.File.ReadAt(p, off)
	f.fs.disk.wait(end)
	return n, err
}

// ReadvAt implements File.
func (f *shapeFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for _, p := range bufs {
		total += len(p)
	}
	end := f.fs.read(total)
	n, err := f.File.ReadvAt(bufs, off)
	f.fs.disk.wait(end)
	return n, err
}

// WriteAt implements File.
func (f *shapeFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.fs.wrote(f.dirty, n)
	return n, err
}

// WritevAt implements File.
func (f *shapeFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	n, err := f.File.WritevAt(bufs, off)
	f.fs.wrote(f.dirty, n)
	return n, err
}

// WriteDirect implements File: it takes device time at once. What is durable has
// a latency of its own.
func (f *shapeFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	end := f.fs.disk.reserve(int64(len(p)), f.fs.disk.spec.Write).Add(f.fs.disk.spec.Latency)
	n, err := f.File.WriteDirect(p, off, durable)
	if durable {
		end = end.Add(f.fs.disk.spec.Latency)
	}
	f.fs.disk.wait(end)
	return n, err
}

// Sync implements File.
func (f *shapeFile) Sync() error {
	end := f.fs.sync(f.dirty)
	err := f.File.Sync()
	f.fs.disk.wait(end)
	return err
}

// StartWriteback implements File.
func (f *shapeFile) StartWriteback(off, n int64) error {
	if err := f.File.StartWriteback(off, n); err != nil {
		return err
	}
	f.fs.writeback(f.dirty, n)
	return nil
}

// Fd implements File: there is none, else calls would bypass the device.
func (f *shapeFile) Fd() (uintptr, bool) { return 0, false }

// Close implements File. What is un-synced stays in the cache.
func (f *shapeFile) Close() error {
	err := f.File.Close()
	if err == nil {
		f.fs.closed(f.dirty)
	}
	return err
}
