package disks

import (
	"io/fs"
	"sync"

	"strake/internal/vfs"
)

// session is what one process has open on a disk.
type session struct {
	id uint64
	fs vfs.FS

	mu    sync.Mutex
	ended bool                // guarded by mu
	last  uint64              // guarded by mu: handle
	files map[uint64]vfs.File // guarded by mu
	locks map[uint64]vfs.Lock // guarded by mu
}

// end closes all that the process had open.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, f := range s.files {
		_ = f.Close()
	}
	for _, l := range s.locks {
		_ = l.Close()
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
		err = s.open(q, a)
	case q.Call == callLock:
		err = s.lock(q, a)
	case q.Call < callRead:
		err = s.onNames(q, a)
	default:
		s.mu.Lock()
		f := s.files[q.Handle]
		s.mu.Unlock()
		if err = fs.ErrClosed; f != nil {
			err = onFile(f, q, a)
		}
	}
	a.Err = pack(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	return a, !s.ended
}

func (s *session) open(q *request, a *reply) error {
	open := map[call]func(string) (vfs.File, error){callCreate: s.fs.Create, callOpen: s.fs.Open, callOpenRead: s.fs.OpenRead}[q.Call]
	f, err := open(q.Path)
	if err != nil {
		return err
	}
	a.Sector = f.Sector()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return f.Close()
	}
	s.last++
	a.Handle, s.files[s.last] = s.last, f
	return nil
}

func (s *session) lock(q *request, a *reply) error {
	l, err := s.fs.Lock(q.Path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return l.Close()
	}
	s.last++
	a.Handle, s.locks[s.last] = s.last, l
	return nil
}

func (s *session) close(handle uint64) error {
	s.mu.Lock()
	f, l := s.files[handle], s.locks[handle]
	delete(s.files, handle)
	delete(s.locks, handle)
	s.mu.Unlock()
	switch {
	case f != nil:
		return f.Close()
	case l != nil:
		return l.Close()
	}
	return fs.ErrClosed
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
