package disks

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// call names a method of vfs.FS, vfs.File or vfs.Lock. ReadvAt and WritevAt cross
// the socket as reads and writes.
type call uint8

const (
	callCreate call = iota
	callOpen
	callOpenRead
	callRemove
	callRename
	callLink
	callMkdirAll
	callList
	callStat
	callSyncDir
	callLock
	callUsage
	callRead
	callWrite
	callWriteDirect
	callSync
	callWriteback
	callTruncate
	callPunch
	callSize
	callClose // of a file or a lock
)

// hello is a connection's first message: the disk, and whose session it is.
type hello struct {
	Disk    string
	Session uint64
}

// request is one call.
type request struct {
	Call     call
	Path, To string
	Handle   uint64 // of a file or lock
	Off, N   int64
	Data     []byte
	Durable  bool
}

// reply is its answer.
type reply struct {
	Handle uint64
	N      int64 // a count, or a size
	Sector int64
	Data   []byte
	Names  []string
	Dir    bool
	Usage  vfs.Usage
	Err    *failure
}

// failure is an error as far as users of a vfs.FS tell errors apart.
type failure struct {
	EOF, Closed bool
	Errno       syscall.Errno
	Kind        errs.Kind
	Text        string
}

func pack(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{EOF: err == io.EOF, Closed: errors.Is(err, fs.ErrClosed), Kind: errs.KindOf(err), Text: err.Error()}
	errors.As(err, &f.Errno)
	return f
}

func (f *failure) unpack() error {
	switch {
	case f == nil:
		return nil
	case f.EOF:
		return io.EOF
	case f.Closed:
		return remote{f.Text, fs.ErrClosed}
	case f.Errno != 0:
		return remote{f.Text, f.Errno}
	}
	return remote{f.Text, f.Kind}
}

// remote is an error of the other side: its text, and what errors.Is finds in it.
type remote struct {
	text string
	is   error
}

func (r remote) Error() string { return r.text }
func (r remote) Unwrap() error { return r.is }
