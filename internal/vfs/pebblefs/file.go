package pebblefs

import (
	stdfs "io/fs"
	"syscall"
	"time"

	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"

	"strake/internal/vfs"
)

// file is an open file with a position. Read and Write move the position and
// need one caller at a time, as Pebble promises; all else may run beside them.
type file struct {
	vfs.File
	name string
	pos  int64
}

var _ pebblevfs.File = (*file)(nil)

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 {
		err = nil // io.EOF comes with the next call
	}
	return n, err
}

// Write implements io.Writer.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

// Preallocate does nothing.
func (f *file) Preallocate(int64, int64) error { return nil }

// Stat implements pebblevfs.File. The time is zero.
func (f *file) Stat() (pebblevfs.FileInfo, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return info{fileInfo{f.name, size}}, nil
}

// SyncTo implements pebblevfs.File; it never syncs in full.
func (f *file) SyncTo(length int64) (fullSync bool, err error) {
	return false, f.StartWriteback(0, length)
}

// SyncData implements pebblevfs.File.
func (f *file) SyncData() error { return f.Sync() }

// Prefetch does nothing.
func (f *file) Prefetch(int64, int64) error { return nil }

// Fd implements pebblevfs.File.
func (f *file) Fd() uintptr {
	if fd, ok := f.File.Fd(); ok {
		return fd
	}
	return pebblevfs.InvalidFd
}

// dir is an open directory; only its syncs mean something.
type dir struct {
	below vfs.FS
	path  string
	info  stdfs.FileInfo
}

var _ pebblevfs.File = (*dir)(nil)

func (d *dir) Sync() error     { return d.below.SyncDir(d.path) }
func (d *dir) SyncData() error { return d.Sync() }
func (d *dir) Close() error    { return nil }

func (d *dir) SyncTo(int64) (fullSync bool, err error)  { return false, nil }
func (d *dir) Stat() (pebblevfs.FileInfo, error)        { return info{d.info}, nil }
func (d *dir) Preallocate(int64, int64) error           { return nil }
func (d *dir) Prefetch(int64, int64) error              { return nil }
func (d *dir) Fd() uintptr                              { return pebblevfs.InvalidFd }
func (d *dir) Read([]byte) (int, error)                 { return 0, syscall.EISDIR }
func (d *dir) ReadAt([]byte, int64) (int, error)        { return 0, syscall.EISDIR }
func (d *dir) Write([]byte) (int, error)                { return 0, syscall.EISDIR }
func (d *dir) WriteAt([]byte, int64) (n int, err error) { return 0, syscall.EISDIR }

// info adds the device id that Pebble asks for: always the zero one.
type info struct{ stdfs.FileInfo }

func (info) DeviceID() pebblevfs.DeviceID { return pebblevfs.DeviceID{} }

// fileInfo is what an open file knows of itself.
type fileInfo struct {
	name string
	size int64 // bytes
}

func (i fileInfo) Name() string         { return i.name }
func (i fileInfo) Size() int64          { return i.size }
func (i fileInfo) Mode() stdfs.FileMode { return 0o600 }
func (i fileInfo) ModTime() time.Time   { return time.Time{} }
func (i fileInfo) IsDir() bool          { return false }
func (i fileInfo) Sys() any             { return nil }
