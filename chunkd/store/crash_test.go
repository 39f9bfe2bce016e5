package store

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"strake/internal/vfs"
)

// workload touches every path: creates, small and large appends, discards, syncs
// of one and several shards, enough small appends to move log files, a fence, a
// finalize that drops a tail, a delete, two lives.
func workload(m *model, fsys vfs.FS) {
	if Format(fsys, testID) != nil {
		return
	}
	m.formatted = true
	m.life(fsys, func(r *run) {
		for id := range 4 {
			r.create(segment(id + 1))
		}
		r.append(1, 4096, false)
		r.append(2, 4096, true)
		r.append(1, 32<<10, false)
		r.sync(1, 2)
		r.append(2, 0, false)
		r.append(2, 16<<10, false)
		r.append(3, 12<<10, true)
		r.append(1, 4096, false)
		for range 5 {
			r.append(4, 8192, true)
		}
		r.fence(2, 6)
		r.append(1, 0, true)
		r.append(1, 20<<10, false)
		r.append(3, 4096, false)
		r.finalize(1, 3)
		r.delete(3)
		r.append(4, 4096, false)
	})
	m.life(fsys, func(r *run) {
		r.append(4, 4096, false)
		r.append(4, 40<<10, false)
		r.sync(4)
		r.create(5)
		for i := range 12 {
			r.append(5, 4096, i%2 == 0)
		}
		r.fence(4, 7)
		r.delete(1)
		r.append(5, 4096, false)
	})
}

// countOps counts the disk operations of the workload without faults.
func countOps(t *testing.T) int64 {
	t.Helper()
	fault := vfs.NewFault(newMem())
	m := newModel()
	workload(m, fault)
	for id, sh := range m.shards {
		for _, u := range sh.units {
			if sh.created && id != 2 && id != 3 && !u.synced {
				t.Fatalf("the workload itself fails: shard %d, seq %d", id, u.seq)
			}
		}
	}
	return fault.Ops()
}

// stride thins a test out when time is short.
func stride(t *testing.T) int64 {
	if testing.Short() {
		return 17
	}
	return 1
}

func TestPowerCutAfterEveryOperationKeepsPromises(t *testing.T) {
	ops := countOps(t)
	t.Logf("%d operations", ops)
	for _, keep := range []int{0, 10, 50, 100} {
		t.Run(fmt.Sprintf("keep=%d", keep), func(t *testing.T) {
			t.Parallel()
			for n := int64(1); n <= ops+1; n += stride(t) {
				mem := newMem()
				fault := vfs.NewFault(mem)
				fault.CutAt(n)
				m := newModel()
				workload(m, fault)
				after := mem.Crash(rand.New(rand.NewPCG(uint64(n), uint64(keep))), keep)
				if !t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { m.verify(t, after) }) {
					return
				}
			}
		})
	}
}

func TestErrorAtEveryOperationKeepsPromises(t *testing.T) {
	ops := countOps(t)
	for _, e := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		for _, forever := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/forever=%v", e, forever), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); n <= ops; n += stride(t) {
					mem := newMem()
					fault := vfs.NewFault(mem)
					if forever {
						fault.FailFrom(n, e)
					} else {
						fault.FailAt(n, e)
					}
					m := newModel()
					workload(m, fault)
					after := mem.Crash(rand.New(rand.NewPCG(uint64(n), 1)), int(n%3)*50)
					if !t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { m.verify(t, after) }) {
						return
					}
				}
			})
		}
	}
}
