package server

import (
	"sync"
	"time"

	"strake/internal/vfs"
)

// deviceCall is one call that takes device time.
type deviceCall struct {
	from, to time.Time
	what     string
	path     string
	bytes    int // of a sync: what was written since the last one
}

// deviceLog notes the calls that take device time.
type deviceLog struct {
	vfs.FS
	mu    sync.Mutex
	calls []deviceCall // guarded by mu
}

func (d *deviceLog) note(what, path string, bytes int, call func()) {
	from := time.Now()
	call()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, deviceCall{from, time.Now(), what, path, bytes})
}

// during gives the calls that were under way between two times.
func (d *deviceLog) during(from, to time.Time) (list []deviceCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if c.to.After(from) && c.from.Before(to) {
			list = append(list, c)
		}
	}
	return list
}

func (d *deviceLog) Create(path string) (vfs.File, error) {
	f, err := d.FS.Create(path)
	return d.logged(path, f, err)
}

func (d *deviceLog) Open(path string) (vfs.File, error) {
	f, err := d.FS.Open(path)
	return d.logged(path, f, err)
}

func (d *deviceLog) OpenRead(path string) (vfs.File, error) {
	f, err := d.FS.OpenRead(path)
	return d.logged(path, f, err)
}

func (d *deviceLog) SyncDir(path string) (err error) {
	d.note("sync directory", path, 0, func() { err = d.FS.SyncDir(path) })
	return err
}

func (d *deviceLog) logged(path string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &loggedFile{File: f, log: d, path: path}, nil
}

type loggedFile struct {
	vfs.File
	log  *deviceLog
	path string

	mu    sync.Mutex
	dirty int // guarded by mu
}

// wrote counts bytes that no sync covers yet; 0 gives them, and begins anew.
func (f *loggedFile) wrote(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dirty += n; n > 0 {
		return f.dirty
	}
	n, f.dirty = f.dirty, 0
	return n
}

func (f *loggedFile) ReadAt(p []byte, off int64) (n int, err error) {
	f.log.note("read", f.path, len(p), func() { n, err = f.File.ReadAt(p, off) })
	return n, err
}

func (f *loggedFile) WriteAt(p []byte, off int64) (n int, err error) {
	f.wrote(len(p))
	f.log.note("write", f.path, len(p), func() { n, err = f.File.WriteAt(p, off) })
	return n, err
}

func (f *loggedFile) WriteDirect(p []byte, off int64, durable bool) (n int, err error) {
	what := "write past the cache"
	if durable {
		what = "write and sync"
	}
	f.log.note(what, f.path, len(p), func() { n, err = f.File.WriteDirect(p, off, durable) })
	return n, err
}

func (f *loggedFile) Sync() (err error) {
	f.log.note("sync", f.path, f.wrote(0), func() { err = f.File.Sync() })
	return err
}

func (f *loggedFile) StartWriteback(off, n int64) (err error) {
	f.log.note("write back", f.path, f.wrote(0), func() { err = f.File.StartWriteback(off, n) })
	return err
}
