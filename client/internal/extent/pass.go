package extent

// pass makes the new pages of one level of one tree. It goes through the
// changed parts of the level in key order. Neighbouring changed parts under one
// parent form a stretch, which is packed afresh; a stretch that comes out
// nearly empty takes in its next neighbour. Stretches end where the parent
// ends, since a page must not reach beyond the parent that names it.
type pass struct {
	m     *Map
	c     *Checkpoint
	tree  *tree
	level uint8
	src   source
	pack  packer
	at    uint64 // first key not looked at
	up    uint64 // end of the stretch's parent
	open  bool   // a stretch is under way

	result  childSource // what the level above has to change
	emitted int         // pages made, placed or not
	top     *node       // the tree's new top node, when the pass came to it
	done    bool
}

func newPass(c *Checkpoint, t *tree, level uint8, src source) *pass {
	kind := t.top.kind
	p := &pass{m: c.m, c: c, tree: t, level: level, src: src, result: childSource{kind: kind}}
	p.pack = packer{cols: columns(kind, level), limit: c.m.limits[min(level, 1)], emit: p.emit}
	return p
}

// step goes one part further, or returns the pages that are missing for it.
func (p *pass) step() (need []PageRef, err error) {
	key, ok, need := p.next()
	if need != nil {
		return need, nil
	}
	if !ok {
		p.endStretch()
		p.done = true
		return nil, nil
	}
	part := p.m.find(p.tree, key, p.level)
	if part.missing() {
		return p.ahead(part), nil
	}
	if p.open && (part.lo != p.at || p.at == p.up) {
		p.endStretch()
	}
	if !p.open {
		p.open, p.up = true, part.up
		p.pack.begin(part.lo)
	}
	if part.ref.Blocks > 0 {
		p.result.removed = append(p.result.removed, part.ref.First)
		p.c.free(part.ref)
	}
	p.at = part.hi
	return nil, p.src.merge(part, &p.pack)
}

// next gives the next key whose part is to be made afresh.
func (p *pass) next() (key uint64, ok bool, need []PageRef) {
	if p.open && p.at < p.up && p.pack.underfull() {
		return p.at, true, nil
	}
	key, ok = p.src.next(p.at)
	if p.level >= p.tree.top.level || p.c.vacate.n == 0 {
		return key, ok, nil
	}
	until := uint64(keyEnd)
	if ok {
		until = key
	}
	for at := p.at; at < until; {
		up := p.m.find(p.tree, at, p.level+1)
		if up.missing() {
			return 0, false, []PageRef{up.ref}
		}
		for i := max(up.node.search(at), 0); i < up.node.rows && up.node.get(i, colFirst) < until; i++ {
			if p.c.vacate.find(up.node.get(i, colSegment)) != nil {
				return max(at, up.node.get(i, colFirst)), true, nil
			}
		}
		at = up.hi
	}
	return key, ok, nil
}

// prefetch bounds the missing pages that one step asks for.
const prefetch = 256

// ahead gives the missing part's ref and those of the next changed parts.
func (p *pass) ahead(missing part) []PageRef {
	need := []PageRef{missing.ref}
	for range prefetch - 1 {
		key, ok := p.src.next(missing.hi)
		if !ok {
			break
		}
		missing = p.m.find(p.tree, key, p.level)
		if missing.missing() {
			need = append(need, missing.ref)
		}
	}
	return need
}

// endStretch makes the stretch's last pages. When the stretch is the whole
// level and fits one page it becomes the tree's top node instead.
func (p *pass) endStretch() {
	if !p.open {
		return
	}
	p.open = false
	if p.level < p.tree.top.level || p.emitted > 0 || !p.pack.single() {
		p.pack.close()
		return
	}
	level := p.level
	if len(p.pack.rows) == 0 {
		level = 0
	}
	top := newNode(p.tree.top.kind, level, p.pack.rows)
	p.top = p.lower(&top)
}

// lower takes an only child into the root page, as far as it is at hand: so a
// map that got small has one page again.
func (p *pass) lower(top *node) *node {
	for top.level > 0 && top.rows == 1 {
		ref := top.child(0)
		child := p.m.cache.get(ref)
		if child == nil {
			break
		}
		p.c.free(ref)
		n := *child
		top = &n
	}
	return top
}

func (p *pass) emit(first uint64, rows []row) {
	p.emitted++
	p.c.add(encodePage(p.tree.top.kind, p.level, first, rows), p.tree.top.kind, p.level, first)
}
