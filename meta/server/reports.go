package server

import (
	"sync"

	"strake/internal/errs"
	"strake/internal/layout"
)

// maxReports bounds the bad shards that are remembered.
const maxReports = 4096

// reports remembers shards that clients and scrubs found bad, for the status; it
// is soft and starts empty. Slowness is not remembered.
type reports struct {
	mu  sync.Mutex
	bad map[layout.ShardKey]errs.Kind // guarded by mu
}

func newReports() *reports { return &reports{bad: map[layout.ShardKey]errs.Kind{}} }

// note remembers one and tells whether it is new.
func (r *reports) note(shard layout.ShardKey, kind errs.Kind) bool {
	switch kind {
	case errs.Corrupt, errs.NotHere, errs.Internal:
	default:
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.bad[shard]; ok && old == kind || len(r.bad) >= maxReports {
		return false
	}
	r.bad[shard] = kind
	return true
}

// forget drops what was said of a shard that was made whole.
func (r *reports) forget(shard layout.ShardKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bad, shard)
}

func (r *reports) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.bad)
}
