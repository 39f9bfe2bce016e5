package replica

import (
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// The store that raft sees, over guard.

// StoreLog implements raft.LogStore.
func (g *guard) StoreLog(entry *raft.Log) error { return g.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (g *guard) StoreLogs(entries []*raft.Log) error {
	sealed := make([]*raft.Log, len(entries))
	for i, e := range entries {
		sealed[i] = seal(e)
		g.note(e)
	}
	return g.write("write the log", func() error { return g.below.StoreLogs(sealed) })
}

// DeleteRange implements raft.LogStore.
func (g *guard) DeleteRange(first, last uint64) error {
	return g.write("truncate the log", func() error { return g.below.DeleteRange(first, last) })
}

// Set implements raft.StableStore. raft panics when it can't write a term; as in
// checked, its goroutine ends here instead.
func (g *guard) Set(key, value []byte) error {
	err := g.write("write term and vote", func() error { return g.below.Set(key, sealValue(key, value)) })
	if err != nil && g.running.Load() {
		runtime.Goexit()
	}
	return err
}

// SetUint64 implements raft.StableStore. raft writes term 0 when it starts with
// nothing; that is no state yet, and must not make the directory a member's.
func (g *guard) SetUint64(key []byte, value uint64) error {
	if old, err := g.GetUint64(key); err == nil && old == value && value == 0 {
		return nil
	}
	return g.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// Get implements raft.StableStore; a missing key gives nil.
func (g *guard) Get(key []byte) ([]byte, error) {
	b, err := g.below.Get(key)
	if err != nil {
		return nil, err
	}
	value, err := unsealValue(key, b)
	return value, g.checked(err)
}

// GetUint64 implements raft.StableStore; a missing key gives 0.
func (g *guard) GetUint64(key []byte) (uint64, error) {
	b, err := g.Get(key)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, g.checked(errs.New(errs.Corrupt, "", "stable value %q has %d bytes", key, len(b)))
	}
	return binary.LittleEndian.Uint64(b), nil
}

// GetLog implements raft.LogStore.
func (g *guard) GetLog(index uint64, entry *raft.Log) error {
	err := g.below.GetLog(index, entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	if err == nil {
		err = unseal(entry, index)
	}
	return g.checked(err)
}

// checked makes a failed read final. raft panics when it can't read an entry
// that it must apply; its goroutine ends here instead, so that the typed error
// that fatal got is the last word of the process.
func (g *guard) checked(err error) error {
	if err == nil {
		return nil
	}
	g.fail(unreadable(err, errs.KindOf(err), "read the log"))
	if g.running.Load() {
		runtime.Goexit()
	}
	return err
}

// FirstIndex implements raft.LogStore.
func (g *guard) FirstIndex() (uint64, error) { return g.below.FirstIndex() }

// LastIndex implements raft.LogStore.
func (g *guard) LastIndex() (uint64, error) { return g.below.LastIndex() }

// IsMonotonic implements raft.MonotonicLogStore: the log takes no gaps, so raft
// must empty it when a snapshot is installed.
func (g *guard) IsMonotonic() bool { return true }
