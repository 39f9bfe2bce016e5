package store

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// Store is the store of one device. All methods are safe for concurrent use,
// except that Close must come last.
type Store struct {
	opts    Options
	logger  *slog.Logger
	dev     *device
	data    *gate // data files, superblock, reserve
	lock    vfs.Lock
	index   *index
	log     *appendLog
	table   *table
	files   *handles
	crcs    *crcCache
	pool    records
	ballast ballast

	creating [64]sync.Mutex // by key; see Create
	trials   sync.Mutex     // see NewTrial

	superMu sync.Mutex // held across the write of the superblock: writes must not mix
	super   atomic.Pointer[format.Superblock]
	pending atomic.Int64 // bytes of records that wait for a sync

	wake    chan struct{} // asks the mover for a move; capacity 1
	stop    chan struct{}
	done    sync.WaitGroup // the mover
	moveMu  sync.Mutex     // one move at a time
	moveBuf []byte         // guarded by moveMu; see runs
	quiet   sync.Map       // when shards took an append last; see byclock.go
}

// Superblock is the device's identity.
func (s *Store) Superblock() format.Superblock { return *s.super.Load() }

// Incarnation is this life of the store.
func (s *Store) Incarnation() layout.Incarnation { return s.super.Load().Incarnation }

// SetDevice records the id that the metadata service gave the device, durably.
func (s *Store) SetDevice(id layout.DeviceID) error {
	s.superMu.Lock()
	defer s.superMu.Unlock()
	sb := s.Superblock()
	if sb.Device == id {
		return nil
	}
	if sb.Device != 0 {
		return errs.New(errs.Conflict, "set device", "it is registered as device %d, not %d", sb.Device, id)
	}
	sb.Device = id
	if err := writeSuperblock(s.data, sb); err != nil {
		return typed(err, "set device")
	}
	sb.Write++
	s.super.Store(&sb)
	return nil
}

// Failed is closed by the first error of an fsync or of the index. From then on
// every call answers Unavailable.
func (s *Store) Failed() <-chan struct{} { return s.dev.failed }

// Refuse makes the device stop answering, as if it had failed: a later life of it
// is registered, and what this one would say could be wrong.
func (s *Store) Refuse(why error) { s.dev.refuse(why) }

// Err is why the device failed; nil while it has not.
func (s *Store) Err() error { return s.dev.err() }

// Counters tells what was done to the device since Open.
func (s *Store) Counters() Counters {
	d := s.dev
	return Counters{
		DataBytes: d.written[dataTraffic].Load(), LogBytes: d.written[logTraffic].Load(),
		IndexBytes: d.written[indexTraffic].Load(), ReadBytes: d.read.Load(), Fsyncs: d.syncs.Load(), Copies: d.copies.Load(), CopiedBytes: d.copied.Load(),
	}
}

// Close makes everything durable, empties the log and releases the device. It
// gives the first error; the device is released all the same.
func (s *Store) Close() error {
	err := s.syncAll()
	close(s.stop)
	s.done.Wait()
	if err == nil {
		err = s.moveAll()
	}
	if errs.KindOf(typed(err, "")) == errs.NoSpace {
		err = nil // the log is durable; the next Open moves it
	}
	if e := s.index.close(); err == nil {
		err = e
	}
	if err == nil {
		err = s.dev.err()
	}
	s.dev.shut()
	s.files.close()
	s.log.close()
	if e := s.lock.Close(); err == nil {
		err = e
	}
	return typed(err, "close device")
}

// syncAll syncs every shard.
func (s *Store) syncAll() error {
	for _, sh := range s.table.pinAll() {
		err := s.syncShards([]*shard{sh})
		s.table.unpin(sh)
		if err != nil && errs.KindOf(err) != errs.NotHere {
			return err
		}
	}
	return nil
}

// batch starts an index batch.
func (s *Store) batch() *pebble.Batch { return s.index.db.NewBatch() }

// putShard adds a shard's record to a batch.
func putShard(b *pebble.Batch, r *format.Shard) error {
	return b.Set(format.AppendShardKey(nil, format.KindShard, r.Key), r.AppendTo(nil), nil)
}

// commit makes a batch durable, and with it what is known of the log: each
// synced batch tells later lives up to where log records were durable for sure.
func (s *Store) commit(b *pebble.Batch) error { return s.commitMark(b, false, s.Incarnation()) }

func (s *Store) commitMark(b *pebble.Batch, move bool, inc layout.Incarnation) error {
	m := format.Mark{UUID: s.Superblock().UUID, Incarnation: inc}
	m.Freed, m.Durable = s.log.marks()
	if err := b.Set(format.AppendMarkKey(nil, move), m.AppendTo(nil), nil); err != nil {
		return err
	}
	return s.index.commit(b)
}
