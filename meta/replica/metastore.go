package replica

import (
	"encoding/json"
	"maps"
	"sync"

	"github.com/hashicorp/raft-wal/types"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// walMeta keeps raft-wal's list of segment files and raft's stable values (term
// and vote) in one small file. It stands in for raft-wal's own BoltDB file,
// which is mapped into memory, was seen broken after power cuts, and is never
// closed by raft-wal. It is written when a term, a vote or a segment changes,
// so a whole-file replacement is cheap enough.
type walMeta struct {
	fs   vfs.FS
	name string

	mu   sync.Mutex // held across the write: the file has one writer at a time
	kept metaBody   // guarded by mu; what the file holds
}

type metaBody struct {
	Log    types.PersistentState
	Stable map[string][]byte
}

var _ types.MetaStore = (*walMeta)(nil)

// Load implements types.MetaStore.
func (m *walMeta) Load(string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := readSmall(m.fs, m.name)
	if err != nil || body == nil {
		return types.PersistentState{}, err
	}
	if err := json.Unmarshal(body, &m.kept); err != nil {
		return types.PersistentState{}, errs.As(err, errs.Corrupt, "read %s", m.name)
	}
	return m.kept.Log, nil
}

// CommitState implements types.MetaStore.
func (m *walMeta) CommitState(state types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replace(metaBody{Log: state, Stable: m.kept.Stable})
}

// GetStable implements types.MetaStore.
func (m *walMeta) GetStable(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Stable[string(key)], nil
}

// SetStable implements types.MetaStore.
func (m *walMeta) SetStable(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := metaBody{Log: m.kept.Log, Stable: maps.Clone(m.kept.Stable)}
	if next.Stable == nil {
		next.Stable = map[string][]byte{}
	}
	next.Stable[string(key)] = append([]byte(nil), value...)
	return m.replace(next)
}

// replace writes a new body; memory follows only when the disk has it.
func (m *walMeta) replace(next metaBody) error {
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := writeSmall(m.fs, m.name, body); err != nil {
		return err
	}
	m.kept = next
	return nil
}

// Close implements types.MetaStore.
func (m *walMeta) Close() error { return nil }
