package logstore

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
)

const suffix = ".log"

// logFile is one file of the log. Guarded by Store.mu, but for end and offsets, which
// who changes the log reads without it.
type logFile struct {
	f       vfs.File
	name    string
	first   uint64  // index of its first entry
	offsets []int64 // of its records
	end     int64   // behind the last record
	size    int64   // of the file
}

func nameOf(first uint64) string { return fmt.Sprintf("%016x%s", first, suffix) }

func firstOf(name string) (uint64, bool) {
	hex, ok := strings.CutSuffix(name, suffix)
	first, err := strconv.ParseUint(hex, 16, 64)
	return first, ok && err == nil && len(hex) == 16
}

// next is the index behind its last entry.
func (l *logFile) next() uint64 { return l.first + uint64(len(l.offsets)) }

// read reads one entry and checks it.
func (l *logFile) read(index uint64, to *raft.Log) error {
	i := index - l.first
	end := l.end
	if i+1 < uint64(len(l.offsets)) {
		end = l.offsets[i+1]
	}
	b := make([]byte, end-l.offsets[i])
	if _, err := l.f.ReadAt(b, l.offsets[i]); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	e, _, size, err := decodeRecord(b)
	switch {
	case err != nil:
		return errs.Wrap(err, "log entry %d", index)
	case size == 0:
		return errs.New(errs.Corrupt, "", "log entry %d is gone", index)
	case e.Index != index:
		return errs.New(errs.Corrupt, "", "log entry %d stands in the place of %d", e.Index, index)
	}
	*to = e
	return nil
}

// scan reads a whole file and notes its records. The newest one may end in a torn
// batch (L3), which torn tells; any other must not.
func (l *logFile) scan(newest bool) (torn bool, err error) {
	if l.size, err = l.f.Size(); err != nil {
		return false, err
	}
	b := make([]byte, l.size)
	if _, err := l.f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	l.end = fileHeader
	if err := checkHeader(b, l.first); err != nil {
		l.end = 0
		return l.ends(b, newest, err)
	}
	for {
		e, _, size, err := decodeRecord(b[l.end:])
		if err == nil && size > 0 && e.Index != l.next() {
			err = errs.New(errs.Corrupt, "", "entry %d stands in the place of %d", e.Index, l.next())
		}
		if err != nil || size == 0 {
			return l.ends(b, newest, err)
		}
		l.offsets = append(l.offsets, l.end)
		l.end += size
	}
}

// ends judges where the records end, with the error that ended them.
func (l *logFile) ends(b []byte, newest bool, err error) (torn bool, _ error) {
	rest := b[min(l.end, int64(len(b))):]
	if err == nil && isZero(rest) {
		return false, nil
	}
	if err == nil {
		err = errs.New(errs.Corrupt, "", "something follows its last record at %d", l.end)
	}
	if !newest || errs.KindOf(err) == errs.Version || proves(b, l.end) {
		return false, errs.Wrap(err, "read %s", l.name)
	}
	return true, nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// cut takes what stands behind an offset away, durably; the length stays.
func (l *logFile) cut(end int64) error {
	if err := l.f.Truncate(end); err != nil {
		return err
	}
	if err := l.f.Truncate(l.size); err != nil {
		return err
	}
	return l.f.Sync()
}
