package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/vfs"
)

// found is a record that stands in the log.
type found struct {
	head format.LogHead
	file *logFile
	pos  int64
	err  error // what is wrong with its body
}

// replay reads the log and puts what the index does not have yet back into the
// shards. What it finds wrong is told apart (see format: logrecord.go):
//
//   - the last batch may be torn: it was never synced, nobody was told that it
//     was durable, and its damaged records never were;
//   - a damaged record below that was durable once: its stripe gets a doubt;
//   - a missing LSN below that was durable once, for some stripe of some shard:
//     every shard that took appends can't tell any more.
//
// Fenced shards have nothing to gain: the fence put all into the index.
func (s *Store) replay(mark format.Mark, b *pebble.Batch) error {
	records, err := s.log.scan(mark.Freed)
	if err != nil {
		return err
	}
	durable, last := mark.Durable, mark.Durable
	for i := range records {
		durable = max(durable, records[i].head.First-1)
		last = max(last, records[i].head.LSN)
	}
	known := mark.Freed
	for i := range records {
		f := &records[i]
		if f.head.LSN <= durable {
			known++
		}
		if f.err != nil && f.head.LSN > durable {
			continue // torn
		}
		if err := s.restore(f, b); err != nil {
			return err
		}
	}
	if known < durable {
		s.logger.Error("durable records are missing from the append log", "count", durable-known)
		if err := s.doubtAll(b); err != nil {
			return err
		}
	}
	s.log.resume(mark.Freed, durable, last)
	return nil
}

// restore puts one record back, unless the index has it or no shard wants it.
func (s *Store) restore(f *found, b *pebble.Batch) error {
	h := &f.head
	i, ok := s.table.slots[h.Key]
	if !ok {
		return nil
	}
	r := s.table.row(i)
	if r.generation != h.Generation || r.state != format.ShardOpen || r.fence != 0 {
		return nil
	}
	for _, kind := range [...]byte{format.KindStripe, format.KindDoubt} {
		if _, ok, err := s.index.get(format.AppendStripeKey(nil, kind, h.Key, h.Offset, h.Seq)); ok || err != nil {
			return err
		}
	}
	sh, err := s.table.pin(r.ref())
	if err != nil {
		return err
	}
	defer s.table.unpin(sh)
	e := entry{offset: h.Offset, seq: h.Seq, unit: h.Payload, header: h.Header, state: logged, file: f.file, pos: f.pos, lsn: h.LSN}
	if f.err != nil {
		return s.putDoubt(sh, b, &e, f.err)
	}
	if at, found := sh.search(e.offset, e.seq); !found {
		sh.entries = slices.Insert(sh.entries, at, e)
		f.file.live = append(f.file.live, liveRecord{sh.ref, e.offset, e.seq})
	}
	return nil
}

// doubtAll marks all shards that took appends: they can't tell.
func (s *Store) doubtAll(b *pebble.Batch) error {
	for k, i := range s.table.slots {
		if r := s.table.row(i); r.state != format.ShardOpen || r.fence != 0 {
			continue
		}
		rec, err := s.loadShard(k)
		if err != nil {
			return err
		}
		rec.Flags |= format.FlagDoubtful
		if err := putShard(b, &rec); err != nil {
			return err
		}
		s.table.update(i, func(r *row) { r.flags |= format.FlagDoubtful })
	}
	return nil
}

func newAppendLog(fsys vfs.FS, dev *device, own Queue, key [16]byte, kick func()) *appendLog {
	l := &appendLog{fs: fsys, dev: dev, own: own, key: key, kick: kick}
	l.freed.L = &l.mu
	return l
}

