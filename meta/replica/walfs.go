package replica

import (
	"path"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"strake/internal/vfs"
)

// walFiler opens raft-wal's files. Where the newest file loses its last entries
// (a follower that diverged), raft-wal calls it sealed without writing the index
// that it looks for when it opens a sealed file: the entries would be there and
// could not be read. Such a file is read through instead, as the newest is.
type walFiler struct{ *segment.Filer }

// Open implements types.SegmentFiler.
func (f walFiler) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	if info.IndexStart != 0 {
		return f.Filer.Open(info)
	}
	return f.Filer.RecoverTail(info)
}

// walFS lets raft-wal keep its files in a vfs.FS.
type walFS struct{ fs vfs.FS }

var _ types.VFS = walFS{}

// ListDir implements types.VFS.
func (w walFS) ListDir(dir string) ([]string, error) { return w.fs.List(dir) }

// Create implements types.VFS. The file is sparse: a full disk shows itself as
// an error of a later write, which ends the process like any other.
func (w walFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := w.fs.Create(path.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(size)); err != nil {
		f.Close()
		return nil, err
	}
	return &walFile{File: f, fs: w.fs, dir: dir}, nil
}

// Delete implements types.VFS.
func (w walFS) Delete(dir, name string) error {
	if err := w.fs.Remove(path.Join(dir, name)); err != nil {
		return err
	}
	return w.fs.SyncDir(dir)
}

// OpenReader implements types.VFS.
func (w walFS) OpenReader(dir, name string) (types.ReadableFile, error) {
	return asReader(w.fs.OpenRead(path.Join(dir, name)))
}

func asReader(f vfs.File, err error) (types.ReadableFile, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenWriter implements types.VFS. The name may not be durable yet: the process
// may have ended between the file's creation and its first sync.
func (w walFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := w.fs.Open(path.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return &walFile{File: f, fs: w.fs, dir: dir}, nil
}

// walFile makes its name durable with its first sync: raft-wal acknowledges
// nothing before that.
type walFile struct {
	vfs.File
	fs    vfs.FS
	dir   string
	named atomic.Bool // the directory was synced
}

// Sync implements types.WritableFile.
func (f *walFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	if f.named.Load() {
		return nil
	}
	if err := f.fs.SyncDir(f.dir); err != nil {
		return err
	}
	f.named.Store(true)
	return nil
}
