package store

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/internal/vfs/pebblefs"
)

// index is the store of records, on Pebble. Payloads stay out of it.
//
// Pebble's mutations never fail in its eyes (see gate). Where it can't go on for
// another reason, an index that rots under a compaction, it tries again for ever,
// calls Fatalf, and expects not to come back from that, or panics: each latches
// the device's failure here, and commit looks at the latch before it says that
// anything is durable.
type index struct {
	db  Engine
	dev *device
}

// IndexVersion is the version of the index's own files. A newer one is written by a
// newer Pebble, and can't be read by an older one.
const IndexVersion = int(pebble.FormatNewest)

const (
	indexCacheBytes    = 8 << 20
	indexMemTableBytes = 4 << 20
	// indexSyncBytes is how much of a table is written at a time, in one turn.
	indexSyncBytes = 64 << 10
)

func openIndex(fsys vfs.FS, dev *device, o *Options, fresh bool) (*index, error) {
	if o.Engine != nil {
		db, err := o.Engine(fsys, indexDir)
		return &index{db: db, dev: dev}, err
	}
	db, err := openPebbles(fsys, dev, o.Logger, fresh)
	if err != nil {
		return nil, err
	}
	return &index{db: pebbleEngine{db}, dev: dev}, nil
}

// openPebbles opens Pebble, a new one twice.
func openPebbles(fsys vfs.FS, dev *device, logger *slog.Logger, fresh bool) (*pebble.DB, error) {
	opts := indexOptions(fsys, dev, logger)
	opts.ErrorIfNotExists = !fresh
	defer func() {
		if dev.err() == nil { // else Pebble may still be at it
			opts.Cache.Unref()
		}
	}()
	db, err := openPebble(opts, dev)
	if err == nil && fresh {
		// A new Pebble begins its log before it raises its format, and without the
		// sync offsets that tell rot from a torn tail. The second log has them.
		if err = db.Close(); err == nil {
			db, err = openPebble(opts, dev)
		}
	}
	return db, err
}

// openPebble gives up once the device failed, and then closes what may still be
// opened.
func openPebble(opts *pebble.Options, dev *device) (*pebble.DB, error) {
	var db *pebble.DB
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				err = dev.fail(fmt.Errorf("open index: %v", r))
			}
		}()
		db, err = pebble.Open("", opts)
	}()
	select {
	case <-done:
	case <-dev.failed:
	}
	if dead := dev.err(); dead != nil {
		go func() {
			<-done
			if db != nil {
				closeQuietly(pebbleEngine{db})
			}
		}()
		return nil, dead
	}
	return db, err
}

func indexOptions(fsys vfs.FS, dev *device, logger *slog.Logger) *pebble.Options {
	return &pebble.Options{
		FS:                    pebblefs.New(fsys, indexDir),
		Cache:                 pebble.NewCache(indexCacheBytes),
		MemTableSize:          indexMemTableBytes,
		FormatMajorVersion:    pebble.FormatNewest,
		Logger:                pebbleLogger{dev, logger},
		L0CompactionThreshold: 4,
		BytesPerSync:          indexSyncBytes,
		MaxOpenFiles:          256,
		// Pebble collects statistics in a goroutine that outlives an Open that fails,
		// and then panics. Without them space of deleted shards comes back with the
		// ordinary compactions.
		DisableTableStats: true,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { _ = dev.fail(fmt.Errorf("index: %w", err)) },
		},
	}
}

// close releases the index. After a failure nobody waits for it.
func (x *index) close() error {
	if x.dev.err() != nil {
		go closeQuietly(x.db)
		return nil
	}
	return errors.Join(x.db.Close(), x.dev.err())
}

// closeQuietly ends what Pebble runs, whatever it says of a failed device.
func closeQuietly(db Engine) {
	defer func() { _ = recover() }()
	_ = db.Close()
}

// commit applies a batch durably.
func (x *index) commit(b *pebble.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = x.dev.fail(fmt.Errorf("write index: %v", r))
		}
	}()
	if err := x.dev.err(); err != nil {
		return err
	}
	if err := x.db.Commit(b); err != nil {
		return x.dev.fail(err)
	}
	if err := x.dev.err(); err != nil {
		return err
	}
	return b.Close()
}

