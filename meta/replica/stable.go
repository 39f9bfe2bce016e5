package replica

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta/replica/logstore"
	"strake/meta/replica/smallfile"
)

// stable keeps raft's stable values (term and vote) and the list of the log's files in
// one small file. It is written when a term, a vote or the list changes, so replacing
// the whole file is cheap enough.
type stable struct {
	fs   vfs.FS
	name string

	mu   sync.Mutex // held across the write: the file has one writer at a time
	kept stableBody // guarded by mu; what the file holds
}

type stableBody struct {
	Files  []uint64          // first indexes of the log's files
	Stable map[string][]byte // raft's values
}

var (
	_ raft.StableStore   = (*stable)(nil)
	_ logstore.Catalogue = (*stable)(nil)
)

func openStable(fs vfs.FS, name string) (*stable, error) {
	s := &stable{fs: fs, name: name}
	body, err := smallfile.Read(fs, name)
	if err != nil || body == nil {
		return s, err
	}
	if err := decodeSmall(body, &s.kept); err != nil {
		return nil, errs.Wrap(err, "read %s", name)
	}
	return s, nil
}

// Files implements logstore.Catalogue.
func (s *stable) Files() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept.Files)
}

// SetFiles implements logstore.Catalogue.
func (s *stable) SetFiles(first []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(stableBody{Files: slices.Clone(first), Stable: s.kept.Stable})
}

// Get implements raft.StableStore; a missing key gives nil.
func (s *stable) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Stable[string(key)], nil
}

// Set implements raft.StableStore.
func (s *stable) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := maps.Clone(s.kept.Stable)
	if values == nil {
		values = map[string][]byte{}
	}
	values[string(key)] = slices.Clone(value)
	return s.replace(stableBody{Files: s.kept.Files, Stable: values})
}

// SetUint64 implements raft.StableStore.
func (s *stable) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore; a missing key gives 0.
func (s *stable) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil || len(b) != 8 {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// replace writes a new body; memory follows only when the disk has it. Called with mu
// held.
func (s *stable) replace(next stableBody) error {
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := smallfile.Write(s.fs, s.name, body); err != nil {
		return err
	}
	s.kept = next
	return nil
}

// logAndVotes is all that raft keeps but its snapshots.
type logAndVotes struct {
	*logstore.Store
	*stable
}
