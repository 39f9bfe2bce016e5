package disks

import (
	"encoding/gob"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"path"
	"sync"
	"syscall"
	"time"

	"strake/internal/vfs"
)

// remoteFS is a disk of another process.
type remoteFS struct {
	address string
	hello   hello

	mu   sync.Mutex
	idle []*conn // guarded by mu
}

type conn struct {
	net net.Conn
	in  *gob.Decoder
	out *gob.Encoder
}

var _ vfs.FS = (*remoteFS)(nil)

// Dial gives a disk of the Host at an address. Whatever another process had open on
// that disk ends.
func Dial(address, disk string) (vfs.FS, error) {
	f := &remoteFS{address: address, hello: hello{Disk: disk, Session: rand.Uint64()}}
	if _, err := f.Usage(); err != nil {
		return nil, fmt.Errorf("disk %s: %w", disk, err)
	}
	return f, nil
}

// do makes a call on a connection of its own. One that breaks is an I/O error: the
// disk is gone, or another process has it.
func (f *remoteFS) do(q request) (*reply, error) {
	c, err := f.take()
	if err != nil {
		return nil, broken(err)
	}
	a := &reply{}
	if err = c.out.Encode(&q); err == nil {
		err = c.in.Decode(a)
	}
	if err != nil {
		c.net.Close()
		return nil, broken(err)
	}
	f.mu.Lock()
	f.idle = append(f.idle, c)
	f.mu.Unlock()
	return a, a.Err.unpack()
}

func broken(err error) error {
	return remote{fmt.Sprintf("the disk does not answer: %v", err), syscall.EIO}
}

func (f *remoteFS) take() (*conn, error) {
	f.mu.Lock()
	if last := len(f.idle) - 1; last >= 0 {
		c := f.idle[last]
		f.idle = f.idle[:last]
		f.mu.Unlock()
		return c, nil
	}
	f.mu.Unlock()
	n, err := net.Dial("unix", f.address)
	if err != nil {
		return nil, err
	}
	c := &conn{n, gob.NewDecoder(n), gob.NewEncoder(n)}
	if err := c.out.Encode(f.hello); err != nil {
		n.Close()
		return nil, err
	}
	return c, nil
}

func (f *remoteFS) only(q request) error {
	_, err := f.do(q)
	return err
}

func (f *remoteFS) open(how call, name string) (vfs.File, error) {
	a, err := f.do(request{Call: how, Path: name})
	if err != nil {
		return nil, err
	}
	return &remoteFile{fs: f, handle: a.Handle, sector: a.Sector}, nil
}

// Create implements vfs.FS.
func (f *remoteFS) Create(name string) (vfs.File, error) { return f.open(callCreate, name) }

// Open implements vfs.FS.
func (f *remoteFS) Open(name string) (vfs.File, error) { return f.open(callOpen, name) }

// OpenRead implements vfs.FS.
func (f *remoteFS) OpenRead(name string) (vfs.File, error) { return f.open(callOpenRead, name) }

// Remove implements vfs.FS.
func (f *remoteFS) Remove(name string) error { return f.only(request{Call: callRemove, Path: name}) }

// Rename implements vfs.FS.
func (f *remoteFS) Rename(from, to string) error {
	return f.only(request{Call: callRename, Path: from, To: to})
}

// Link implements vfs.FS.
func (f *remoteFS) Link(from, to string) error {
	return f.only(request{Call: callLink, Path: from, To: to})
}

// MkdirAll implements vfs.FS.
func (f *remoteFS) MkdirAll(name string) error {
	return f.only(request{Call: callMkdirAll, Path: name})
}

// List implements vfs.FS.
func (f *remoteFS) List(name string) ([]string, error) {
	a, err := f.do(request{Call: callList, Path: name})
	if err != nil {
		return nil, err
	}
	return a.Names, nil
}

// Stat implements vfs.FS.
func (f *remoteFS) Stat(name string) (fs.FileInfo, error) {
	a, err := f.do(request{Call: callStat, Path: name})
	if err != nil {
		return nil, err
	}
	return info{name: path.Base(name), size: a.N, dir: a.Dir}, nil
}

// SyncDir implements vfs.FS.
func (f *remoteFS) SyncDir(name string) error { return f.only(request{Call: callSyncDir, Path: name}) }

// Lock implements vfs.FS.
func (f *remoteFS) Lock(name string) (vfs.Lock, error) {
	a, err := f.do(request{Call: callLock, Path: name})
	if err != nil {
		return nil, err
	}
	return &remoteFile{fs: f, handle: a.Handle}, nil
}

// Usage implements vfs.FS.
func (f *remoteFS) Usage() (vfs.Usage, error) {
	a, err := f.do(request{Call: callUsage})
	if err != nil {
		return vfs.Usage{}, err
	}
	return a.Usage, nil
}

// info is a file's size and kind; disks in memory know no times.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
