package vfs

import "io/fs"

// Create implements FS.
func (s *Shape) Create(path string) (File, error) { return s.open(path, s.below.Create) }

// Open implements FS.
func (s *Shape) Open(path string) (File, error) { return s.open(path, s.below.Open) }

// OpenRead implements FS.
func (s *Shape) OpenRead(path string) (File, error) { return s.open(path, s.below.OpenRead) }

func (s *Shape) open(path string, open func(string) (File, error)) (File, error) {
	name, err := Clean(path)
	if err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return &shapeFile{File: f, fs: s, dirty: s.opened(name)}, nil
}

// Remove implements FS. What a removed file had un-synced is never written.
func (s *Shape) Remove(path string) error {
	name, err := Clean(path)
	if err != nil {
		return err
	}
	if err = s.below.Remove(name); err == nil {
		s.forget(name)
	}
	return err
}

// Rename implements FS.
func (s *Shape) Rename(from, to string) error {
	a, b, err := cleanPair(from, to)
	if err != nil {
		return err
	}
	if err = s.below.Rename(a, b); err == nil && a != b {
		s.moved(a, b)
	}
	return err
}

// Link implements FS.
func (s *Shape) Link(from, to string) error { return s.below.Link(from, to) }

// MkdirAll implements FS.
func (s *Shape) MkdirAll(path string) error { return s.below.MkdirAll(path) }

// List implements FS.
func (s *Shape) List(path string) ([]string, error) { return s.below.List(path) }

// Stat implements FS.
func (s *Shape) Stat(path string) (fs.FileInfo, error) { return s.below.Stat(path) }

// SyncDir implements FS.
func (s *Shape) SyncDir(path string) error {
	end := s.disk.reserve(0, 0).Add(s.disk.spec.Latency)
	err := s.below.SyncDir(path)
	s.disk.wait(end)
	return err
}

// Lock implements FS.
func (s *Shape) Lock(path string) (Lock, error) { return s.below.Lock(path) }

// Usage implements FS.
func (s *Shape) Usage() (Usage, error) { return s.below.Usage() }
