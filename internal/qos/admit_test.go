package qos

import (
	"math/rand/v2"
	"testing"
)

// TestWhatIsFreeFitsAndMoreDoesNot for random capacities and reservations, in each
// unit; and what is not short of a wish fits too.
func TestWhatIsFreeFitsAndMoreDoesNot(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	draw := func() int64 { return rnd.Int64N(1 << rnd.IntN(50)) }
	for range 20000 {
		capacity, reserved, want := Rate{draw(), draw()}, Rate{}, Rate{draw(), draw()}
		if Part(capacity, capacity) > Whole {
			reserved = Rate{Bytes: rnd.Int64N(capacity.Bytes + 1)}
		}
		free := Free(capacity, reserved)
		for _, all := range []Rate{{Bytes: free.Bytes}, {Ops: free.Ops}} {
			if short := Short(all, capacity, reserved); !short.IsZero() {
				t.Fatalf("%v of %v beside %v are free and %v are short", all, capacity, reserved, short)
			}
		}
		if more := (Rate{Bytes: free.Bytes + 1 + capacity.Bytes/Whole}); Short(more, capacity, reserved).IsZero() {
			t.Fatalf("%v of %v beside %v fit, %v are free", more, capacity, reserved, free)
		}
		short := Short(want, capacity, reserved)
		if rest := (Rate{want.Bytes - short.Bytes, want.Ops - short.Ops}); Part(rest, capacity) > left(capacity, reserved)+2 || short.Bytes < 0 || short.Ops < 0 {
			t.Fatalf("%v of %v beside %v: without what is short, %v, it does not fit", want, capacity, reserved, short)
		}
	}
}

// TestBytesAndOperationsShareTheDevices: nine tenths of both are too much.
func TestBytesAndOperationsShareTheDevices(t *testing.T) {
	capacity := Rate{Bytes: 1000, Ops: 100}
	if !Short(Rate{900, 10}, capacity, Rate{}).IsZero() {
		t.Error("nine tenths and a tenth do not fit")
	}
	if short := Short(Rate{Ops: 90}, capacity, Rate{Bytes: 900}); short != (Rate{Ops: 80}) {
		t.Errorf("90 operations beside 900 bytes are %v too much, want 80", short)
	}
	if short := Short(Rate{1, 0}, Rate{Ops: 5}, Rate{}); short != (Rate{Bytes: 1}) {
		t.Errorf("where no byte can be promised %v are short of one", short)
	}
	if got := Part(Rate{MaxBytes, MaxOps}, Rate{1, 1}); got <= Whole {
		t.Errorf("the most of a device that does one a second are %d parts", got)
	}
}
