package ordered

import (
	"bytes"
	"slices"
)

// iterator walks over a copy of a range's keys: a shard has few.
type iterator struct {
	pairs []pair
	at    int // -1 and len(pairs): outside
}

func (i *iterator) to(at int) bool {
	i.at = min(max(at, -1), len(i.pairs))
	return i.at >= 0 && i.at < len(i.pairs)
}

func (i *iterator) find(key []byte) int {
	at, _ := slices.BinarySearchFunc(i.pairs, key, func(p pair, key []byte) int { return bytes.Compare(p.key, key) })
	return at
}

// First implements store.Iterator.
func (i *iterator) First() bool { return i.to(0) }

// Last implements store.Iterator.
func (i *iterator) Last() bool { return i.to(len(i.pairs) - 1) }

// Next implements store.Iterator.
func (i *iterator) Next() bool { return i.to(i.at + 1) }

// Prev implements store.Iterator.
func (i *iterator) Prev() bool { return i.to(i.at - 1) }

// SeekGE implements store.Iterator.
func (i *iterator) SeekGE(key []byte) bool { return i.to(i.find(key)) }

// SeekLT implements store.Iterator.
func (i *iterator) SeekLT(key []byte) bool { return i.to(i.find(key) - 1) }

// Key implements store.Iterator.
func (i *iterator) Key() []byte { return i.pairs[i.at].key }

// Value implements store.Iterator.
func (i *iterator) Value() []byte { return i.pairs[i.at].value }

// ValueAndErr implements store.Iterator.
func (i *iterator) ValueAndErr() ([]byte, error) { return i.Value(), nil }

// Error implements store.Iterator.
func (i *iterator) Error() error { return nil }

// Close implements store.Iterator.
func (i *iterator) Close() error { return nil }
