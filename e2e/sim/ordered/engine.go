// Package ordered is the index of a device in the seeded cluster: an ordered map
// in memory. It stands in for Pebble, which costs more to open and close than all
// else in a seed, and has goroutines.
//
// A Disk is what outlives an engine. A batch is in it, whole, before Commit
// returns: that is the contract's part about power cuts. What a cut leaves of
// Pebble's own files is not told by this; some seeds have the real one.
package ordered

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/btree"

	"strake/chunkd/store"
	"strake/internal/vfs"
)

// Disk is the durable content of one device's index. All methods are safe for
// concurrent use.
type Disk struct {
	mu   sync.Mutex
	keys *btree.BTreeG[pair]
}

// pair is a key with its value. Neither is ever changed.
type pair struct{ key, value []byte }

func less(a, b pair) bool { return bytes.Compare(a.key, b.key) < 0 }

// NewDisk gives an empty disk.
func NewDisk() *Disk {
	return &Disk{keys: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: 16})}
}

// After is the disk that a power cut at this moment leaves; d goes on.
func (d *Disk) After() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{keys: d.keys.Copy()}
}

// Open opens the index on the disk; it is a store's Options.Engine.
func (d *Disk) Open(vfs.FS, string) (store.Engine, error) { return engine{d}, nil }

// engine is an open index.
type engine struct{ *Disk }

// NewBatch implements store.Engine.
func (engine) NewBatch() *pebble.Batch { return new(pebble.Batch) }

// Commit implements store.Engine.
func (e engine) Commit(b *pebble.Batch) error {
	var kept pebble.Batch // the map keeps the bytes
	if err := kept.SetRepr(bytes.Clone(b.Repr())); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := kept.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return err
		}
		switch kind {
		case pebble.InternalKeyKindSet:
			e.keys.Set(pair{key, value})
		case pebble.InternalKeyKindDelete:
			e.keys.Delete(pair{key: key})
		case pebble.InternalKeyKindRangeDelete:
			for _, p := range e.between(key, value) {
				e.keys.Delete(p)
			}
		default:
			return errors.New("ordered: a batch with an operation that the index has no use for")
		}
	}
}

// between lists the pairs with keys in [from, to).
func (e engine) between(from, to []byte) (list []pair) {
	e.keys.Ascend(pair{key: from}, func(p pair) bool {
		if bytes.Compare(p.key, to) >= 0 {
			return false
		}
		list = append(list, p)
		return true
	})
	return list
}

// Get implements store.Engine.
func (e engine) Get(key []byte) ([]byte, io.Closer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.keys.Get(pair{key: key})
	if !ok {
		return nil, nil, pebble.ErrNotFound
	}
	return p.value, e, nil
}

// NewIter implements store.Engine.
func (e engine) NewIter(lower, upper []byte) (store.Iterator, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &iterator{pairs: e.between(lower, upper)}, nil
}

// Close implements store.Engine and io.Closer: nothing is held.
func (engine) Close() error { return nil }