// get reads one value; ok is false when there is none.
func (x *index) get(key []byte) (value []byte, ok bool, err error) {
	if err := x.dev.err(); err != nil {
		return nil, false, err
	}
	v, closer, err := x.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errs.As(err, errs.Corrupt, "read index")
	}
	return append([]byte(nil), v...), true, closer.Close()
}

// keysOf gives an iterator over a shard's keys of a kind. The caller closes it.
func (x *index) keysOf(kind byte, k layout.ShardKey) (Iterator, error) {
	return x.iter(format.AppendShardKey(nil, kind, k), format.AppendKeysEnd(nil, kind, k))
}

// keysOfKind gives an iterator over all keys of a kind.
func (x *index) keysOfKind(kind byte) (Iterator, error) {
	return x.iter([]byte{kind}, []byte{kind + 1})
}

// onlyKnown refuses an index with records of a kind that this program does not know.
func (x *index) onlyKnown() error {
	it, err := x.iter([]byte{0}, []byte{0xff, 0xff})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.SeekGE([]byte{it.Key()[0] + 1}) {
		if kind := it.Key()[0]; strings.IndexByte(format.Kinds, kind) < 0 {
			return errs.New(errs.Version, "read index", "it has records of kind %q, which this program does not know", kind).
				WithHint("start the version of the program that wrote it")
		}
	}
	return errs.As(it.Error(), errs.Corrupt, "read index")
}

func (x *index) iter(lower, upper []byte) (Iterator, error) {
	if err := x.dev.err(); err != nil {
		return nil, err
	}
	it, err := x.db.NewIter(lower, upper)
	if err != nil {
		return nil, errs.As(err, errs.Corrupt, "read index")
	}
	return it, nil
}

// each visits all records of an iterator in order and closes it. An unreadable
// index is Corrupt: what was not visited is unknown, never absent.
func each(it Iterator, visit func(key, value []byte) error) (err error) {
	defer func() {
		if e := it.Close(); e != nil && err == nil {
			err = errs.As(e, errs.Corrupt, "read index")
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return errs.As(err, errs.Corrupt, "read index")
		}
		if err := visit(it.Key(), v); err != nil {
			return err
		}
	}
	return nil
}

// stripesOf visits a shard's stripe records in order of (offset, seq).
func (x *index) stripesOf(k layout.ShardKey, visit func(offset layout.ShardOffset, seq layout.Seq, header []byte) error) error {
	it, err := x.keysOf(format.KindStripe, k)
	if err != nil {
		return err
	}
	return each(it, func(key, value []byte) error {
		_, offset, seq, ok := format.DecodeStripeKey(key)
		if !ok {
			return errs.New(errs.Corrupt, "read index", "stripe key %x", key)
		}
		return visit(offset, seq, value)
	})
}

// recordView reads the stripe record under an iterator and checks that it is the
// one that its key names.
func recordView(it Iterator) (format.View, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return format.View{}, errs.As(err, errs.Corrupt, "read index")
	}
	key, offset, seq, ok := format.DecodeStripeKey(it.Key())
	if !ok {
		return format.View{}, errs.New(errs.Corrupt, "read index", "stripe key %x", it.Key())
	}
	return checkRecord(key, offset, seq, value)
}

// checkRecord reads a stripe record and checks its identity.
func checkRecord(key layout.ShardKey, offset layout.ShardOffset, seq layout.Seq, header []byte) (format.View, error) {
	v, err := format.ParseView(header)
	if err != nil {
		return format.View{}, errs.Wrap(err, "stripe %d of shard %v", seq, key)
	}
	if v.Key() != key || v.Offset != offset || v.Seq != seq {
		return format.View{}, errs.New(errs.Corrupt, "read index", "the record of stripe %d at %d of shard %v is another one's", seq, offset, key)
	}
	return v, nil
}

// pebbleLogger hands Pebble's words on.
type pebbleLogger struct {
	dev    *device
	logger *slog.Logger
}

func (l pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Warn("index reports an error", "err", fmt.Sprintf(format, args...))
}

// Fatalf latches. See index.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	_ = l.dev.fail(fmt.Errorf("index: "+format, args...))
}
