package vfs

import (
	"io/fs"
	"unsafe"
)

// FS is a file system below one root; paths are slash-separated and relative to
// it; one that leaves the root fails with errs.InvalidArgument. All methods are
// safe for concurrent use. Errors satisfy errors.Is for
// fs.ErrNotExist, fs.ErrExist and syscall.ENOSPC where they apply.
type FS interface {
	// Create makes a new, empty file for reading and writing. It fails with
	// fs.ErrExist when the name is taken. The new name is durable only after
	// SyncDir of its directory.
	Create(path string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(path string) (File, error)
	// OpenRead opens an existing file for reading only.
	OpenRead(path string) (File, error)
	// Remove unlinks a file or an empty directory. An open File stays usable.
	Remove(path string) error
	// Rename moves a file within the file system, over an existing one, at once
	// or not at all. It refuses a directory with EISDIR.
	Rename(from, to string) error
	// Link gives a file a second name.
	Link(from, to string) error
	// MkdirAll makes a directory and its parents.
	MkdirAll(path string) error
	// List gives the names in a directory, sorted.
	List(path string) ([]string, error)
	// Stat tells a file's size and kind.
	Stat(path string) (fs.FileInfo, error)
	// SyncDir makes the creations, renames and removals in a directory durable.
	SyncDir(path string) error
	// Lock takes an exclusive lock on a path for this process, until the lock's
	// Close or the process's end. It fails at once with errs.Busy when held. It
	// makes an empty file when there is none, and leaves it behind.
	Lock(path string) (Lock, error)
	// Usage tells capacity and free bytes of the device below.
	Usage() (Usage, error)
}

// DirectAlign is what the memory, offset and length of a WriteDirect are aligned
// to where it shall pass the page cache by, in bytes. Some devices take less of the
// latter two: see File.Sector.
const DirectAlign = 4096

// AlignedBytes gives n bytes of memory that begin at a multiple of DirectAlign.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+DirectAlign)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % DirectAlign
	return b[skip : int(skip)+n : int(skip)+n]
}

// Lock is a held lock.
type Lock interface {
	// Close releases the lock.
	Close() error
}

// Usage is the fill of the device below a file system, in bytes.
type Usage struct {
	Total, Free uint64
}

// File is an open file. Methods are safe for concurrent use, except that Close
// must come last. Offsets and lengths are bytes. A write never grows the file
// beyond what it wrote; reads past the end give io.EOF after what is there.
type File interface {
	// ReadAt is io.ReaderAt.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt is io.WriterAt; a gap before off reads as zeros.
	WriteAt(p []byte, off int64) (int, error)
	// ReadvAt fills the buffers one after another from off, in one system call
	// where the platform can. Short only at the end of the file, with io.EOF.
	ReadvAt(bufs [][]byte, off int64) (int, error)
	// WritevAt writes the buffers one after another at off.
	WritevAt(bufs [][]byte, off int64) (int, error)
	// WriteDirect is WriteAt for bytes that nobody is about to read: they go to the
	// device at once, past the page cache where the platform and the file system
	// can and p and off are aligned to DirectAlign, else through it. With durable
	// they are durable, with the length that they gave the file, when it returns
	// without an error; after an error that must be taken for a failed Sync.
	WriteDirect(p []byte, off int64, durable bool) (int, error)
	// Sector is the alignment, in bytes, of offset and length that a WriteDirect
	// needs to pass the page cache by: a power of two from 512 to DirectAlign. A
	// write changes no byte of a sector that it does not cover, whatever happens
	// meanwhile.
	Sector() int64
	// Sync makes the file's data and length durable (fdatasync is enough). After
	// an error the file's un-synced content is unknown: the caller must stop.
	Sync() error
	// StartWriteback asks the device to begin writing a range that was written,
	// without waiting and without any promise of durability.
	StartWriteback(off, n int64) error
	// Truncate sets the length; what is cut off is gone, what is added is zeros.
	Truncate(size int64) error
	// PunchHole frees a range, which then reads as zeros. The length stays.
	PunchHole(off, n int64) error
	// Size is the length in bytes.
	Size() (int64, error)
	// Fd is the descriptor for sendfile and the like; ok is false when there is
	// none (in memory, shaped or faulty): the caller then reads and copies.
	Fd() (fd uintptr, ok bool)
	// Close releases the file. It does not sync.
	Close() error
}
