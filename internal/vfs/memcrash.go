package vfs

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Cut cuts the power: from now on every call on m and on its open files fails
// with ErrPowerCut, except Close. Crash tells what the disk then holds.
func (m *Mem) Cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = true
}

// Crash cuts the power and gives the file system that the next start finds,
// with nothing open, locked or un-synced. What was synced is in it. Of the rest,
// each write survives whole, not at all, or as some of its 512-byte sectors, and
// each directory change whole or not at all, with a chance of keepPercent (0 to
// 100). A sector that survives holds everything that was written to it until
// then. rng decides; it may be nil for 0 and 100. m stays as it was, so that
// Crash with another rng shows another outcome of the same cut.
func (m *Mem) Crash(rng *rand.Rand, keepPercent int) *Mem {
	m.Cut()
	return m.CrashClone(rng, keepPercent)
}

// CrashClone is Crash without the cut: m goes on, and the result tells what a
// cut at this moment would have left. It costs time and memory for the lists of
// pages, not for their bytes.
func (m *Mem) CrashClone(rng *rand.Rand, keepPercent int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{rng: rng, keep: keepPercent, dirs: map[*node]map[string]*node{}, done: map[*node]*node{}}
	c.directories(m.journal)
	after := NewMem(MemOptions{Capacity: m.capacity})
	after.root = c.survivor(m.root)
	for _, n := range c.done {
		after.used += int64(len(n.data.pages))
	}
	return after
}

// crash is the work of one Crash.
type crash struct {
	rng  *rand.Rand
	keep int                        // per cent
	dirs map[*node]map[string]*node // old directory to surviving entries, where they differ from synced
	done map[*node]*node            // old file to its survivor: hard links stay linked
}

func (c *crash) chance() bool {
	switch c.keep {
	case 0, 100:
		return c.keep == 100
	}
	return c.rng.IntN(100) < c.keep
}

// directories decides which directory changes survive: those that are lucky
// and need none that is lost.
func (c *crash) directories(journal []dirChange) {
	lost := map[claim]bool{}
	for i := range journal {
		ch := &journal[i]
		orphan := slices.ContainsFunc(ch.wants(), func(cl claim) bool { return lost[cl] })
		if !c.chance() || orphan {
			for _, cl := range ch.provides() {
				lost[cl] = true
			}
			continue
		}
		for _, s := range ch.sets {
			s.apply(c.entries(s.dir))
		}
	}
}

// entries gives a private copy of a directory's surviving entries.
func (c *crash) entries(dir *node) map[string]*node {
	if c.dirs[dir] == nil {
		c.dirs[dir] = maps.Clone(dir.synced)
	}
	return c.dirs[dir]
}

// survivor gives what is left of a node and all below it.
func (c *crash) survivor(old *node) *node {
	if !old.isDir {
		return c.file(old)
	}
	n, entries := newDir(), c.entries(old)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := c.survivor(entries[name])
		child.links++
		n.entries[name], n.synced[name] = child, child
	}
	return n
}

func (c *crash) file(old *node) *node {
	if n := c.done[old]; n != nil {
		return n
	}
	n := &node{data: *c.content(&old.data)}
	c.done[old] = n
	return n
}

// content replays the un-synced changes into a page cache, and lets some
// sectors of it reach the disk after each.
func (c *crash) content(old *content) *content {
	disk, cache := old.durable(), old.durable()
	limit := int64(math.MaxInt64) // sectors that end past it wait for a lost truncation
	for _, ch := range old.pending {
		was := cache.size
		cache.apply(ch)
		switch {
		case ch.kind != changeTruncate:
			c.writeback(disk, cache, ch, limit)
		case limit == math.MaxInt64 && c.chance():
			disk.truncate(ch.off)
		default: // metadata is ordered: what builds on a lost truncation is lost
			limit = min(limit, was, ch.off)
		}
	}
	disk.dropZeros()
	disk.settle()
	return disk
}

// writeback copies the surviving sectors of a write or hole from cache to disk.
func (c *crash) writeback(disk, cache *content, ch change, limit int64) {
	end := min(ch.off+ch.n, cache.size)
	first, last := ch.off/sectorSize, (end-1)/sectorSize
	if end <= ch.off {
		return
	}
	torn := c.keep > 0 && c.keep < 100 && last > first && c.rng.IntN(3) == 0
	whole := !torn && c.chance()
	for s := first; s <= last && (s+1)*sectorSize <= limit && (torn || whole); s++ {
		if whole || c.chance() {
			disk.copySector(cache, s, ch.kind == changeWrite)
		}
	}
	if torn && ch.kind == changeWrite && c.chance() { // the length came, the bytes did not
		disk.size = max(disk.size, min(end, limit))
	}
}

// copySector takes sector s from src; with grow it may make the file longer.
func (c *content) copySector(src *content, s int64, grow bool) {
	from := s * sectorSize
	if grow {
		c.size = max(c.size, min(from+sectorSize, src.size))
	}
	n := min(sectorSize, c.size-from) // nothing may stand past the size
	if n <= 0 {
		return
	}
	i, at := from/pageSize, from%pageSize
	if p := src.pages[i]; p != nil {
		copy(c.own(i, false)[at:at+n], p[at:])
	} else if c.pages[i] != nil {
		clear(c.own(i, false)[at : at+n])
	}
}

// dropZeros frees changed pages that hold only zeros.
func (c *content) dropZeros() {
	for i := range c.undo {
		if p := c.pages[i]; p != nil && *p == (page{}) {
			delete(c.pages, i)
		}
	}
}
