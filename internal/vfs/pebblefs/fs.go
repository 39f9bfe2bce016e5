package pebblefs

import (
	"errors"
	"io"
	stdfs "io/fs"
	"os"
	"path"
	"strings"

	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"

	"strake/internal/vfs"
)

// fs is a pebblevfs.FS. It holds no state, so it is safe for concurrent use.
type fs struct {
	below vfs.FS
	dir   string // clean path in below
}

// New gives Pebble the part of below under dir. The caller makes dir and syncs
// its parent before, as Pebble makes and syncs only what is within: else a power
// cut takes the store. A dir that is not below the root makes every call fail
// with errs.InvalidArgument.
func New(below vfs.FS, dir string) pebblevfs.FS { return &fs{below: below, dir: dir} }

// path gives Pebble's name as a path of the file system below.
func (f *fs) path(name string) (string, error) {
	clean, err := vfs.Clean(strings.TrimLeft(name, "/"))
	if err != nil {
		return "", err
	}
	dir, err := vfs.Clean(f.dir)
	return path.Join(dir, clean), err
}

// on runs do with the path of a name.
func (f *fs) on(name string, do func(path string) error) error {
	p, err := f.path(name)
	if err != nil {
		return err
	}
	return do(p)
}

// on2 runs do with the paths of two names.
func (f *fs) on2(a, b string, do func(a, b string) error) error {
	return f.on(a, func(a string) error {
		return f.on(b, func(b string) error { return do(a, b) })
	})
}

// open wraps what do opens as a file of Pebble.
func (f *fs) open(name string, do func(path string) (vfs.File, error), opts ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	below, err := do(p)
	if err != nil {
		return nil, err
	}
	out := &file{File: below, name: path.Base(p)}
	for _, o := range opts {
		o.Apply(out)
	}
	return out, nil
}

// Create implements pebblevfs.FS: an existing file is removed first.
func (f *fs) Create(name string, _ pebblevfs.DiskWriteCategory) (pebblevfs.File, error) {
	return f.open(name, func(p string) (vfs.File, error) {
		if err := f.below.Remove(p); err != nil && !errors.Is(err, stdfs.ErrNotExist) {
			return nil, err
		}
		return f.below.Create(p)
	})
}

// Link implements pebblevfs.FS.
func (f *fs) Link(oldname, newname string) error { return f.on2(oldname, newname, f.below.Link) }

// Open implements pebblevfs.FS.
func (f *fs) Open(name string, opts ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	return f.open(name, f.below.OpenRead, opts...)
}

// OpenReadWrite implements pebblevfs.FS: a missing file is made.
func (f *fs) OpenReadWrite(name string, _ pebblevfs.DiskWriteCategory, opts ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	return f.open(name, func(p string) (vfs.File, error) {
		file, err := f.below.Open(p)
		if errors.Is(err, stdfs.ErrNotExist) {
			return f.below.Create(p)
		}
		return file, err
	}, opts...)
}

// OpenDir implements pebblevfs.FS.
func (f *fs) OpenDir(name string) (pebblevfs.File, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	info, err := f.below.Stat(p)
	if err != nil {
		return nil, err
	}
	return &dir{below: f.below, path: p, info: info}, nil
}

// Remove implements pebblevfs.FS.
func (f *fs) Remove(name string) error { return f.on(name, f.below.Remove) }

// RemoveAll implements pebblevfs.FS. A missing name is no error.
func (f *fs) RemoveAll(name string) error { return f.on(name, f.removeAll) }

func (f *fs) removeAll(p string) error {
	info, err := f.below.Stat(p)
	if errors.Is(err, stdfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if info.IsDir() {
		names, err := f.below.List(p)
		keep(err)
		for _, name := range names {
			keep(f.removeAll(path.Join(p, name)))
		}
	}
	keep(f.below.Remove(p))
	return first
}

// Rename implements pebblevfs.FS.
func (f *fs) Rename(oldname, newname string) error {
	return f.on2(oldname, newname, f.below.Rename)
}

// ReuseForWrite implements pebblevfs.FS: the old content stays.
func (f *fs) ReuseForWrite(oldname, newname string, c pebblevfs.DiskWriteCategory) (pebblevfs.File, error) {
	if err := f.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(newname, c)
}

// MkdirAll implements pebblevfs.FS; perm is the file system's own.
func (f *fs) MkdirAll(name string, _ os.FileMode) error { return f.on(name, f.below.MkdirAll) }

// Lock implements pebblevfs.FS.
func (f *fs) Lock(name string) (io.Closer, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	return f.below.Lock(p)
}

// List implements pebblevfs.FS.
func (f *fs) List(name string) (names []string, err error) {
	err = f.on(name, func(p string) error {
		names, err = f.below.List(p)
		return err
	})
	return names, err
}

// Stat implements pebblevfs.FS.
func (f *fs) Stat(name string) (pebblevfs.FileInfo, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	i, err := f.below.Stat(p)
	if err != nil {
		return nil, err
	}
	return info{i}, nil
}

// PathBase implements pebblevfs.FS.
func (f *fs) PathBase(name string) string { return path.Base(name) }

// PathJoin implements pebblevfs.FS.
func (f *fs) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir implements pebblevfs.FS.
func (f *fs) PathDir(name string) string { return path.Dir(name) }

// GetDiskUsage implements pebblevfs.FS.
func (f *fs) GetDiskUsage(string) (pebblevfs.DiskUsage, error) {
	u, err := f.below.Usage()
	if err != nil {
		return pebblevfs.DiskUsage{}, err
	}
	return pebblevfs.DiskUsage{AvailBytes: u.Free, TotalBytes: u.Total, UsedBytes: u.Total - u.Free}, nil
}

// Unwrap implements pebblevfs.FS: nothing below is a pebblevfs.FS.
func (f *fs) Unwrap() pebblevfs.FS { return nil }
