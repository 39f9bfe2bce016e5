package workload

import (
	"math/rand/v2"
	"time"
)

// Op is one operation of a workload.
type Op struct {
	Number  uint64 // from 1, without gaps
	Block   uint64 // the first
	Count   uint64 // of blocks, at least 1
	Discard bool   // else a write
}

// Plan says which operations a writer makes. The same plan gives the same ones.
type Plan struct {
	Volume string
	Seed   uint64
	First  uint64 // number of its first operation
	Blocks uint64 // of the volume
	Most   uint64 // blocks of one operation, at least 1

	Every time.Duration // the least time between two operations; 0: as fast as it goes
}

// Ops gives the operations one after another.
func (p Plan) Ops() func() Op {
	random := rand.New(rand.NewPCG(p.Seed, p.First))
	next := p.First
	return func() Op {
		count := uint64(1)
		if random.IntN(2) == 0 { // half of them small, the others of all sizes
			count = 1 + random.Uint64N(p.Most)
		}
		op := Op{Number: next, Count: count, Discard: random.IntN(16) == 0}
		op.Block = random.Uint64N(p.Blocks - count + 1)
		next++
		return op
	}
}
