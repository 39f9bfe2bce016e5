package e2e

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/history"
	"strake/e2e/workload"
)

const (
	fighters    = 3  // clients that take the volume from each other
	turns       = 30 // operations of each
	restMost    = 250 * time.Millisecond
	foughtOver  = 4 // blocks
	turnTimeout = 20 * time.Second
)

// TestBlocksAreLinearizableUnderLeaseHandOver has clients take a volume from each
// other by force, read and write single blocks durably, and lose it, while servers
// are killed and stand still. A read counts when a durable write after it proves
// that its reader held the lease still.
func TestBlocksAreLinearizableUnderLeaseHandOver(t *testing.T) {
	c := start(t, cluster.Options{})
	create(t, c, "v", volumeBlocks)
	var log history.Log
	var values atomic.Uint64
	var all sync.WaitGroup
	for n := range fighters {
		f := &fighter{t: t, cell: dial(t, c), log: &log, values: &values, number: n, r: rand.New(rand.NewPCG(uint64(n), 5))}
		all.Go(func() {
			for f.done < turns && t.Context().Err() == nil {
				f.turn(t.Context())
				time.Sleep(rand.N(restMost)) // so that some turns are longer than others' rests
			}
		})
	}
	for _, victim := range c.Chunkds[:2] {
		from := log.Len()
		eventually(t, "10 more operations", time.Minute, func() bool { return log.Len() >= from+10 })
		check(t, victim.Kill())
		from = log.Len()
		eventually(t, "10 more operations without a server", time.Minute, func() bool { return log.Len() >= from+10 })
		check(t, victim.Restart())
	}
	all.Wait()
	if n := log.Len(); n < fighters*turns/2 {
		t.Errorf("%d operations of %d clients: too few to mean anything", n, fighters)
	}
	if err := log.Check(time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations are linearizable", log.Len())
}

// fighter is one client.
type fighter struct {
	t      *testing.T
	cell   *client.Cell
	log    *history.Log
	values *atomic.Uint64
	number int
	done   int // operations begun
	r      *rand.Rand
}

// turn takes the volume and works on some blocks, until it loses it.
func (f *fighter) turn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	vol, err := f.cell.Open(ctx, "v", client.OpenOptions{Write: true, Force: true})
	if err != nil {
		return
	}
	defer vol.Close()
	for range 1 + f.r.IntN(4) {
		block := uint64(f.r.IntN(foughtOver))
		if f.done++; f.r.IntN(2) == 0 {
			if !f.read(ctx, vol, block) {
				return
			}
			continue
		}
		value := f.values.Add(1)
		op := f.log.Write(f.number, block, value)
		if f.write(ctx, vol, block, value) != nil {
			return // it may have taken place
		}
		op.Done(0)
	}
}

func (f *fighter) read(ctx context.Context, vol *client.Volume, block uint64) bool {
	op := f.log.Read(f.number, block)
	b := make([]byte, workload.BlockSize)
	if _, err := vol.ReadAtContext(ctx, b, int64(block)*workload.BlockSize); err != nil {
		return false
	}
	if f.write(ctx, vol, uint64(foughtOver+f.number), f.values.Add(1)) != nil {
		return false
	}
	stamp, err := workload.Read(b, "v", block)
	if err != nil {
		f.t.Errorf("block %d: %v", block, err) // P3
	}
	op.Done(stamp.Op)
	return err == nil
}

// write writes a block and flushes.
func (f *fighter) write(ctx context.Context, vol *client.Volume, block, value uint64) error {
	b := make([]byte, workload.BlockSize)
	workload.Fill(b, "v", workload.Stamp{Block: block, Op: value})
	if _, err := vol.WriteAt(b, int64(block)*workload.BlockSize); err != nil {
		return err
	}
	return vol.Flush(ctx)
}
