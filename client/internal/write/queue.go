package write

// queue is a first-in first-out list that keeps its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// at points to the i-th item, valid until the next push or pop.
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// pop takes the first item. Space before the head is taken back once it is
// half of the list, so that a queue of bounded length has bounded memory.
func (q *queue[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if 2*q.head >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v
}

func (q *queue[T]) reset() {
	clear(q.items)
	q.items, q.head = q.items[:0], 0
}
