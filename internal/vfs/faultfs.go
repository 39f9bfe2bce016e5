package vfs

import "io/fs"

// Create implements FS.
func (f *Fault) Create(path string) (File, error) { return f.open(OpCreate, path, f.below.Create) }

// Open implements FS.
func (f *Fault) Open(path string) (File, error) { return f.open(OpOpen, path, f.below.Open) }

// OpenRead implements FS.
func (f *Fault) OpenRead(path string) (File, error) { return f.open(OpOpen, path, f.below.OpenRead) }

func (f *Fault) open(kind OpKind, path string, open func(string) (File, error)) (File, error) {
	if err := f.begin(kind, path); err != nil {
		return nil, err
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &faultFile{fs: f, below: file, path: path}, nil
}

// Remove implements FS.
func (f *Fault) Remove(path string) error {
	if err := f.begin(OpRemove, path); err != nil {
		return err
	}
	return f.below.Remove(path)
}

// Rename implements FS.
func (f *Fault) Rename(from, to string) error {
	if err := f.begin(OpRename, from); err != nil {
		return err
	}
	return f.below.Rename(from, to)
}

// Link implements FS.
func (f *Fault) Link(from, to string) error {
	if err := f.begin(OpLink, from); err != nil {
		return err
	}
	return f.below.Link(from, to)
}

// MkdirAll implements FS.
func (f *Fault) MkdirAll(path string) error {
	if err := f.begin(OpMkdir, path); err != nil {
		return err
	}
	return f.below.MkdirAll(path)
}

// List implements FS.
func (f *Fault) List(path string) ([]string, error) {
	if err := f.begin(OpList, path); err != nil {
		return nil, err
	}
	return f.below.List(path)
}

// Stat implements FS.
func (f *Fault) Stat(path string) (fs.FileInfo, error) {
	if err := f.begin(OpStat, path); err != nil {
		return nil, err
	}
	return f.below.Stat(path)
}

// SyncDir implements FS.
func (f *Fault) SyncDir(path string) error {
	if err := f.begin(OpSyncDir, path); err != nil {
		return err
	}
	return f.below.SyncDir(path)
}

// Lock implements FS.
func (f *Fault) Lock(path string) (Lock, error) {
	if err := f.begin(OpLock, path); err != nil {
		return nil, err
	}
	return f.below.Lock(path)
}

// Usage implements FS.
func (f *Fault) Usage() (Usage, error) {
	if err := f.begin(OpUsage, "."); err != nil {
		return Usage{}, err
	}
	return f.below.Usage()
}
