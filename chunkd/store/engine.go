package store

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Engine is the ordered map below a device's index. Pebble is the real one. A
// test may hand in its own (Options.Engine), over the same folder: it keeps the
// contract, what is committed outlives a power cut included. All methods are
// safe for concurrent use, except that Close must come last.
type Engine interface {
	// Get gives a key's value, which is valid until the closer is closed, or
	// pebble.ErrNotFound.
	Get(key []byte) ([]byte, io.Closer, error)
	// NewIter gives a view of the keys in [lower, upper) as they are now.
	NewIter(lower, upper []byte) (Iterator, error)
	// NewBatch starts a batch of sets, deletes and range deletes.
	NewBatch() *pebble.Batch
	// Commit applies a batch whole; it is durable when Commit returns.
	Commit(b *pebble.Batch) error
	Close() error
}

// Iterator walks over an Engine's keys, as pebble.Iterator does.
type Iterator interface {
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Key() []byte
	Value() []byte
	ValueAndErr() ([]byte, error)
	Error() error
	Close() error
}

// pebbleEngine is Pebble as an Engine.
type pebbleEngine struct{ db *pebble.DB }

func (p pebbleEngine) Get(key []byte) ([]byte, io.Closer, error) { return p.db.Get(key) }
func (p pebbleEngine) NewBatch() *pebble.Batch                   { return p.db.NewBatch() }
func (p pebbleEngine) Commit(b *pebble.Batch) error              { return b.Commit(pebble.Sync) }

func (p pebbleEngine) NewIter(lower, upper []byte) (Iterator, error) {
	return p.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

// Close flushes first: that leaves nothing in Pebble's log for the next life to
// misread.
func (p pebbleEngine) Close() error { return errors.Join(p.db.Flush(), p.db.Close()) }
