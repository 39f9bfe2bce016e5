package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	fileMode = 0o600 // data is the service's own
	dirMode  = 0o700
)

// OS is the real file system below one directory. Paths cannot leave it, not
// even through a symbolic link. It holds no state beside the directory's
// descriptor, so all methods are safe for concurrent use.
type OS struct {
	root *os.Root
}

// NewOS gives the file system below root, a directory that must exist: making a
// missing one would hide a device that is not mounted.
func NewOS(root string) (FS, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &OS{root: r}, nil
}

// Create implements FS.
func (o *OS) Create(path string) (File, error) {
	return o.openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements FS.
func (o *OS) Open(path string) (File, error) { return o.openFile(path, os.O_RDWR) }

// OpenRead implements FS.
func (o *OS) OpenRead(path string) (File, error) {
	f, err := o.open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	info, err := f.f.Stat()
	if err == nil && info.IsDir() {
		err = pathError("open", path, syscall.EISDIR)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (o *OS) openFile(path string, flags int) (File, error) {
	f, err := o.open(path, flags)
	if err != nil {
		return nil, err // not f: a nil *osFile would make a File that is not nil
	}
	return f, nil
}

func (o *OS) open(path string, flags int) (*osFile, error) {
	name, err := Clean(path)
	if err != nil {
		return nil, err
	}
	f, err := o.root.OpenFile(name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return newOSFile(f)
}

// Remove implements FS.
func (o *OS) Remove(path string) error {
	name, err := Clean(path)
	if err != nil {
		return err
	}
	return o.root.Remove(name)
}

// Rename implements FS. A directory is refused with EISDIR.
func (o *OS) Rename(from, to string) error {
	a, b, err := cleanPair(from, to)
	if err != nil {
		return err
	}
	info, err := o.root.Lstat(a)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return pathError("rename", from, syscall.EISDIR)
	}
	return o.root.Rename(a, b)
}

// Link implements FS.
func (o *OS) Link(from, to string) error {
	a, b, err := cleanPair(from, to)
	if err != nil {
		return err
	}
	return o.root.Link(a, b)
}

// MkdirAll implements FS.
func (o *OS) MkdirAll(path string) error {
	name, err := Clean(path)
	if err != nil {
		return err
	}
	return o.root.MkdirAll(name, dirMode)
}

// List implements FS.
func (o *OS) List(path string) ([]string, error) {
	d, err := o.openDir(path)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, d.Close())
}

// Stat implements FS.
func (o *OS) Stat(path string) (fs.FileInfo, error) {
	name, err := Clean(path)
	if err != nil {
		return nil, err
	}
	return o.root.Stat(name)
}

// SyncDir implements FS.
func (o *OS) SyncDir(path string) error {
	d, err := o.openDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (o *OS) openDir(path string) (*os.File, error) {
	name, err := Clean(path)
	if err != nil {
		return nil, err
	}
	return o.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// Lock implements FS with flock on the file at path, which is made when it is
// not there and is never removed (removing it would let two holders in).
func (o *OS) Lock(path string) (Lock, error) {
	f, err := o.open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = f.call("flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = busy(filepath.Join(o.root.Name(), path))
	}
	return nil, errors.Join(err, f.Close())
}

// Usage implements FS with statfs; Free is what this user may still write.
func (o *OS) Usage() (Usage, error) {
	d, err := o.openDir(".")
	if err != nil {
		return Usage{}, err
	}
	var st unix.Statfs_t
	err = ignoringEINTR(func() error { return unix.Fstatfs(int(d.Fd()), &st) })
	if err = errors.Join(err, d.Close()); err != nil {
		return Usage{}, err
	}
	unit := uint64(st.Frsize)
	return Usage{Total: st.Blocks * unit, Free: st.Bavail * unit}, nil
}
