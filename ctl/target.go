package ctl

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"strake/internal/errs"
)

// target is what an export writes to, from the first byte to the last.
type target interface {
	io.Writer
	// Commit makes what was written stand, durably where that means anything.
	Commit() error
	// Abort takes back what was written, where that can be. After Commit it does nothing.
	Abort()
}

// openTarget opens standard output (-), or a file: a new one, or with force an
// existing one, which keeps its content until the export is complete.
func openTarget(path string, stdout io.Writer, force bool) (target, error) {
	if path == "-" {
		return stream{stdout}, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, errs.New(errs.InvalidArgument, "create "+path, "it is a directory").WithHint("name a file, or - for standard output")
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return device{f}, targetError(err, path)
	case err == nil && !force:
		return nil, errs.New(errs.AlreadyExists, "create "+path, "the file exists").WithHint("add --force to overwrite it")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, targetError(err, path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, targetError(err, path)
	}
	return &newFile{f: f, path: path}, nil
}

func targetError(err error, path string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errs.As(err, errs.NotFound, "create %s", path).(*errs.Error).WithHint("make the directory %s", filepath.Dir(path))
	}
	return errs.As(err, errs.Unavailable, "create %s", path)
}

// stream is a pipe or a terminal.
type stream struct{ io.Writer }

// Commit implements target.
func (stream) Commit() error { return nil }

// Abort implements target.
func (stream) Abort() {}

// device is a block device, a FIFO or the like.
type device struct{ *os.File }

// Commit implements target.
func (d device) Commit() error {
	_ = d.Sync() // pipes and /dev/null can't
	return d.Close()
}

// Abort implements target.
func (d device) Abort() { d.Close() }

// newFile is a file under a name of its own until it is complete. Runs of zeros
// become holes, so that a thin volume stays thin.
type newFile struct {
	f    *os.File
	path string
	at   int64
}

// hole is the granularity, in bytes, in which zeros are left out.
const hole = 64 << 10

var zeros [hole]byte

// Write implements io.Writer.
func (n *newFile) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		data := 0 // bytes before the next hole
		for done+data < len(p) && !isZero(p[done+data:]) {
			data = min(data+hole, len(p)-done)
		}
		if _, err := n.f.WriteAt(p[done:done+data], n.at); err != nil {
			return done, err
		}
		if done+data < len(p) {
			data += hole
		}
		n.at, done = n.at+int64(data), done+data
	}
	return len(p), nil
}

// isZero tells whether p begins with a whole hole.
func isZero(p []byte) bool { return len(p) >= hole && bytes.Equal(p[:hole], zeros[:]) }

// Commit implements target: the file's content and then its name are durable.
func (n *newFile) Commit() error {
	err := n.f.Truncate(n.at)
	if err == nil {
		err = n.f.Chmod(0o644)
	}
	if err == nil {
		err = n.f.Sync()
	}
	if closeErr := n.f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(n.f.Name(), n.path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(n.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Abort implements target.
func (n *newFile) Abort() {
	n.f.Close()
	os.Remove(n.f.Name())
}
