package vfs

import (
	"slices"
	"syscall"
)

// trick is what the medium does with a file's next write behind its back.
type trick struct {
	kind trickKind
	off  int64 // with trickMisdirect: where the bytes go
}

type trickKind uint8

const (
	trickNone trickKind = iota
	trickLose
	trickMisdirect
)

// FlipBit flips one bit (0 to 7) of the byte at off, as rot of the medium does:
// now, and in what a power cut leaves. It fails with EINVAL past the end.
func (m *Mem) FlipBit(path string, off int64, bit uint) error {
	return m.onFile("flip", path, func(n *node) error {
		if off < 0 || off >= n.data.size || bit > 7 {
			return syscall.EINVAL
		}
		before := len(n.data.pages)
		n.data.flip(off, 1<<bit)
		m.used += int64(len(n.data.pages) - before)
		return nil
	})
}

// LoseNextWrite makes the next WriteAt or WritevAt on the file succeed without
// storing a byte; the file still grows, with zeros.
func (m *Mem) LoseNextWrite(path string) error {
	return m.onFile("lose", path, func(n *node) error {
		n.trick = trick{kind: trickLose}
		return nil
	})
}

// MisdirectNextWrite makes the next WriteAt or WritevAt on the file store its
// bytes at off; where they belong, what was there stays.
func (m *Mem) MisdirectNextWrite(path string, off int64) error {
	return m.onFile("misdirect", path, func(n *node) error {
		n.trick = trick{kind: trickMisdirect, off: off}
		return checkRange(off, 0)
	})
}

func (m *Mem) onFile(op, path string, do func(n *node) error) error {
	return m.at(op, path, func(clean string) error {
		n, err := m.findFile(clean)
		if err != nil {
			return err
		}
		return do(n)
	})
}

// write stores p at off, or does what the armed trick says.
func (n *node) write(p []byte, off int64) {
	t := n.trick
	n.trick = trick{}
	p = slices.Clone(p)
	if t.kind == trickNone {
		n.data.log(change{kind: changeWrite, off: off, n: int64(len(p)), data: p})
		return
	}
	old := make([]byte, len(p))
	_, _ = n.data.read(old, off) // io.EOF: the rest is zeros
	n.data.log(change{kind: changeWrite, off: off, n: int64(len(p)), data: old})
	if t.kind == trickMisdirect {
		n.data.log(change{kind: changeWrite, off: t.off, n: int64(len(p)), data: p})
	}
}

// log makes a change and keeps it until the next sync.
func (c *content) log(ch change) {
	c.apply(ch)
	c.pending = append(c.pending, ch)
}

// flip replaces the page now and the synced one, each if it is there.
func (c *content) flip(off int64, mask byte) {
	i, at := off/pageSize, off%pageSize
	old, changed := c.undo[i]
	if changed && old != nil && off < c.synced {
		rotten := *old
		rotten[at] ^= mask
		c.undo[i] = &rotten
	}
	rotten := new(page)
	if p := c.pages[i]; p != nil {
		*rotten = *p
	}
	rotten[at] ^= mask
	if c.pages == nil {
		c.pages = map[int64]*page{}
	}
	c.pages[i] = rotten
}
