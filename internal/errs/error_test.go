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

// TestAHintOutlivesAJoin: what went wrong on the way out stands beside the refusal
// and does not take its hint.
func TestAHintOutlivesAJoin(t *testing.T) {
	refused := New(Busy, "listen on 127.0.0.1:7400", "the port is in use").WithHint("choose another address")
	for name, err := range map[string]error{
		"alone":         errors.Join(refused, nil),
		"second":        errors.Join(errors.New("close"), refused),
		"wrapped":       Wrap(errors.Join(refused, New(Internal, "close", "no").WithHint("report it")), "start"),
		"of two causes": fmt.Errorf("%w, and %w", errors.New("close"), refused),
	} {
		if got := HintOf(err); got != refused.Hint {
			t.Errorf("%s: got %q, want %q", name, got, refused.Hint)
		}
	}
	if got := HintOf(errors.Join(errors.New("a"), errors.New("b"))); got != "" {
		t.Errorf("a hint from nowhere: %q", got)
	}
}

func TestAnOperationIsNamedOnce(t *testing.T) {
	far := func(text string) error { return New(NotFound, "", "%s", text) } // as it comes from a connection
	for want, err := range map[string]error{
		"open volume x: there is none":                Wrap(far("open volume: there is none"), "open volume x"),
		"create volume x: the name is taken":          Wrap(far("create volume x: the name is taken"), "create volume x"),
		"read shard 7/3: no such shard":               Wrap(New(NotHere, "read shard 7/3", "no such shard"), "read"),
		"open volume x: there is no volume":           Wrap(Wrap(far("open volume: there is no volume"), "open volume"), "open volume x"),
		"open x: openly refused: no":                  Wrap(far("openly refused: no"), "open x"),
		"read: reader is gone":                        Wrap(far("reader is gone"), "read"),
		"server 2: connection refused":                Wrap(far("connection refused"), "server 2"),
		"write v: segment 3: shard 1/2: it is sealed": Wrap(Wrap(far("shard 1/2: it is sealed"), "segment 3"), "write v"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
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
