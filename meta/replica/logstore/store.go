package logstore

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// Catalogue keeps the list of the log's files, by the index of their first entries.
type Catalogue interface {
	// Files gives the list as it was set last.
	Files() []uint64
	// SetFiles replaces the list, durably and as a whole.
	SetFiles(first []uint64) error
}

// Store is a Raft log in a directory. It implements raft.LogStore.
type Store struct {
	fs     vfs.FS
	dir    string
	length int64 // of a new file, in bytes
	list   Catalogue

	write sync.Mutex // held while the log is changed

	mu    sync.RWMutex // held for reading across reads of files, so that none is closed meanwhile
	first uint64       // guarded by mu: of the log; 0 when it is empty
	files []*logFile   // guarded by mu: oldest first, none of them empty
}

var _ raft.LogStore = (*Store)(nil)

// Open opens the log in a directory, which exists, and reads all of it. length is that
// of a new file, in bytes. Error: Corrupt.
func Open(fs vfs.FS, dir string, length int, list Catalogue) (*Store, error) {
	s := &Store{fs: fs, dir: dir, length: int64(length), list: list}
	if err := s.load(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) load() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	listed := s.list.Files()
	for _, name := range names {
		if first, ok := firstOf(name); ok && !slices.Contains(listed, first) {
			if err := s.fs.Remove(s.dir + "/" + name); err != nil {
				return err
			}
		}
	}
	for i, first := range listed {
		if err := s.loadFile(first, i == len(listed)-1); err != nil {
			return err
		}
	}
	if len(s.files) > 0 {
		s.first = s.files[0].first
	}
	return nil
}

func (s *Store) loadFile(first uint64, newest bool) error {
	l := &logFile{name: nameOf(first), first: first}
	var err error
	if l.f, err = s.fs.Open(s.dir + "/" + l.name); err != nil {
		return errs.As(err, errs.Corrupt, "a file of the log is missing")
	}
	s.files = append(s.files, l)
	torn, err := l.scan(newest)
	if err != nil {
		return err
	}
	if len(l.offsets) == 0 {
		return errs.New(errs.Corrupt, "read "+l.name, "it holds no entry any more")
	}
	if n := len(s.files); n > 1 && s.files[n-2].next() != first {
		return errs.New(errs.Corrupt, "read "+l.name, "the file before ends at entry %d", s.files[n-2].next()-1)
	}
	if torn {
		return l.cut(l.end)
	}
	return nil
}

// keep makes a list of files the log's, and removes others: their content does not
// count any more from the first line on.
func (s *Store) keep(files []*logFile, gone ...*logFile) error {
	first := make([]uint64, len(files))
	for i, l := range files {
		first[i] = l.first
	}
	if err := s.list.SetFiles(first); err != nil {
		return err
	}
	s.mu.Lock()
	s.files = slices.Clone(files)
	if len(files) == 0 {
		s.first = 0
	} else {
		s.first = max(s.first, files[0].first)
	}
	s.mu.Unlock()
	for _, l := range gone {
		if err := l.f.Close(); err != nil {
			return err
		}
		if err := s.fs.Remove(s.dir + "/" + l.name); err != nil {
			return err
		}
	}
	return nil
}

// FirstIndex implements raft.LogStore: 0 for an empty log.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, nil
}

// LastIndex implements raft.LogStore: 0 for an empty log.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last(), nil
}

// last is the last entry's index. Called with mu or write held.
func (s *Store) last() uint64 {
	if len(s.files) == 0 {
		return 0
	}
	return s.files[len(s.files)-1].next() - 1
}

// GetLog implements raft.LogStore. Errors: raft.ErrLogNotFound, Corrupt.
func (s *Store) GetLog(index uint64, to *raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.first == 0 || index < s.first || index > s.last() {
		return raft.ErrLogNotFound
	}
	i, _ := slices.BinarySearchFunc(s.files, index, func(l *logFile, index uint64) int {
		switch {
		case l.next() <= index:
			return -1
		case l.first > index:
			return 1
		}
		return 0
	})
	return s.files[i].read(index, to)
}

