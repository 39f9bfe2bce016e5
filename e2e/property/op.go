package property

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Kind is what an operation does.
type Kind int

// Kinds of operations. Those that find nothing to do it to do nothing.
const (
	Write Kind = iota
	Discard
	WriteZeroes
	Flush
	Snapshot
	Clone    // of a snapshot; what follows happens to the clone
	Rollback // to a snapshot of this volume
	Remove   // a snapshot
	Resize
	Reopen
	Crash // the writer dies, and a server with it
	Clean
	Flatten
	kinds
)

// String gives the kind's name in Go.
func (k Kind) String() string {
	return [...]string{"Write", "Discard", "WriteZeroes", "Flush", "Snapshot", "Clone", "Rollback", "Remove", "Resize", "Reopen", "Crash", "Clean", "Flatten"}[k]
}

// often is how often operations of a kind are drawn, of 100.
var often = [kinds]int{Write: 52, Discard: 6, WriteZeroes: 4, Flush: 8, Snapshot: 6, Clone: 2, Rollback: 2, Remove: 5, Resize: 3, Reopen: 3, Crash: 4, Clean: 4, Flatten: 1}

// Op is one operation. Which block, size or snapshot it means depends on what there is
// when it is carried out.
type Op struct {
	Kind Kind
	At   int    // in thousandths of the volume
	N    int    // blocks
	Pick uint64 // of content, snapshots, servers
}

// String gives the operation as it stands in a Go test.
func (o Op) String() string {
	return fmt.Sprintf("{property.%v, %d, %d, %d}", o.Kind, o.At, o.N, o.Pick)
}

// Draw gives n operations of a seed.
func Draw(seed uint64, n int) []Op {
	r := rand.New(rand.NewPCG(seed, 11))
	ops := make([]Op, n)
	for i := range ops {
		ops[i] = Op{Kind: drawKind(r), At: r.IntN(1000), N: 1 + r.IntN(8), Pick: r.Uint64() >> 40}
		if r.IntN(8) == 0 {
			ops[i].N = 1 + r.IntN(300)
		}
	}
	return ops
}

func drawKind(r *rand.Rand) Kind {
	n := r.IntN(100)
	for k, share := range often {
		if n -= share; n < 0 {
			return Kind(k)
		}
	}
	return Write
}

// List gives operations as the elements of a slice in Go.
func List(ops []Op) string {
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "\t%v,\n", o)
	}
	return b.String()
}

// Shrink looks for a short part of a history that fails too, in at most so many tries:
// it leaves out halves, quarters and so on, as long as what is left fails. It gives
// the shortest that failed and its error.
func Shrink(ops []Op, err error, tries int, run func([]Op) error) ([]Op, error) {
	for size := (len(ops) + 1) / 2; size > 0; {
		smaller := false
		for at := 0; at < len(ops) && tries > 0; tries-- {
			part := append(append([]Op(nil), ops[:at]...), ops[min(at+size, len(ops)):]...)
			if e := run(part); e != nil {
				ops, err, smaller = part, e, true
			} else {
				at += size
			}
		}
		if tries == 0 || size == 1 && !smaller {
			break
		}
		size = max(1, min(size/2, (len(ops)+1)/2))
	}
	return ops, err
}
