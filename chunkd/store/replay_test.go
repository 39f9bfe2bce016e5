package store

import (
	"bytes"
	"syscall"
	"testing"

	"strake/internal/vfs"
)

// spoilt is a file with an unreadable place, that counts its reads.
type spoilt struct {
	vfs.File
	bad   int64
	reads int
}

func (f *spoilt) ReadAt(p []byte, off int64) (int, error) {
	f.reads++
	if off <= f.bad && f.bad < off+int64(len(p)) {
		return copy(p, bytes.Repeat([]byte{9}, int(f.bad-off))), syscall.EIO
	}
	return copy(p, bytes.Repeat([]byte{1}, len(p))), nil
}

// TestAnUnreadablePlaceOfTheLogHidesNoMoreThanItself, and a log without one is read
// in few pieces: each costs a device its latency, at every start.
func TestAnUnreadablePlaceOfTheLogHidesNoMoreThanItself(t *testing.T) {
	const size, bad = 4 << 20, 2<<20 + 100<<10
	f := &spoilt{bad: bad}
	b := make([]byte, size)
	(&logFile{file: f}).read(b, 0, maxRun)
	want := bytes.Repeat([]byte{1}, size)
	from := int64(bad) / shortRead * shortRead
	if lost := b[from:][:shortRead]; bytes.Contains(lost, []byte{1}) {
		t.Error("the unreadable place holds bytes")
	}
	copy(want[from:], b[from:][:shortRead])
	if !bytes.Equal(b, want) {
		t.Error("bytes beside the unreadable place are missing")
	}
	if f.reads != 4+16 {
		t.Errorf("%d reads, one for each MiB and 16 for the one that failed were expected", f.reads)
	}
	f = &spoilt{bad: -1}
	if (&logFile{file: f}).read(b, 0, maxRun); f.reads != 4 || !bytes.Equal(b, bytes.Repeat([]byte{1}, size)) {
		t.Errorf("%d reads of a sound log", f.reads)
	}
}
