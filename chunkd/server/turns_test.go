package server

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/chunkd/store"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// heldTurns begins every piece at once, and has none of them run before it is
// let go.
type heldTurns struct {
	letGo   chan struct{}
	running sync.WaitGroup
}

func (h *heldTurns) Piece() int { return 64 << 10 }

func (h *heldTurns) Turn(_ int, work func() error) error {
	h.running.Go(func() {
		<-h.letGo
		work()
	})
	return nil
}

func (h *heldTurns) Wait() error {
	h.running.Wait()
	return nil
}

// TestAppendsEndWithTheirLastPiece: whoever gave a unit to a store may use it
// again, and answer, once the store returns.
func TestAppendsEndWithTheirLastPiece(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) Store{
		"fake": func(*testing.T) Store { return newFakeStore() },
		"real": func(t *testing.T) Store { return openStore(t, vfs.NewMem(vfs.MemOptions{})) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t)
				shard(t, s, ref(9, 0), 4<<20)
				meta, payload := unit(ref(9, 0), 1, 0, 256<<10)
				body, err := frame.DecodeAppend(meta)
				if err != nil {
					t.Fatal(err)
				}
				turns, returned := &heldTurns{letGo: make(chan struct{})}, atomic.Bool{}
				go func() {
					if err := s.Append(store.Append{Ref: ref(9, 0), Epoch: layout.Epoch(1), Header: body.Header, Payload: payload, Turns: turns}); err != nil {
						t.Error(err)
					}
					returned.Store(true)
				}()
				synctest.Wait()
				if returned.Load() {
					t.Error("the store returned while pieces were under way")
				}
				close(turns.letGo)
				synctest.Wait()
				if !returned.Load() {
					t.Error("the store waits though all pieces are done")
				}
			})
		})
	}
}

// TestTwoPiecesOfAUnitAreUnderWay, never more, and by one goroutine beside the
// store's, however many pieces there are.
func TestTwoPiecesOfAUnitAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, took = 64, time.Millisecond
		c := &conn{srv: &Server{ctx: t.Context()}}
		r := newRequest()
		r.dev = &device{Device: Device{Sched: sched.NewQoS(mclock.Options{})}}
		r.received = time.Now()
		for unit := range 2 {
			turns, now, most := r.turns.begin(c, r), atomic.Int64{}, atomic.Int64{}
			from := time.Now()
			for range pieces {
				if err := turns.Turn(16<<10, func() error {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(took)
					now.Add(-1)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the helper, where it has nothing, is ready for the next
			}
			if err := turns.Wait(); err != nil {
				t.Fatal(err)
			}
			turns.end()
			if most.Load() != 2 || time.Since(from) > (pieces/2+1)*took {
				t.Errorf("unit %d: %d at once, %v for %d pieces of %v", unit, most.Load(), time.Since(from), pieces, took)
			}
		}
	})
}
