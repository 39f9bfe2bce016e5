package client

// fifo is a first-in first-out list that keeps its memory. The zero value is
// empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

// at points to the i-th item, valid until the next push or pop.
func (q *fifo[T]) at(i int) *T { return &q.items[q.head+i] }

func (q *fifo[T]) push(v T) { q.items = append(q.items, v) }

// pop takes the first item. Space before the head is taken back once it is half
// of the list.
func (q *fifo[T]) pop() T {
	var none T
	v := q.items[q.head]
	q.items[q.head] = none
	q.head++
	if 2*q.head >= len(q.items) {
		q.items, q.head = q.items[:q.keep()], 0
	}
	return v
}

// keep moves what is left to the front.
func (q *fifo[T]) keep() int {
	n := copy(q.items, q.items[q.head:])
	clear(q.items[n:])
	return n
}

// remove takes the i-th item out.
func (q *fifo[T]) remove(i int) {
	var none T
	at := q.head + i
	copy(q.items[at:], q.items[at+1:])
	q.items[len(q.items)-1] = none
	q.items = q.items[:len(q.items)-1]
}
