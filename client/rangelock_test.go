package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

func blocks(start, count int) layout.Range {
	return layout.Range{Start: layout.BlockNumber(start), Count: layout.BlockCount(count)}
}

func TestSharedRangesOverlapAndLoneOnesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l rangeLock
		a, _ := l.lock(t.Context(), blocks(0, 4), false)
		b, _ := l.lock(t.Context(), blocks(2, 4), false)
		if _, err := l.lock(t.Context(), blocks(10, 1), true); err != nil {
			t.Fatal(err)
		}
		got := make(chan uint64, 1)
		go func() {
			id, _ := l.lock(t.Context(), blocks(3, 1), true)
			got <- id
		}()
		synctest.Wait()
		l.unlock(a)
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("taken while another holds it")
		}
		l.unlock(b)
		l.unlock(<-got)
	})
}

func TestAWaitForARangeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l rangeLock
		id, _ := l.lock(t.Context(), blocks(0, 1), true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.lock(ctx, blocks(0, 1), false); !errors.Is(err, errs.Deadline) {
			t.Errorf("got %v", err)
		}
		l.unlock(id)
		if len(l.held) != 0 {
			t.Errorf("%d holders are left", len(l.held))
		}
	})
}

func TestLoneHoldersOfOneRangeTakeTurns(t *testing.T) {
	var l rangeLock
	var wait sync.WaitGroup
	inside, total := 0, 0 // guarded by the range
	for range 8 {
		wait.Go(func() {
			for range 200 {
				id, err := l.lock(t.Context(), blocks(0, 2), true)
				if inside++; err != nil || inside != 1 {
					t.Error("two inside")
				}
				inside--
				total++
				l.unlock(id)
			}
		})
	}
	wait.Wait()
	if total != 1600 {
		t.Errorf("%d turns", total)
	}
}
