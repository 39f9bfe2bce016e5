package store

import (
	"sync"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/frame"
)

// row is a shard at rest: 72 bytes without a pointer, so that 100,000 shards
// cost a few MiB and the garbage collector nothing. With the map's 20 bytes an
// entry it stays under 128 bytes a shard.
type row struct {
	volume     layout.VolumeID
	epoch      layout.Epoch // that allocated it
	fence      layout.Epoch // refuse lower epochs; may be ahead of the disk
	segment    layout.SegmentID
	length     uint32 // promised, blocks
	end        uint32 // finalized: where the last unit ends, blocks
	stored     uint32 // durable units, blocks
	stripes    uint32 // durable ones
	generation layout.Generation
	shard      layout.ShardIndex
	geometry   layout.Geometry
	state      format.ShardState // 0: the slot is free
	flags      format.ShardFlags
	fenced     bool // the fence is durable
	doubts     bool // some stripes have a doubt in the index
}

func (r *row) key() layout.ShardKey { return layout.ShardKey{Segment: r.segment, Shard: r.shard} }

// minEpoch is the lowest epoch that the shard answers to.
func (r *row) minEpoch() layout.Epoch { return max(r.epoch, r.fence) }

// charge is what the shard costs in the device's account, in bytes: its full
// length while it can grow, what it stores once it is immutable.
func (r *row) charge() int64 {
	if r.state == format.ShardFinalized {
		return int64(r.stored) * layout.BlockSize
	}
	return int64(r.length) * layout.BlockSize
}

// slot names a row.
type slot uint32

const rowsPerPage = 1024

// table holds every shard of the device, and the active ones among them.
type table struct {
	mu      sync.RWMutex // guards all below; taken after shard.mu (but see shrink)
	slots   map[layout.ShardKey]slot
	pages   []*[rowsPerPage]row
	free    []slot
	used    int             // slots ever given out
	active  map[slot]*shard // with appends, or lately used
	charged int64           // sum of charge over all rows, and of what is being created
	stored  int64           // sum of stored over all rows, bytes
	removed int64           // bytes by which stored ever fell
}

func newTable() *table {
	return &table{slots: map[layout.ShardKey]slot{}, active: map[slot]*shard{}}
}

func (t *table) at(i slot) *row { return &t.pages[i/rowsPerPage][i%rowsPerPage] }

// insert adds a row; the key must be new. Its charge is added with it.
func (t *table) insert(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i slot
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if t.used%rowsPerPage == 0 {
			t.pages = append(t.pages, new([rowsPerPage]row))
		}
		i = slot(t.used)
		t.used++
	}
	*t.at(i) = r
	t.slots[r.key()] = i
	t.charged += r.charge()
	t.stored += int64(r.stored) * layout.BlockSize
}

// remove forgets a shard and its charge.
func (t *table) remove(i slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.at(i)
	delete(t.slots, r.key())
	delete(t.active, i)
	t.charged -= r.charge()
	t.stored -= int64(r.stored) * layout.BlockSize
	t.removed += int64(r.stored) * layout.BlockSize
	*r = row{}
	t.free = append(t.free, i)
}

// update changes a row and keeps the account.
func (t *table) update(i slot, change func(r *row)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.at(i)
	was := int64(r.stored) * layout.BlockSize
	t.charged -= r.charge()
	change(r)
	now := int64(r.stored) * layout.BlockSize
	t.charged += r.charge()
	t.stored += now - was
	t.removed += max(0, was-now)
}

// row gives a copy.
func (t *table) row(i slot) row {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return *t.at(i)
}

// find gives a shard's slot and row.
func (t *table) find(ref frame.ShardRef) (slot, row, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, err := t.locate(ref)
	if err != nil {
		return 0, row{}, err
	}
	return i, *t.at(i), nil
}

// locate is called with mu held.
func (t *table) locate(ref frame.ShardRef) (slot, error) {
	i, ok := t.slots[ref.ShardKey]
	if !ok {
		return 0, errs.New(errs.NotHere, "", "shard %v is not on this device", ref.ShardKey)
	}
	if g := t.at(i).generation; g != ref.Generation && !planted.Is(planted.StaleGenerationAccepted) {
		return 0, errs.New(errs.StaleGeneration, "", "shard %v has generation %d here, not %d", ref.ShardKey, g, ref.Generation)
	}
	return i, nil
}

// pin gives the active form of a shard and keeps it from being dropped.
func (t *table) pin(ref frame.ShardRef) (*shard, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, err := t.locate(ref)
	if err != nil {
		return nil, err
	}
	sh := t.active[i]
	if sh == nil {
		t.shrink()
		sh = newShard(i, ref)
		t.active[i] = sh
	}
	sh.refs++
	return sh, nil
}

// pinActive is pin for a shard that may hold entries in memory; nil when it
// doesn't.
func (t *table) pinActive(i slot, ref frame.ShardRef) *shard {
	t.mu.Lock()
	defer t.mu.Unlock()
	sh := t.active[i]
	if sh == nil || sh.ref != ref {
		return nil
	}
	sh.refs++
	return sh
}

func (t *table) unpin(sh *shard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sh.refs--
}

// maxActive bounds the shards that stay active without a reason.
const maxActive = 4096

// shrink drops idle active shards when there are too many. It is called with mu
// held. Nobody is inside a shard without references, so locking its mu here, in the
// wrong order, can't wait for anybody.
func (t *table) shrink() {
	if len(t.active) < maxActive {
		return
	}
	looked := 0
	for i, sh := range t.active {
		if looked++; looked > 64 {
			return // a few at a time: each pin drops more than it adds
		}
		if sh.refs == 0 && !sh.held() {
			delete(t.active, i)
		}
	}
}

// pinAll pins every active shard.
func (t *table) pinAll() []*shard {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*shard, 0, len(t.active))
	for _, sh := range t.active {
		sh.refs++
		list = append(list, sh)
	}
	return list
}
