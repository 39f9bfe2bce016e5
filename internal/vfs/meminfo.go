package vfs

import (
	"io/fs"
	"path"
	"time"
)

// memInfo is fs.FileInfo of a Mem; times are zero.
type memInfo struct {
	name string // clean path
	size int64  // bytes
	dir  bool
}

func (i memInfo) Name() string       { return path.Base(i.name) }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }

func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

// memLock is a lock on a node of Mem.
type memLock struct {
	m        *Mem
	n        *node
	released bool // guarded by m.mu
}

// Close implements Lock; a second Close does nothing.
func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if !l.released {
		delete(l.m.locked, l.n)
	}
	l.released = true
	return nil
}
