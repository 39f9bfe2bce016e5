package vfs

import (
	"io/fs"
	"path"
	"strings"

	"strake/internal/errs"
)

// Clean gives the canonical form of a path: relative, slash-separated, without
// dot elements; the root is ".". It fails with errs.InvalidArgument for a path
// that is absolute, holds a NUL byte, or climbs above the root at any point.
func Clean(name string) (string, error) {
	if path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return "", errs.New(errs.InvalidArgument, "path "+name, "must be relative to the root and free of NUL")
	}
	depth := 0
	for elem := range strings.SplitSeq(name, "/") {
		switch elem {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return "", errs.New(errs.InvalidArgument, "path "+name, "leaves the root of the file system")
		}
	}
	return path.Clean(name), nil
}

func busy(path string) error {
	return errs.New(errs.Busy, "lock "+path, "held by another process or handle").
		WithHint("stop the process that uses it")
}

func pathError(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func cleanPair(from, to string) (a, b string, err error) {
	if a, err = Clean(from); err != nil {
		return "", "", err
	}
	b, err = Clean(to)
	return a, b, err
}
