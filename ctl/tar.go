package ctl

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// tarReader is the reading end of a directory that is packed meanwhile. Close
// ends the packer and waits for it.
type tarReader struct {
	*io.PipeReader
	done chan struct{}
}

// Close implements io.Closer.
func (t tarReader) Close() error {
	err := t.PipeReader.Close()
	<-t.done
	return err
}

// tarStream packs a directory as `tar c -C DIR .` would, in name order. A file
// that vanishes or becomes shorter meanwhile ends the stream with an error.
func tarStream(dir string) io.ReadCloser {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := tar.NewWriter(w)
		err := walk(dir, func(path string, info fs.FileInfo) error { return packOne(t, dir, path, info) })
		if err == nil {
			err = t.Close()
		}
		w.CloseWithError(err)
	}()
	return tarReader{r, done}
}

// tarBytes gives the least length that tarStream will have: headers of long names
// come on top.
func tarBytes(dir string) (n int64, err error) {
	const record = 512
	err = walk(dir, func(_ string, info fs.FileInfo) error {
		n += record
		if info.Mode().IsRegular() {
			n += (info.Size() + record - 1) / record * record
		}
		return nil
	})
	return n + 2*record, err
}

// walk visits files, directories and links; sockets and devices are left out.
func walk(dir string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return sourceError(err, path)
		}
		info, err := d.Info()
		if err != nil {
			return sourceError(err, path)
		}
		if !info.Mode().IsRegular() && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		return visit(path, info)
	})
}

// packOne writes one entry.
func packOne(t *tar.Writer, dir, path string, info fs.FileInfo) (err error) {
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return sourceError(err, path)
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	if info.IsDir() {
		h.Name += "/"
	}
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return sourceError(err, path)
	}
	defer f.Close()
	_, err = io.Copy(t, &wholeFile{f, path, info.Size()})
	return err
}
