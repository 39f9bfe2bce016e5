package sched

import (
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/qos"
)

// TestALimitOfBackgroundIsNoneOfMeasurements, nor of the store's own work.
func TestALimitOfBackgroundIsNoneOfMeasurements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewOwn()
		if err := q.SetClass(layout.ClassBackground, qos.Params{Weight: 10, Limit: qos.Rate{Bytes: 1 << 20}}); err != nil {
			t.Fatal(err)
		}
		took := func(key mclock.Key) time.Duration {
			from := time.Now()
			for range 16 {
				if err := q.Do(t.Context(), Tag{Class: key.Class, Tenant: key.Tenant, Bytes: Quantum}, func() {}); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(from)
		}
		if trial, own := took(TrialKey), took(OwnKey); trial != 0 || own != 0 {
			t.Errorf("4 MiB took %v of a measurement and %v of the store, beside a limit of 1 MiB/s", trial, own)
		}
		if got := took(mclock.Key{Class: layout.ClassBackground, Tenant: layout.DefaultTenantID}); got < 3*time.Second {
			t.Errorf("4 MiB of background took %v at 1 MiB/s", got)
		}
	})
}

// TestAStoreWaitsForItsTurnAndNotForEver: its own work comes after what has the
// device, unless that never ends because it waits for the store.
func TestAStoreWaitsForItsTurnAndNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewOwn()
		hold := func() (end chan struct{}) {
			end = make(chan struct{})
			for range q.Stats().Width {
				go q.Do(t.Context(), Tag{Class: layout.ClassCheckpoint, Write: true, Bytes: 8192}, func() { <-end })
			}
			synctest.Wait()
			return end
		}
		end, from := hold(), time.Now()
		time.AfterFunc(patience/2, func() { close(end) })
		q.Turn(4096, func() {
			if took := time.Since(from); took != patience/2 {
				t.Errorf("ran after %v, want it when the device came free, after %v", took, patience/2)
			}
		})
		end, from = hold(), time.Now()
		ran := 0
		q.Turn(4096, func() { ran++ })
		if took := time.Since(from); ran != 1 || took > patience {
			t.Errorf("ran %d times, after %v, with the device held for ever", ran, took)
		}
		close(end)
		synctest.Wait()
		if q.Load() != 0 {
			t.Errorf("load %d after all have left", q.Load())
		}
	})
}
