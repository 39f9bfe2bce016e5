package store

import (
	"errors"
	"io/fs"
	"log/slog"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// LeastBytes is the size of the smallest device that default options fit on: the
// log, the reserve, the index and some shards.
const LeastBytes = 80 << 20

const (
	defaultLogBytes    = 32 << 20
	minLogBytes        = logFiles * 32 << 10
	defaultSmallAppend = 64 << 10
	defaultCacheBytes  = 8 << 20
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Queue == nil {
		o.Queue = atOnce{}
	}
	if o.LogBytes == 0 {
		o.LogBytes = defaultLogBytes
	}
	o.LogBytes = max(o.LogBytes, minLogBytes)
	if o.SmallAppend == 0 {
		o.SmallAppend = defaultSmallAppend
	}
	if o.HeaderCacheBytes == 0 {
		o.HeaderCacheBytes = defaultCacheBytes
	}
	return o
}

// Open opens a device: it takes the lock, checks that the superblock is the one
// that the caller wants (WrongCell; zero fields of want match all), loads the
// index, replays the log, and raises the incarnation, durably, before it
// returns. NotFound: not formatted. Busy: open in another process. Corrupt: the
// index is missing, another device's, or went back in time: the device must not
// answer for what it once had, and is to be wiped and rebuilt.
func Open(fsys vfs.FS, want format.Superblock, opts Options) (*Store, error) {
	s, err := newStore(fsys, want, opts.withDefaults())
	if err != nil {
		return nil, typed(err, "open device")
	}
	if err := s.start(); err != nil {
		s.abandon()
		return nil, typed(err, "open device")
	}
	return s, nil
}

// newStore checks and locks the device, without a change to it.
func newStore(fsys vfs.FS, want format.Superblock, opts Options) (*Store, error) {
	sb, err := Inspect(fsys)
	if err != nil {
		return nil, err
	}
	if err := matches(sb, want); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(lockFile)
	if err != nil {
		return nil, err
	}
	dev := newDevice()
	s := &Store{
		opts: opts, logger: opts.Logger.With("device", sb.UUID.String()), dev: dev, lock: lock,
		data:  &gate{fs: fsys, dev: dev, kind: dataTraffic},
		table: newTable(), crcs: newCRCCache(opts.HeaderCacheBytes),
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.files = newHandles(s.data)
	s.log = newAppendLog(&gate{fs: fsys, dev: dev, kind: logTraffic}, dev, opts.Queue, sb.LogKey, s.kick)
	dev.relieve = func() bool { return s.ballast.relieve(s) }
	if sb, err = Inspect(fsys); err != nil { // again, now that it can't change
		s.abandon()
		return nil, err
	}
	s.super.Store(&sb)
	return s, nil
}

// abandon releases a device whose opening failed.
func (s *Store) abandon() {
	if s.index != nil {
		_ = s.index.close()
	}
	s.dev.shut()
	s.files.close()
	s.log.close()
	_ = s.lock.Close()
}

func (s *Store) start() error {
	sb := s.Superblock()
	fresh := sb.Incarnation == 0
	if fresh {
		if err := s.makeFolders(); err != nil {
			return err
		}
	}
	if err := s.ballast.prepare(s); err != nil {
		return err
	}
	var err error
	g := &gate{fs: s.data.fs, dev: s.dev, kind: indexTraffic, queue: s.opts.Queue}
	if err := checkIndexLogs(g); err != nil {
		return err
	}
	if s.index, err = openIndex(g, s.dev, &s.opts, fresh); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errs.KindOf(err) == errs.Internal {
			err = errs.As(err, errs.Corrupt, "open index")
		}
		return err
	}
	mark, err := s.loadMark(&sb, fresh)
	if err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	if err := s.recover(mark, max(mark.Incarnation, sb.Incarnation)+1); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	if err := s.moveFull(); err != nil && errs.KindOf(typed(err, "")) != errs.NoSpace {
		return err
	}
	s.done.Add(1)
	go s.mover()
	return nil
}

func (s *Store) makeFolders() error {
	for _, dir := range [...]string{shardDir, logDir, indexDir} {
		if err := s.data.MkdirAll(dir); err != nil {
			return err
		}
	}
	return s.data.SyncDir(".")
}

// loadMark reads the marks and checks that the index is this device's newest. A
// life writes the index first and the superblock second, so an index that is
// behind is an old one.
func (s *Store) loadMark(sb *format.Superblock, fresh bool) (format.Mark, error) {
	var m format.Mark
	for _, move := range [...]bool{true, false} {
		v, ok, err := s.index.get(format.AppendMarkKey(nil, move))
		if err != nil {
			return m, err
		}
		if !ok {
			continue
		}
		one, err := format.DecodeMark(v)
		if err != nil {
			return m, err
		}
		if one.UUID != sb.UUID {
			return m, errs.New(errs.Corrupt, "", "the index belongs to device %v", one.UUID)
		}
		m.Incarnation, m.Durable = max(m.Incarnation, one.Incarnation), max(m.Durable, one.Durable)
		if move {
			m.Freed = one.Freed
		}
	}
	if m.Incarnation < sb.Incarnation {
		return m, errs.New(errs.Corrupt, "", "the index is of incarnation %d, the superblock of %d: the index is lost or went back in time",
			m.Incarnation, sb.Incarnation)
	}
	return m, nil
}

// recover replays the log and makes this life known: to the index with what the
// replay found, then to the superblock.
func (s *Store) recover(mark format.Mark, inc layout.Incarnation) error {
	b := s.batch()
	if err := s.replay(mark, b); err != nil {
		return err
	}
	if err := s.commitMark(b, true, inc); err != nil {
		return err
	}
	sb := s.Superblock()
	sb.Incarnation = inc
	if err := writeSuperblock(s.data, sb); err != nil {
		return err
	}
	sb.Write++
	s.super.Store(&sb)
	return nil
}
