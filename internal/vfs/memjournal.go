package vfs

import "slices"

// slot is a place for a name.
type slot struct {
	dir  *node
	name string
}

// setting puts a node, or nothing, into a slot.
type setting struct {
	slot
	to *node
}

// dirChange is one directory operation. A power cut keeps it whole or drops it.
//
// Un-synced changes survive independently, except that a change needs the
// earlier ones that touch the same slot or the same node (so a file that always
// had a name keeps one), the removal of a directory needs all changes within
// it, and a name that came from another directory needs those above it.
// This is weaker than what journaling file systems give, and no weaker than
// SyncDir's contract: code that survives here survives there.
type dirChange struct {
	sets  []setting
	nodes []*node // whose names change
	needs []claim // beside the claims of sets and nodes
}

// claim is what two changes may have in common.
type claim struct {
	node *node
	name string
	what claimKind
}

type claimKind uint8

const (
	claimSlot   claimKind = iota // the slot name of directory node
	claimNamed                   // a name of node
	claimInside                  // any slot of directory node
)

func named(n *node) claim    { return claim{node: n, what: claimNamed} }
func inside(dir *node) claim { return claim{node: dir, what: claimInside} }

// provides lists what later changes may need of this one.
func (c *dirChange) provides() []claim {
	var out []claim
	for _, s := range c.sets {
		out = append(out, claim{s.dir, s.name, claimSlot}, inside(s.dir))
	}
	for _, n := range c.nodes {
		out = append(out, named(n))
	}
	return out
}

// wants lists what this change needs of earlier ones.
func (c *dirChange) wants() []claim {
	out := slices.Clone(c.needs)
	for _, s := range c.sets {
		out = append(out, claim{s.dir, s.name, claimSlot})
	}
	for _, n := range c.nodes {
		out = append(out, named(n))
	}
	return out
}

// enter makes a change now, and durable with the next syncDir of a directory
// that it touches.
func (m *Mem) enter(c dirChange) {
	for _, s := range c.sets { // first, so that a moved file is never without a name
		if s.to != nil {
			s.to.links++
		}
	}
	for _, s := range c.sets {
		old := s.dir.entries[s.name]
		s.apply(s.dir.entries)
		if old != nil {
			old.links--
			m.release(old)
		}
	}
	m.journal = append(m.journal, c)
}

// syncDir makes the changes that touch dir durable, and what they need.
func (m *Mem) syncDir(dir *node) {
	wanted := map[claim]bool{inside(dir): true}
	chosen := make([]bool, len(m.journal))
	for i := len(m.journal) - 1; i >= 0; i-- {
		c := &m.journal[i]
		if !slices.ContainsFunc(c.provides(), func(cl claim) bool { return wanted[cl] }) {
			continue
		}
		chosen[i] = true
		for _, cl := range c.wants() {
			wanted[cl] = true
		}
	}
	var rest []dirChange
	for i, c := range m.journal {
		if !chosen[i] {
			rest = append(rest, c)
			continue
		}
		for _, s := range c.sets {
			s.apply(s.dir.synced)
		}
	}
	m.journal = rest
}

func (s setting) apply(entries map[string]*node) {
	if s.to == nil {
		delete(entries, s.name)
		return
	}
	entries[s.name] = s.to
}
