package store

import (
	"fmt"
	"math/bits"
	"sync"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/internal/vfs"
	"strake/proto/frame"
)

const (
	logFiles = 8 // the log's bytes are divided among so many
	// minRecordCharge bounds the number of records: a log file counts as full
	// when it has a record for each so many bytes.
	minRecordCharge = 2048
)

// liveRecord is a record that a log file holds for a shard. It is a hint: the
// shard's entries tell whether it is still needed.
type liveRecord struct {
	ref    frame.ShardRef
	offset layout.ShardOffset
	seq    layout.Seq
}

type logFileState uint8

const (
	logFree   logFileState = iota // holds nothing that is needed
	logActive                     // takes batches
	logFull                       // waits for the move
)

// logFile is one file of the log, of fixed length and written before its first
// use, so that fdatasync has no length and no extents to write.
type logFile struct {
	name string
	file vfs.File
	size int64
	step int64 // batches begin at its multiples: format.LogStep to LogAlign

	// Guarded by appendLog.mu:
	state logFileState
	end   int64 // the next batch goes here
	last  format.LSN
	live  []liveRecord
	early int // records whose shards do not know yet that they are here: see publish
}

// appendLog makes small appends durable: one write and one fdatasync for all
// that wait, whatever their volumes. It never grows: when no file is free,
// commit waits for the move.
type appendLog struct {
	fs   vfs.FS
	dev  *device
	own  Queue
	key  [16]byte
	kick func() // asks for a move

	// writeMu is held across the write and its sync, on purpose: while one group
	// is written the next forms in waiting.
	writeMu sync.Mutex
	buf     []byte // guarded by writeMu: the batch that is written

	mu       sync.Mutex // guards all below
	freed    sync.Cond  // a file became free, or the move failed
	waiting  *group
	files    []*logFile
	active   *logFile
	next     format.LSN
	durable  format.LSN // synced for sure up to here
	freedLSN format.LSN // moved up to here
	ready    bool       // everything of earlier incarnations was moved
	moves    uint64     // attempts so far
	moveErr  error      // of the last one
	stopped  bool       // no more moves will come
}

// group is what one write makes durable.
type group struct {
	records []*record
	done    chan struct{} // closed once err is set
	err     error
}

// commit makes records durable and tells each where it went. Who comes first to
// a group leads it: it waits for the write before, closes the group and writes
// it. The others wait for their group alone, not for the next one's write: that
// may wait for a move, which may wait until they have published their records.
func (l *appendLog) commit(records []*record) error {
	if len(records) == 0 {
		return nil
	}
	g, leads := l.join(records)
	if !leads {
		<-g.done
		return g.err
	}
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	l.mu.Lock()
	l.waiting = nil
	l.mu.Unlock()
	g.err = l.write(g.records)
	close(g.done)
	return g.err
}

func (l *appendLog) join(records []*record) (g *group, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leads = l.waiting == nil; leads {
		l.waiting = &group{done: make(chan struct{})}
	}
	l.waiting.records = append(l.waiting.records, records...)
	return l.waiting, leads
}

