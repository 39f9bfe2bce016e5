// Package history holds what several clients did to single blocks of volumes, side
// by side, and tells whether it is linearizable: whether each operation can have
// taken place at one instant between its begin and its end (porcupine decides).
//
// It owns the notes, not the clients. What design §4 promises of a block that many
// write in turn, each under a lease of its own, is told by durable writes and by
// reads whose reader still held its lease afterwards (a durable write proves it): a
// writer that was deposed may serve old bytes, and a write that was not flushed may
// vanish with its writer.
package history

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// mostTold bounds the operations that an error lists.
const mostTold = 50

// Log is a history. Safe for concurrent use; Check comes last.
type Log struct {
	mu   sync.Mutex
	next int64
	ops  []*Op // guarded by mu
}

// Op is one operation on a block.
type Op struct {
	log        *Log
	client     int
	input      input
	begin, end int64 // places in the order of begins and ends; end 0: it never ended
	refused    bool
	got        uint64 // of a read
}

type input struct {
	block uint64
	write bool
	value uint64
}

// Write begins a write of a value, which no other write has; 0 is what a block has
// at first.
func (l *Log) Write(client int, block, value uint64) *Op {
	return l.begin(client, input{block, true, value})
}

// Read begins a read.
func (l *Log) Read(client int, block uint64) *Op { return l.begin(client, input{block: block}) }

func (l *Log) begin(client int, in input) *Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	o := &Op{log: l, client: client, input: in, begin: l.next}
	l.ops = append(l.ops, o)
	return o
}

// Add takes what a client in a process of its own noted, in lines: `write BLOCK VALUE
// AT` and `read BLOCK AT` begin an operation, `done VALUE AT` ends the one begun last;
// AT is a time in nanoseconds, by one clock for all clients. Other lines, and a last
// one that was cut off, are left out. A Log takes either such notes or Write and Read.
func (l *Log) Add(client int, notes string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last *Op
	for line := range strings.Lines(notes) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var in input
		var value uint64
		var at int64
		if n, _ := fmt.Sscanf(line, "write %d %d %d", &in.block, &in.value, &at); n == 3 {
			in.write = true
		} else if n, _ := fmt.Sscanf(line, "read %d %d", &in.block, &at); n != 2 {
			if n, _ := fmt.Sscanf(line, "done %d %d", &value, &at); n == 2 && last != nil {
				last.end, last.got, last = at, value, nil
			}
			continue
		}
		last = &Op{log: l, client: client, input: in, begin: at}
		l.ops = append(l.ops, last)
	}
}

// Until leaves out the reads that ended after a time. Notes that are taken of one client
// after another while they go on are no picture of one moment: what a read saw may have
// been written after the writer's notes were taken.
func (l *Log) Until(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = slices.DeleteFunc(l.ops, func(o *Op) bool { return !o.input.write && o.end > at })
}

// Unnoted counts the reads of values that no write has: what is noted is not all yet,
// or something was read that nobody wrote.
func (l *Log) Unnoted() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	written := map[input]bool{}
	for _, o := range l.ops {
		if o.input.write {
			written[o.input] = true
		}
	}
	for _, o := range l.ops {
		if !o.input.write && o.end > 0 && o.got != 0 && !written[input{o.input.block, true, o.got}] {
			n++
		}
	}
	return n
}

// Done ends an operation; value is what a read saw. An operation that never ends may
// have taken place, at any time since.
func (o *Op) Done(value uint64) {
	o.log.mu.Lock()
	defer o.log.mu.Unlock()
	o.log.next++
	o.end, o.got = o.log.next, value
}

// Refused says that a write did not take place and will not.
func (o *Op) Refused() {
	o.log.mu.Lock()
	defer o.log.mu.Unlock()
	o.refused = true
}

// Len is how many operations ended.
func (l *Log) Len() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.ops {
		if o.end > 0 {
			n++
		}
	}
	return n
}

// Check tells whether the history is linearizable, block by block.
func (l *Log) Check(within time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	blocks := map[uint64][]porcupine.Operation{}
	seen := l.firstSeen()
	for i, o := range l.ops {
		if o.refused || o.end == 0 && !o.input.write {
			continue
		}
		end, client := o.end, o.client
		if end == 0 { // its client goes on meanwhile: porcupine wants another one
			end, client = seen[o.input], len(l.ops)+i
		}
		if end == 0 {
			continue // nobody saw it, so it may as well not have taken place yet
		}
		b := o.input.block
		if end < o.begin {
			return fmt.Errorf("block %d: value %d was read before its write began", b, o.input.value)
		}
		blocks[b] = append(blocks[b], porcupine.Operation{ClientId: client, Input: o.input, Call: o.begin, Output: o.got, Return: end})
	}
	for b, ops := range blocks { // the first that is found wrong is told; the order does not matter
		if r := porcupine.CheckOperationsTimeout(register(), ops, within); r != porcupine.Ok {
			return fmt.Errorf("block %d: its %d operations are not linearizable (%v); the last of them: %v", b, len(ops), r, ops[max(0, len(ops)-mostTold):])
		}
	}
	return nil
}

// firstSeen tells of each write that was read when the first read ended that saw it:
// a write that never ended took place before that. Without this bound each one would
// overlap all that comes after, and the search would have no end.
func (l *Log) firstSeen() map[input]int64 {
	seen := map[input]int64{}
	for _, o := range l.ops {
		if o.input.write || o.end == 0 {
			continue
		}
		w := input{block: o.input.block, write: true, value: o.got}
		if at, ok := seen[w]; !ok || o.end < at {
			seen[w] = o.end
		}
	}
	return seen
}

// register is a block: it has the value that was written last.
func register() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, in, out any) (bool, any) {
			i := in.(input)
			if i.write {
				return true, i.value
			}
			return out.(uint64) == state.(uint64), state
		},
	}
}
