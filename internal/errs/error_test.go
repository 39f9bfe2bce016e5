package errs

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestKindSurvivesWrapping(t *testing.T) {
	err := Wrap(fmt.Errorf("pread: %w", New(Corrupt, "", "block 3: CRC differs").WithHint("run a scrub")), "read shard %d/%d at %d", 7, 3, 8192)
	if KindOf(err) != Corrupt || !errors.Is(err, Corrupt) || errors.Is(err, NoSpace) {
		t.Fatalf("kind lost: %v is %v", err, KindOf(err))
	}
	if got, want := err.Error(), "read shard 7/3 at 8192: pread: block 3: CRC differs"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if HintOf(err) != "run a scrub" {
		t.Fatalf("hint lost: %q", HintOf(err))
	}
}

func TestContextErrorsHaveKinds(t *testing.T) {
	if KindOf(fmt.Errorf("x: %w", context.Canceled)) != Canceled || KindOf(context.DeadlineExceeded) != Deadline {
		t.Fatal("context errors must map to Canceled and Deadline")
	}
	if KindOf(nil) != OK || KindOf(errors.New("x")) != Internal {
		t.Fatal("nil is OK, an untyped error is Internal")
	}
}

func TestTheKindOfNoErrorCostsNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { KindOf(nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	for k := OK; k <= OutOfRange; k++ {
		if k.String() == fmt.Sprintf("kind-%d", uint16(k)) {
			t.Fatalf("kind %d has no name", uint16(k))
		}
	}
}
