package ctl

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"strake/internal/errs"
)

// source is what an import reads: standard input, a file or device, or a
// directory as a tar stream.
type source struct {
	io.ReadCloser
	atLeast int64 // bytes that will come, 0 when not known
	packed  bool  // a directory: another time its stream may have other bytes
}

func openSource(path string, stdin io.Reader) (source, error) {
	if path == "-" {
		return source{ReadCloser: io.NopCloser(stdin)}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return source{}, sourceError(err, path)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		f.Close()
		return source{}, sourceError(err, path)
	case info.IsDir():
		f.Close()
		n, err := tarBytes(path)
		return source{tarStream(path), n, true}, err
	case info.Mode().IsRegular():
		return source{ReadCloser: &wholeFile{f, path, info.Size()}, atLeast: info.Size()}, nil
	}
	return source{ReadCloser: f}, nil
}

func sourceError(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errs.As(err, errs.NotFound, "read %s", path).(*errs.Error).
			WithHint("name a file or a directory that is there, or - for standard input")
	case errors.Is(err, fs.ErrPermission):
		return errs.As(err, errs.PermissionDenied, "read %s", path).(*errs.Error).
			WithHint("make it readable, or import it as a user who may read it")
	}
	return errs.As(err, errs.Unavailable, "read %s", path)
}

// wholeFile reads a file that must not become shorter meanwhile. What it grows by
// is left out. The file is no embedded field: its WriteTo would go round Read.
type wholeFile struct {
	f    *os.File
	path string
	left int64
}

// Read reads on; a file that ends early is an error.
func (w *wholeFile) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	n, err := w.f.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err == io.EOF {
		return n, errs.New(errs.Conflict, "read "+w.path, "the file became %d bytes shorter while it was read", w.left).
			WithHint("import it again when nothing writes to it")
	}
	if err != nil {
		return n, errs.As(err, errs.Unavailable, "read %s", w.path)
	}
	return n, nil
}

// Close closes the file.
func (w *wholeFile) Close() error { return w.f.Close() }
