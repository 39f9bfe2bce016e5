package vfs

import (
	"sync"
	"time"
)

// Shape gives a file system the speed of another device. All its files share
// one timeline.
//
// A read and a direct write take device time at once. Another write goes into a write-back cache: it
// takes device time when more than the cache holds is un-synced, and Sync takes
// it for what the file has un-synced. Write-back merges neighbours, so that a
// Sync is one request however many writes it covers. SyncDir is one request;
// other calls on names are free. The time that the file system below needs is
// part of the emulated time as long as it is shorter.
type Shape struct {
	below FS
	disk  *schedule

	mu    sync.Mutex        // guards all below and every dirty; not held while sleeping
	files map[string]*dirty // by clean path: open, or with something un-synced
	total int64             // un-synced bytes of all files; at most the cache after each call
}

var _ FS = (*Shape)(nil)

// dirty is what the cache knows of one file. It follows the file in Rename; a
// second name (Link) has a cache of its own.
type dirty struct {
	name  string // clean path; the file is removed when files holds no such entry
	bytes int64  // un-synced, not yet booked on the device
	opens int
	until time.Time // when what was booked in the background is written
}

// NewShape wraps below. A nil clock is the system's.
func NewShape(below FS, spec ShapeSpec, clock Clock) *Shape {
	if clock == nil {
		clock = systemClock{}
	}
	if spec.Cache == 0 {
		spec.Cache = DefaultCache
	}
	return &Shape{below: below, disk: &schedule{spec: spec, clock: clock}, files: map[string]*dirty{}}
}

// read books a read.
func (s *Shape) read(n int) time.Time {
	return s.disk.reserve(int64(n), s.disk.spec.Read).Add(s.disk.spec.Latency)
}

// wrote puts n bytes into the cache and, when it is over its bound, books as
// much of the file as is over it. It waits for its turn, as a writer that the
// kernel throttles does.
func (s *Shape) wrote(d *dirty, n int) {
	s.mu.Lock()
	d.bytes += int64(n)
	s.total += int64(n)
	over := min(max(0, s.total-s.disk.spec.Cache), d.bytes)
	s.take(d, over)
	s.mu.Unlock()
	if over > 0 {
		s.disk.wait(s.disk.reserve(over, s.disk.spec.Write))
	}
}

// sync books all of the file's cache and tells when it is durable.
func (s *Shape) sync(d *dirty) time.Time {
	s.mu.Lock()
	n, until := s.take(d, d.bytes), d.until
	s.mu.Unlock()
	end := s.disk.reserve(n, s.disk.spec.Write)
	if until.After(end) {
		end = until
	}
	return end.Add(s.disk.spec.Latency)
}

// writeback books up to n bytes and waits only while the device is behind by
// more than a full cache, so that the cache's bound holds.
func (s *Shape) writeback(d *dirty, n int64) {
	s.mu.Lock()
	n = s.take(d, min(n, d.bytes))
	s.mu.Unlock()
	if n == 0 {
		return
	}
	end := s.disk.reserve(n, s.disk.spec.Write)
	s.mu.Lock()
	if end.After(d.until) {
		d.until = end
	}
	s.mu.Unlock()
	s.disk.wait(end.Add(-costOf(s.disk.spec.Cache, s.disk.spec.Write)))
}

// take removes n bytes from the cache. It is called with mu held.
func (s *Shape) take(d *dirty, n int64) int64 {
	d.bytes -= n
	s.total -= n
	return n
}

// opened counts a handle on a file.
func (s *Shape) opened(name string) *dirty {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.files[name]
	if d == nil {
		d = &dirty{name: name}
		s.files[name] = d
	}
	d.opens++
	return d
}

// closed counts a handle off. What is un-synced stays in the cache, unless the
// file has been removed.
func (s *Shape) closed(d *dirty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.opens--
	removed := s.files[d.name] != d
	switch {
	case d.opens > 0:
	case removed:
		s.take(d, d.bytes)
	case d.bytes == 0:
		delete(s.files, d.name)
	}
}

// moved follows a file to another name, in place of what had it.
func (s *Shape) moved(from, to string) {
	s.forget(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.files[from]; d != nil {
		d.name = to
		s.files[to] = d
		delete(s.files, from)
	}
}

// forget drops what a removed file had un-synced.
func (s *Shape) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.files[name]; d != nil {
		s.take(d, d.bytes)
		delete(s.files, name)
	}
}
