package vfs

import (
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"

	"strake/internal/errs"
)

// defaultCapacity is large enough never to matter.
const defaultCapacity = 1 << 40

// ErrPowerCut is what a Mem and its files answer after the power was cut.
var ErrPowerCut error = errs.New(errs.Unavailable, "device", "the power was cut")

// MemOptions are the properties of a Mem; the zero value is useful.
type MemOptions struct {
	// Capacity is in bytes; 0 means 1 TiB. Only pages of 4 KiB that were written
	// count, so sparse files are cheap; names and directories are free.
	Capacity int64
}

// Mem is a file system in memory with power cuts. All its methods are safe for
// concurrent use. It reads no clock (modification times are zero) and draws no
// random numbers of its own, so equal calls give equal states.
type Mem struct {
	capacity int64

	mu      sync.Mutex // guards all below, and every node
	cut     bool
	root    *node
	journal []dirChange // un-synced directory changes, oldest first
	used    int64       // pages of files that have a name or a handle
	others  int64       // pages that somebody else takes
	locked  map[*node]bool
}

var _ FS = (*Mem)(nil)

// NewMem gives an empty file system in memory.
func NewMem(opts MemOptions) *Mem {
	if opts.Capacity == 0 {
		opts.Capacity = defaultCapacity
	}
	return &Mem{capacity: opts.Capacity, root: newDir(), locked: map[*node]bool{}}
}

// at runs do with a clean path under the lock and names op and path in its error.
func (m *Mem) at(op, name string, do func(clean string) error) error {
	clean, err := Clean(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err = ErrPowerCut
	if !m.cut {
		err = do(clean)
	}
	if err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	var f *memFile
	err := m.at("create", name, func(clean string) error {
		at, n, err := m.slot(clean)
		if err != nil {
			return err
		}
		if n != nil {
			return syscall.EEXIST
		}
		f = m.handle(m.create(at), name, false)
		return nil
	})
	return asFile(f, err)
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenRead implements FS.
func (m *Mem) OpenRead(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, readOnly bool) (File, error) {
	var f *memFile
	err := m.at("open", name, func(clean string) error {
		n, err := m.findFile(clean)
		if err == nil {
			f = m.handle(n, name, readOnly)
		}
		return err
	})
	return asFile(f, err)
}

func (m *Mem) handle(n *node, name string, readOnly bool) *memFile {
	n.opens++
	return &memFile{m: m, n: n, name: name, readOnly: readOnly}
}

// asFile keeps a nil *memFile from becoming a File that is not nil.
func asFile(f *memFile, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error { return m.at("remove", name, m.remove) }

// Rename implements FS. A directory is refused with EISDIR.
func (m *Mem) Rename(from, to string) error {
	to, err := Clean(to)
	if err != nil {
		return err
	}
	return m.at("rename", from, func(clean string) error { return m.rename(clean, to) })
}

// Link implements FS.
func (m *Mem) Link(from, to string) error {
	to, err := Clean(to)
	if err != nil {
		return err
	}
	return m.at("link", from, func(clean string) error { return m.link(clean, to) })
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error { return m.at("mkdir", name, m.mkdirs) }

// List implements FS.
func (m *Mem) List(name string) (names []string, err error) {
	err = m.at("list", name, func(clean string) error {
		dir, err := m.findDir(clean)
		if err == nil {
			names = slices.Sorted(maps.Keys(dir.entries))
		}
		return err
	})
	return names, err
}

// Stat implements FS.
func (m *Mem) Stat(name string) (info fs.FileInfo, err error) {
	err = m.at("stat", name, func(clean string) error {
		n, err := m.find(clean)
		if err == nil {
			info = memInfo{name: clean, size: n.data.size, dir: n.isDir}
		}
		return err
	})
	return info, err
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	return m.at("sync", name, func(clean string) error {
		dir, err := m.findDir(clean)
		if err == nil {
			m.syncDir(dir)
		}
		return err
	})
}

// Lock implements FS; like OS it makes the file when it is not there.
func (m *Mem) Lock(name string) (Lock, error) {
	l := &memLock{m: m}
	err := m.at("lock", name, func(clean string) (err error) {
		if l.n, err = m.ensure(clean); err != nil {
			return err
		}
		if m.locked[l.n] {
			return busy(name)
		}
		m.locked[l.n] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Usage implements FS.
func (m *Mem) Usage() (u Usage, err error) {
	err = m.at("usage", ".", func(string) error {
		u = Usage{Total: uint64(m.capacity), Free: uint64(m.free() * pageSize)}
		return nil
	})
	return u, err
}

// free is in pages.
func (m *Mem) free() int64 { return max(0, m.capacity/pageSize-m.used-m.others) }

// Occupy takes all free room but so many bytes, as somebody else who fills the
// device does; Occupy(math.MaxInt64) gives all of it back. What a power cut leaves has none of it.
func (m *Mem) Occupy(leave int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others = 0
	m.others = max(0, m.free()-leave/pageSize)
}

// release gives a file's pages back when it has neither a name nor a handle.
// The node lives on in the journal, for a power cut that brings it back.
func (m *Mem) release(n *node) {
	if n.links == 0 && n.opens == 0 {
		m.used -= int64(len(n.data.pages))
	}
}
