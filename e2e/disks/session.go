package disks

import (
	"io"
	"io/fs"
	"sync"

	"strake/internal/vfs"
)

// session is what one process has open on a disk.
type session struct {
	id uint64
	fs vfs.FS

	mu    sync.Mutex
	ended bool                 // guarded by mu
	last  uint64               // guarded by mu: handle
	open  map[uint64]io.Closer // guarded by mu: files and locks
}

// end closes all that the process had open.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, c := range s.open {
		_ = c.Close()
	}
}

// do makes a call; false: the session has ended, and nobody waits for an answer.
func (s *session) do(q *request) (*reply, bool) {
	a := &reply{}
	var err error
	switch {
	case q.Call == callClose:
		err = s.close(q.Handle)
	case q.Call <= callOpenRead:
		err = s.openFile(q, a)
	case q.Call == callLock:
		err = s.lock(q, a)
	case q.Call < callRead:
		err = s.onNames(q, a)
	default:
		s.mu.Lock()
		f, ok := s.open[q.Handle].(vfs.File)
		s.mu.Unlock()
		if err = fs.ErrClosed; ok {
			err = onFile(f, q, a)
		}
	}
	a.Err = pack(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	return a, !s.ended
}

func (s *session) openFile(q *request, a *reply) error {
	open := map[call]func(string) (vfs.File, error){callCreate: s.fs.Create, callOpen: s.fs.Open, callOpenRead: s.fs.OpenRead}[q.Call]
	f, err := open(q.Path)
	if err != nil {
		return err
	}
	a.Sector = f.Sector()
	return s.keep(f, a)
}

// keep gives what was opened a handle, unless the session has ended meanwhile.
func (s *session) keep(c io.Closer, a *reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return c.Close()
	}
	s.last++
	a.Handle, s.open[s.last] = s.last, c
	return nil
}

func (s *session) lock(q *request, a *reply) error {
	l, err := s.fs.Lock(q.Path)
	if err != nil {
		return err
	}
	return s.keep(l, a)
}

func (s *session) close(handle uint64) error {
	s.mu.Lock()
	c, ok := s.open[handle]
	delete(s.open, handle)
	s.mu.Unlock()
	if !ok {
		return fs.ErrClosed
	}
	return c.Close()
}

func (s *session) onNames(q *request, a *reply) (err error) {
	switch q.Call {
	case callRemove:
		return s.fs.Remove(q.Path)
	case callRename:
		return s.fs.Rename(q.Path, q.To)
	case callLink:
		return s.fs.Link(q.Path, q.To)
	case callMkdirAll:
		return s.fs.MkdirAll(q.Path)
	case callSyncDir:
		return s.fs.SyncDir(q.Path)
	case callList:
		a.Names, err = s.fs.List(q.Path)
		return err
	case callUsage:
		a.Usage, err = s.fs.Usage()
		return err
	}
	info, err := s.fs.Stat(q.Path)
	if err == nil {
		a.N, a.Dir = info.Size(), info.IsDir()
	}
	return err
}

func onFile(f vfs.File, q *request, a *reply) (err error) {
	var n int
	switch q.Call {
	case callRead:
		p := make([]byte, q.N)
		n, err = f.ReadAt(p, q.Off)
		a.Data = p[:n]
	case callWrite:
		n, err = f.WriteAt(q.Data, q.Off)
	case callWriteDirect:
		n, err = f.WriteDirect(q.Data, q.Off, q.Durable)
	case callSync:
		err = f.Sync()
	case callWriteback:
		err = f.StartWriteback(q.Off, q.N)
	case callTruncate:
		err = f.Truncate(q.N)
	case callPunch:
		err = f.PunchHole(q.Off, q.N)
	case callSize:
		a.N, err = f.Size()
		return err
	}
	a.N = int64(n)
	return err
}
