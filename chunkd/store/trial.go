package store

import (
	"errors"
	"io/fs"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// Trial is a file without a name on the device, to measure it by. It holds no data
// and is gone after Close, or after a crash.
type Trial struct {
	file vfs.File
	size int64
}

// NewTrial makes a file of size bytes, a multiple of 4 KiB, and writes it once, so
// that later writes find their place; at least 4 KiB, and less than size when enough
// says so. It keeps the upkeep's part of the reserve free. Errors: NoSpace,
// Unavailable.
func (s *Store) NewTrial(size int64, enough func() bool) (*Trial, error) {
	disk, err := s.data.Usage()
	if err != nil {
		return nil, typed(err, "make a trial file")
	}
	if free := s.table.account().free(disk.Free, s.table.account()) - int64(layout.ForUpkeep.Kept(disk.Total)); size > free {
		return nil, errs.New(errs.NoSpace, "make a trial file", "%d bytes are wanted, %d are free", size, max(0, free))
	}
	s.trials.Lock() // held across the I/O: the name is one
	defer s.trials.Unlock()
	if err := s.data.Remove(trialFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, typed(err, "make a trial file")
	}
	f, err := s.data.Create(trialFile)
	if err != nil {
		return nil, typed(err, "make a trial file")
	}
	t := &Trial{file: f}
	if err := errors.Join(s.data.Remove(trialFile), t.extend(size, enough), f.Sync()); err != nil {
		return nil, typed(errors.Join(err, f.Close()), "make a trial file")
	}
	return t, nil
}

// extend writes the file for the first time.
func (t *Trial) extend(size int64, enough func() bool) error {
	b := vfs.AlignedBytes(int(min(size, 1<<20)))
	for t.size < size && (t.size == 0 || !enough()) {
		n := min(int64(len(b)), size-t.size)
		if err := t.Write(b[:n], t.size, false); err != nil {
			return err
		}
		t.size += n
	}
	return nil
}

// Size is the file's length in bytes.
func (t *Trial) Size() int64 { return t.size }

// Write writes p, from vfs.AlignedBytes, at off, past the page cache where that can
// be. After an error of a durable write the device answers no more.
func (t *Trial) Write(p []byte, off int64, durable bool) error {
	_, err := t.file.WriteDirect(p, off, durable)
	return err
}

// Read reads p at off. What was written since it was read last comes from the device.
func (t *Trial) Read(p []byte, off int64) error {
	_, err := t.file.ReadAt(p, off)
	return err
}

// Sync makes durable what was written.
func (t *Trial) Sync() error { return t.file.Sync() }

// Close gives the file's room back.
func (t *Trial) Close() error { return t.file.Close() }
