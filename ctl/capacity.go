package ctl

import (
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"

	"strake/internal/vfs"
)

// limited opens devices that say that they are no larger than a limit, whatever
// the file system below has: for a directory that shares its disk with others.
// The store refuses what would go beyond, as on a disk of that size.
func limited(limit uint64) func(dir string) (vfs.FS, error) {
	return func(dir string) (vfs.FS, error) {
		below, err := vfs.NewOS(dir)
		if err != nil {
			return nil, err
		}
		return &limitedFS{FS: below, dir: dir, limit: limit}, nil
	}
}

// limitedFS is a file system with another Usage.
type limitedFS struct {
	vfs.FS
	dir   string
	limit uint64

	mu   sync.Mutex
	next *measure // guarded by mu: begins when the one under way has ended; nil: none waits
	busy sync.Mutex
}

// measure is one walk over the directory, for all who asked before it began: what
// was written before somebody asked is in what he is told.
type measure struct {
	once sync.Once
	used uint64 // bytes of the directory's files on the disk
	err  error
}

// Usage tells the limit, and what is left of it and of the disk below.
func (l *limitedFS) Usage() (vfs.Usage, error) {
	u, err := l.FS.Usage()
	if err != nil {
		return u, err
	}
	m := l.join()
	m.once.Do(func() { l.walk(m) })
	return vfs.Usage{Total: min(u.Total, l.limit), Free: min(u.Free, l.limit-min(m.used, l.limit))}, m.err
}

func (l *limitedFS) join() *measure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &measure{}
	}
	return l.next
}

// walk adds up the blocks that the directory's files take on the disk.
func (l *limitedFS) walk(m *measure) {
	l.busy.Lock()
	defer l.busy.Unlock()
	l.mu.Lock()
	l.next = nil // who asks from now on is not served by this one
	l.mu.Unlock()
	m.err = filepath.WalkDir(l.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it went meanwhile
		}
		if info, err := d.Info(); err == nil {
			m.used += uint64(info.Sys().(*syscall.Stat_t).Blocks) * 512
		}
		return nil
	})
}
