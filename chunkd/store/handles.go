package store

import (
	"sync"

	"strake/chunkd/format"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// maxHandles bounds the data files that stay open without being in use.
const maxHandles = 512

// fileName names a data file.
type fileName struct {
	key        layout.ShardKey
	generation layout.Generation
}

func (n fileName) path() string { return shardDir + "/" + format.ShardFileName(n.key, n.generation) }

// handle is an open data file. A file with un-synced bytes is retained by its
// shard, so that the descriptor that learns of a failed write-back is the one
// that is synced.
type handle struct {
	vfs.File
	name fileName
	// Guarded by handles.mu:
	refs       int
	dead       bool    // the file was removed: close with the last reference
	prev, next *handle // in the ring of idle handles while refs is 0, else nil
}

// link puts f before at in a ring; unlink takes it out. The ring's links are in
// the handles, so that a read allocates nothing.
func (f *handle) link(at *handle) {
	f.prev, f.next = at.prev, at
	f.prev.next, f.next.prev = f, f
}

func (f *handle) unlink() {
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
}

// handles keeps a bounded number of data files open.
type handles struct {
	fs    vfs.FS
	mu    sync.Mutex
	open  map[fileName]*handle
	idle  handle // the ring's head; oldest first
	idles int
}

func newHandles(fsys vfs.FS) *handles {
	h := &handles{fs: fsys, open: map[fileName]*handle{}}
	h.idle.prev, h.idle.next = &h.idle, &h.idle
	return h
}

// acquire opens a data file, or shares the open one. release must follow.
func (h *handles) acquire(name fileName) (*handle, error) {
	if f := h.share(name); f != nil {
		return f, nil
	}
	file, err := h.fs.Open(name.path())
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.open[name]; f != nil { // another caller was faster
		h.retainLocked(f)
		return f, file.Close()
	}
	f := &handle{File: file, name: name, refs: 1}
	h.open[name] = f
	return f, nil
}

func (h *handles) share(name fileName) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.open[name]
	if f != nil {
		h.retainLocked(f)
	}
	return f
}

func (h *handles) retain(f *handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retainLocked(f)
}

func (h *handles) retainLocked(f *handle) {
	if f.next != nil {
		f.unlink()
		h.idles--
	}
	f.refs++
}

// release gives a reference back and closes what is too much. The error of a
// Close says nothing: what mattered was synced.
func (h *handles) release(f *handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.refs--; f.refs > 0 {
		return
	}
	if f.dead {
		_ = f.Close()
		return
	}
	f.link(&h.idle)
	h.idles++
	for h.idles > maxHandles {
		oldest := h.idle.next
		oldest.unlink()
		h.idles--
		delete(h.open, oldest.name)
		_ = oldest.Close()
	}
}

// forget closes a file that was removed, once nobody uses it.
func (h *handles) forget(name fileName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.open[name]
	if f == nil {
		return
	}
	delete(h.open, name)
	f.dead = true
	if f.next != nil {
		f.unlink()
		h.idles--
		_ = f.Close()
	}
}

// close closes all files; nobody may use one any more.
func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.open {
		_ = f.Close()
	}
	clear(h.open)
	h.idle.prev, h.idle.next, h.idles = &h.idle, &h.idle, 0
}