// StoreLog implements raft.LogStore.
func (s *Store) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements raft.LogStore: the entries follow the last one, or begin an
// empty log anywhere. One batch, one sync.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	s.write.Lock()
	defer s.write.Unlock()
	if len(entries) == 0 {
		return nil
	}
	need := int64(0)
	for i, e := range entries {
		if last := s.last(); e.Index != entries[0].Index+uint64(i) || last != 0 && entries[0].Index != last+1 || e.Index == 0 {
			return errs.New(errs.Internal, "", "entry %d does not follow %d", e.Index, last+uint64(i))
		}
		if recordSize(e) > maxRecord {
			return errs.New(errs.TooLarge, "", "entry %d takes %d bytes", e.Index, recordSize(e))
		}
		need += recordSize(e)
	}
	if n := len(s.files); n > 0 && s.files[n-1].end+need <= s.files[n-1].size {
		return s.append(s.files[n-1], entries, nil)
	}
	return s.begin(entries, need)
}

// begin writes a batch into a new file. Its name is durable before the batch counts.
func (s *Store) begin(entries []*raft.Log, need int64) error {
	first := entries[0].Index
	f, err := s.fs.Create(s.dir + "/" + nameOf(first))
	if err != nil {
		return err
	}
	l := &logFile{f: f, name: nameOf(first), first: first, size: max(s.length, fileHeader+need)}
	if err := f.Truncate(l.size); err != nil {
		f.Close()
		return err
	}
	if err := s.append(l, entries, encodeHeader(first)); err != nil {
		f.Close()
		return err
	}
	return nil
}

// append writes a batch behind the last record of a file, or behind its header, which
// goes with it.
func (s *Store) append(l *logFile, entries []*raft.Log, header []byte) error {
	b, at := header, l.end
	batch := at + int64(len(header))
	offsets := make([]int64, len(entries))
	for i, e := range entries {
		offsets[i] = at + int64(len(b))
		b = appendRecord(b, e, batch)
	}
	if _, err := l.f.WriteAt(b, at); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	if header != nil {
		if err := s.fs.SyncDir(s.dir); err != nil {
			return err
		}
		l.offsets, l.end = offsets, at+int64(len(b))
		return s.keep(append(slices.Clone(s.files), l))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.offsets, l.end = append(l.offsets, offsets...), at+int64(len(b))
	return nil
}

// DeleteRange implements raft.LogStore: entries go from the end or from the beginning.
// When the beginning goes, whole files are removed; the entries of the oldest one that
// are cut off come back with a restart, which raft does not mind.
func (s *Store) DeleteRange(from, to uint64) error {
	s.write.Lock()
	defer s.write.Unlock()
	last := s.last()
	switch {
	case last == 0 || from > last || to < s.first || from > to:
		return nil
	case to >= last:
		return s.dropEnd(max(from, s.first))
	case from <= s.first:
		return s.dropBeginning(to + 1)
	}
	return errs.New(errs.Internal, "", "entries %d to %d lie in the middle of the log", from, to)
}

// dropEnd takes the entries from an index on away.
func (s *Store) dropEnd(from uint64) error {
	n := len(s.files)
	for n > 0 && (s.files[n-1].first >= from || s.first >= from) {
		n--
	}
	if n < len(s.files) {
		if err := s.keep(s.files[:n], s.files[n:]...); err != nil {
			return err
		}
	}
	if n == 0 || from >= s.files[n-1].next() {
		return nil
	}
	l := s.files[n-1]
	s.mu.Lock()
	defer s.mu.Unlock() // held across the cut: nobody may read what is being cut off
	end := l.offsets[from-l.first]
	l.offsets, l.end = l.offsets[:from-l.first], end
	return l.cut(end)
}

// dropBeginning takes the entries before an index away; one at least is left.
func (s *Store) dropBeginning(first uint64) error {
	n := 0
	for s.files[n].next() <= first {
		n++
	}
	if n > 0 {
		if err := s.keep(s.files[n:], s.files[:n]...); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = max(s.first, first)
	return nil
}

// Close closes the files.
func (s *Store) Close() (err error) {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.files {
		if closeErr := l.f.Close(); err == nil {
			err = closeErr
		}
	}
	s.files, s.first = nil, 0
	return err
}