// scan opens the log's files and gives all records above freed, by LSN. A file
// is read at every LogStep, because a damaged head does not tell its length, and
// an older record may stand between two batches; heads can't be forged.
func (l *appendLog) scan(freed format.LSN) ([]found, error) {
	names, err := l.fs.List(logDir)
	if err != nil {
		return nil, err
	}
	var records []found
	for _, name := range names {
		f := &logFile{name: logDir + "/" + name}
		if f.file, err = l.fs.Open(f.name); err != nil {
			return nil, err
		}
		l.files = append(l.files, f)
		if f.size, err = f.file.Size(); err != nil {
			return nil, err
		}
		f.step = f.file.Sector()
		more, err := l.scanFile(f, freed)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	slices.SortFunc(records, func(a, b found) int { return cmp.Compare(a.head.LSN, b.head.LSN) })
	return slices.CompactFunc(records, func(a, b found) bool { return a.head.LSN == b.head.LSN }), nil
}

// otherBuild is what to do about a record of another version.
const otherBuild = "start the build that wrote it"

// scanFile gives a file's records above freed. One of another version is refused
// with Version: skipped, it would count as a write that never came.
func (l *appendLog) scanFile(f *logFile, freed format.LSN) (records []found, err error) {
	b := make([]byte, f.size)
	f.read(b, 0, maxRun)
	for pos := int64(0); pos+format.LogHeadLen <= f.size; {
		head, ok := format.DecodeLogHead(b[pos:], &l.key)
		if version, lsn, alien := format.AlienLogHead(b[pos:], &l.key); alien && lsn > freed {
			return nil, errs.New(errs.Version, "read log "+f.name, "record %d is of version %d, this program reads %d", lsn, version, format.LogVersion).
				WithHint(otherBuild)
		}
		if !ok || head.LSN <= freed || pos+head.Len() > f.size {
			pos += format.LogStep
			continue
		}
		_, _, err := head.Body(b[pos:])
		if errs.KindOf(err) == errs.Version { // its checksum holds: it is not torn, and not damaged
			return nil, errs.As(err, errs.Version, "read log %s", f.name).(*errs.Error).WithHint(otherBuild)
		}
		records = append(records, found{head, f, pos, err})
		f.state, f.end, f.last = logFull, f.size, max(f.last, head.LSN)
		if err != nil {
			pos += format.LogStep
		} else {
			pos += head.Len()
		}
	}
	return records, nil
}

// read fills b from off on, a piece at a time. What can't be read is tried again in
// short pieces, so that an unreadable place hides no more than itself, and then stays
// zero: a missing record.
func (f *logFile) read(b []byte, off int64, piece int) {
	for at := 0; at < len(b); at += piece {
		p := b[at:min(at+piece, len(b))]
		if _, err := f.file.ReadAt(p, off+int64(at)); err != nil && piece > shortRead {
			clear(p)
			f.read(p, off+int64(at), shortRead)
		}
	}
}

// shortRead is how many bytes of the log one unreadable place may hide.
const shortRead = 64 << 10

// resume sets where LSNs go on. durable was learned from what followed; all
// that was restored counts as durable from here on.
func (l *appendLog) resume(freed, durable, last format.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freedLSN, l.durable, l.next = freed, max(durable, freed), max(last, durable, freed)+1
}

// begin readies the log for batches, once nothing of an earlier life is left in
// it: from then on an LSN that is missing below a later batch means damage, and
// the LSNs of torn records must not count. It makes the files that are missing
// or have another size; without space for them small appends go to data files.
func (l *appendLog) begin(size int64) error {
	l.mu.Lock()
	l.freedLSN, l.durable = l.next-1, l.next-1
	files := l.files
	l.mu.Unlock()
	kept := make([]*logFile, 0, logFiles)
	for i := range logFiles {
		name := fmt.Sprintf("%s/%d", logDir, i)
		at := slices.IndexFunc(files, func(f *logFile) bool { return f.name == name && f.size == size })
		if at >= 0 {
			kept = append(kept, files[at])
			continue
		}
		f, err := l.makeFile(name, size)
		if err != nil {
			return err
		}
		kept = append(kept, f)
	}
	if err := l.fs.SyncDir(logDir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = kept
	return nil
}

func (l *appendLog) makeFile(name string, size int64) (*logFile, error) {
	if err := l.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := l.fs.Create(name)
	if err != nil {
		return nil, err
	}
	if err := writeZeros(f, size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &logFile{name: name, file: f, size: size, step: f.Sector()}, nil
}

// writeZeros fills a new file and syncs it, so that later writes find their
// blocks and length on the disk.
func writeZeros(f vfs.File, size int64) error {
	b := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; at += int64(len(b)) {
		if _, err := f.WriteAt(b[:min(int64(len(b)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
