package ctl

import (
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"strake/internal/vfs"
)

// measureEvery is how old a measured fill may be.
const measureEvery = 200 * time.Millisecond

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

	mu   sync.Mutex // held while the directory is measured: one walk serves all
	at   time.Time  // guarded by mu: when used was measured
	used uint64     // guarded by mu: bytes of the directory's files on the disk
}

// Usage tells the limit, and what is left of it and of the disk below.
func (l *limitedFS) Usage() (vfs.Usage, error) {
	u, err := l.FS.Usage()
	if err != nil {
		return u, err
	}
	used, err := l.measure()
	if err != nil {
		return u, err
	}
	return vfs.Usage{Total: min(u.Total, l.limit), Free: min(u.Free, l.limit-min(used, l.limit))}, nil
}

// measure adds up the blocks that the directory's files take on the disk.
func (l *limitedFS) measure() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < measureEvery {
		return l.used, nil
	}
	var used uint64
	err := filepath.WalkDir(l.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it went meanwhile
		}
		if info, err := d.Info(); err == nil {
			used += uint64(info.Sys().(*syscall.Stat_t).Blocks) * 512
		}
		return nil
	})
	l.at, l.used = time.Now(), used
	return used, err
}
