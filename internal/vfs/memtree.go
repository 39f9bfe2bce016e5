package vfs

import (
	"path"
	"strings"
	"syscall"
)

// node is a file or a directory of Mem. Mem's mutex guards it.
type node struct {
	isDir   bool
	entries map[string]*node // of a directory, now
	synced  map[string]*node // of a directory, as a power cut would leave it at worst
	data    content          // of a file
	trick   trick            // of a file: what happens to its next write
	links   int              // names it has now
	opens   int              // open handles
}

func newDir() *node {
	return &node{isDir: true, entries: map[string]*node{}, synced: map[string]*node{}}
}

// find gives the node at a clean path.
func (m *Mem) find(name string) (*node, error) {
	n := m.root
	if name == "." {
		return n, nil
	}
	for elem := range strings.SplitSeq(name, "/") {
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[elem]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

func (m *Mem) findDir(name string) (*node, error) {
	n, err := m.find(name)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	return n, err
}

func (m *Mem) findFile(name string) (*node, error) {
	n, err := m.find(name)
	if err == nil && n.isDir {
		err = syscall.EISDIR
	}
	return n, err
}

// slot gives the directory of a clean path, its last element, and what is there
// now (nil for nothing). The root has no slot.
func (m *Mem) slot(name string) (slot, *node, error) {
	if name == "." {
		return slot{}, nil, syscall.EBUSY
	}
	dir, err := m.findDir(path.Dir(name))
	if err != nil {
		return slot{}, nil, err
	}
	base := path.Base(name)
	return slot{dir, base}, dir.entries[base], nil
}

// create makes an empty file in a free slot.
func (m *Mem) create(at slot) *node {
	n := &node{}
	m.enter(dirChange{sets: []setting{{at, n}}, nodes: []*node{n}})
	return n
}

// ensure gives the file at a clean path and makes it when it is not there.
func (m *Mem) ensure(name string) (*node, error) {
	at, n, err := m.slot(name)
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return m.create(at), nil
	case n.isDir:
		return nil, syscall.EISDIR
	}
	return n, nil
}

// mkdirs makes a directory and its parents, each as a change of its own.
func (m *Mem) mkdirs(name string) error {
	dir := m.root
	if name == "." {
		return nil
	}
	for elem := range strings.SplitSeq(name, "/") {
		next := dir.entries[elem]
		if next == nil {
			next = newDir()
			m.enter(dirChange{sets: []setting{{slot{dir, elem}, next}}, nodes: []*node{next}})
		}
		if !next.isDir {
			return syscall.ENOTDIR
		}
		dir = next
	}
	return nil
}

func (m *Mem) remove(name string) error {
	at, n, err := m.slot(name)
	switch {
	case err != nil:
		return err
	case n == nil:
		return syscall.ENOENT
	case n.isDir && len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	c := dirChange{sets: []setting{{at, nil}}, nodes: []*node{n}}
	if n.isDir {
		c.needs = []claim{inside(n)} // its entries must be gone first
	}
	m.enter(c)
	return nil
}

func (m *Mem) link(from, to string) error {
	n, err := m.find(from)
	if err != nil {
		return err
	}
	at, taken, err := m.slot(to)
	switch {
	case err != nil:
		return err
	case taken != nil:
		return syscall.EEXIST
	case n.isDir:
		return syscall.EPERM
	}
	m.enter(dirChange{sets: []setting{{at, n}}, nodes: []*node{n}, needs: m.way(from, to)})
	return nil
}

// way claims the names of all directories above the clean path to. A file that
// comes there from another directory needs them, else it could lose its last
// name to a cut; within one directory nothing is needed.
func (m *Mem) way(from, to string) []claim {
	if path.Dir(from) == path.Dir(to) {
		return nil
	}
	var out []claim
	for dir := path.Dir(to); dir != "."; dir = path.Dir(dir) {
		if n, err := m.find(dir); err == nil {
			out = append(out, named(n))
		}
	}
	return out
}

func (m *Mem) rename(from, to string) error {
	n, err := m.findFile(from)
	if err != nil {
		return err
	}
	a, _, err := m.slot(from)
	if err != nil {
		return err
	}
	b, old, err := m.slot(to)
	switch {
	case err != nil:
		return err
	case old == n: // two names of one file: POSIX does nothing
		return nil
	case old != nil && old.isDir:
		return syscall.EISDIR
	}
	c := dirChange{sets: []setting{{a, nil}, {b, n}}, nodes: []*node{n}, needs: m.way(from, to)}
	if old != nil {
		c.nodes = append(c.nodes, old)
	}
	m.enter(c)
	return nil
}