// write writes a group as one batch for each file that it needs.
func (l *appendLog) write(records []*record) error {
	for len(records) > 0 {
		f, pos, err := l.room(records[0].length())
		if err != nil {
			return err
		}
		n, err := l.batch(f, pos, records)
		if err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// room gives the active file, one with space for a record, and where.
func (l *appendLog) room(need int64) (*logFile, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if f := l.active; f != nil {
			if f.end+need <= f.size && len(f.live) < int(f.size/minRecordCharge) {
				return f, f.end, nil
			}
			f.state, l.active = logFull, nil
			l.kick()
		}
		if l.take() {
			continue
		}
		if err := l.waitForMove(); err != nil {
			return nil, 0, err
		}
	}
}

// take makes a free file the active one. Called with mu held.
func (l *appendLog) take() bool {
	for _, f := range l.files {
		if f.state == logFree {
			f.state, f.end, f.live = logActive, 0, f.live[:0]
			l.active = f
			return true
		}
	}
	return false
}

// waitForMove waits until a move freed something or failed. Called with mu held.
func (l *appendLog) waitForMove() error {
	seen := l.moves
	l.kick()
	for l.moves == seen && !l.stopped {
		l.freed.Wait()
	}
	if l.stopped {
		return errs.New(errs.Closed, "write log", "the store is closed")
	}
	return l.moveErr
}

// batch writes and syncs as many records as fit into f and a turn at pos, in one call. A
// failed write latches: which LSNs are on the disk is then unknown, and the files
// were written before, so that a disk that is merely full can't fail here.
func (l *appendLog) batch(f *logFile, pos int64, records []*record) (int, error) {
	first, end, n, longest := l.next, pos, 0, maxBatch(l.own)
	for ; n < len(records); n++ {
		r := records[n]
		if most := end + r.length(); most > f.size || n > 0 && most-pos > longest {
			break
		}
		r.head.LSN, r.head.First = l.next, first
		r.head.Put(r.bytes, &l.key)
		r.pos = end
		l.next++
		end += r.length()
	}
	whole := l.laidOut(records[:n], (end-pos+f.step-1)&^(f.step-1))
	var err error
	l.own.Turn(len(whole), func() { _, err = f.file.WriteDirect(whole, pos, !planted.Is(planted.AckBeforeFsync)) })
	if err != nil {
		return 0, l.dev.fail(fmt.Errorf("write log: %w", err))
	}
	l.settled(f, pos+int64(len(whole)), records[:n])
	return n, nil
}

// laidOut puts a batch together as it will stand in the log, padded to length.
func (l *appendLog) laidOut(records []*record, length int64) []byte {
	if int64(len(l.buf)) < length {
		l.buf = vfs.AlignedBytes(1 << bits.Len64(uint64(length-1)))
	}
	at := 0
	for _, r := range records {
		at += copy(l.buf[at:], r.bytes)
	}
	clear(l.buf[at:length])
	l.dev.copied.Add(uint64(at))
	return l.buf[:length]
}

func (l *appendLog) settled(f *logFile, end int64, records []*record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.end, f.last = end, l.next-1
	l.durable = l.next - 1
	f.early += len(records)
	for _, r := range records {
		r.file = f
		f.live = append(f.live, liveRecord{r.ref, r.head.Offset, r.head.Seq})
	}
}

// publish tells that a record's shard knows now where it is. Until then the
// mover, which asks the shards, must leave the file alone: it would find nothing
// in it that is needed, and free it under the record.
func (l *appendLog) publish(f *logFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.early--; f.early == 0 && f.state == logFull {
		l.kick()
	}
}

// accepts tells whether a record may go to the log at all.
func (l *appendLog) accepts(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready && n <= l.files[0].size/2
}

// marks is what a synced index batch says of the log.
func (l *appendLog) marks() (freed, durable format.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.freedLSN, l.durable
}

// read reads a record and checks that it is the one that is meant, as a file may
// be used again at any time. A read that fails is tried once more, because what
// follows from a damaged record can't be taken back.
func (l *appendLog) read(file *logFile, pos int64, lsn format.LSN, b []byte) (header, payload []byte, err error) {
	_, err = file.file.ReadAt(b, pos)
	if err != nil {
		_, err = file.file.ReadAt(b, pos)
	}
	if err != nil {
		return nil, nil, errs.As(err, errs.Corrupt, "read log record %d", lsn)
	}
	head, ok := format.DecodeLogHead(b, &l.key)
	if !ok || head.LSN != lsn {
		return nil, nil, errs.New(errs.Corrupt, "read log", "record %d is damaged", lsn)
	}
	return head.Body(b)
}

func (l *appendLog) close() {
	for _, f := range l.files {
		if f.file != nil {
			_ = f.file.Close()
		}
	}
}
