package store

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"strake/internal/errs"
)

// ballast is a file of zeros that is given up when the index finds the disk
// really full, so that deletes, fences and seals still have room for their
// records. While it is gone, appends are refused with NoSpace; it is made again
// once there is room for it twice.
type ballast struct {
	size int64
	mu   sync.Mutex // held across the I/O: it is given up once
	gone atomic.Bool
}

const (
	maxBallast     = 16 << 20
	ballastDivisor = 128 // of the device's size
)

// prepare makes the file when there is room, and finds out how things stand.
func (b *ballast) prepare(s *Store) error {
	u, err := s.data.Usage()
	if err != nil {
		return err
	}
	b.size = min(maxBallast, int64(u.Total/ballastDivisor)) &^ 4095
	if info, err := s.data.fs.Stat(reserveFile); err == nil && info.Size() >= b.size {
		return nil
	}
	b.gone.Store(true)
	if err := b.restore(s); err != nil && errs.KindOf(err) != errs.NoSpace {
		return err
	}
	return nil
}

// relieve gives the file up; false when it was gone already. It goes round the
// gate, as it runs inside one of its calls.
func (b *ballast) relieve(s *Store) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone.Swap(true) {
		return false
	}
	s.logger.Error("the disk is full: the reserve was given up for deletes, appends are refused")
	return s.data.fs.Remove(reserveFile) == nil
}

// check refuses appends while the reserve is gone and can't be made again.
func (b *ballast) check(s *Store) error {
	if !b.gone.Load() {
		return nil
	}
	return b.restore(s)
}

func (b *ballast) restore(s *Store) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gone.Load() {
		return nil
	}
	u, err := s.data.Usage()
	if err != nil {
		return err
	}
	if int64(u.Free) < 2*b.size {
		return errs.New(errs.NoSpace, "", "the disk is full, only %d bytes are free", u.Free).WithHint("delete something")
	}
	if err := b.write(s); err != nil {
		_ = s.data.Remove(reserveFile)
		return typed(err, "make reserve")
	}
	b.gone.Store(false)
	return nil
}

func (b *ballast) write(s *Store) error {
	if err := s.data.Remove(reserveFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.data.Create(reserveFile)
	if err != nil {
		return err
	}
	if err := errors.Join(writeZeros(f, b.size), f.Close()); err != nil {
		return err
	}
	return s.data.SyncDir(".")
}
