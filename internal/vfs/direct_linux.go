package vfs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a file's second descriptor, one that passes the page cache by. It is
// opened with the first direct write.
type direct struct {
	once   sync.Once
	file   *osFile // nil: there is none; set by once, as is sector
	sector int64
}

// of gives the descriptor of f's file; nil where the file system has none.
func (d *direct) of(f *os.File) *osFile {
	d.once.Do(func() {
		// By descriptor: the name may be another file's by now, or nobody's.
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR|unix.O_DIRECT, 0)
		d.sector = DirectAlign
		if err == nil {
			d.file, _ = newOSFile(again)
			d.sector = sectorOf(again)
		}
	})
	return d.file
}

// sectorOf asks the kernel for the alignment of direct transfers, which is the
// device's logical block where the file system adds nothing.
func sectorOf(f *os.File) int64 {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	n := int64(st.Dio_offset_align)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 || n <= 0 || n > DirectAlign || n&(n-1) != 0 {
		return DirectAlign
	}
	return max(n, leastSector)
}

// leastSector is the least that Sector tells, in bytes.
const leastSector = 512

// Sector implements File.
func (o *osFile) Sector() int64 {
	o.direct.of(o.f)
	return o.direct.sector
}

func (d *direct) close() error {
	d.once.Do(func() {}) // from now on there is none
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// WriteDirect implements File with O_DIRECT, and O_DSYNC where it shall be
// durable: one system call, and no copy. Where that can't be, it is a write, and
// a fdatasync or the begin of one.
func (o *osFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	if d := o.direct.of(o.f); d != nil && len(p) > 0 {
		if alignedTo(p, off, o.direct.sector) {
			n, err := d.writeDirect(p, off, durable)
			if !errors.Is(err, unix.EINVAL) {
				return n, err
			}
		}
	}
	n, err := o.WriteAt(p, off)
	switch {
	case err != nil:
	case durable:
		err = o.Sync()
	default:
		err = o.StartWriteback(off, int64(n))
	}
	return n, err
}

func alignedTo(p []byte, off, sector int64) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%DirectAlign == 0 && (off|int64(len(p)))%sector == 0
}

func (o *osFile) writeDirect(p []byte, off int64, durable bool) (n int, err error) {
	flags := 0
	if durable {
		flags = unix.RWF_DSYNC
	}
	err = o.call("pwritev2", func(fd int) (err error) {
		n, err = vector(func(fd int, iovs [][]byte, off int64) (int, error) {
			return unix.Pwritev2(fd, iovs, off, flags)
		}, fd, [][]byte{p}, off)
		return err
	})
	return n, err
}
