package janitor

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"strake/chunkd/sched"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// turns is a scheduler that grants every turn and remembers it.
type turns struct {
	sched.Scheduler
	quantum int

	mu     sync.Mutex
	tags   []sched.Tag // guarded by mu
	refuse int         // the turn with this number is refused; 0: none
}

func (t *turns) Quantum(bool) int { return t.quantum }

func (t *turns) Do(_ context.Context, tag sched.Tag, fn func()) error {
	t.mu.Lock()
	t.tags = append(t.tags, tag)
	n := len(t.tags)
	t.mu.Unlock()
	if n == t.refuse {
		return errs.New(errs.Overloaded, "", "too many wait")
	}
	fn()
	return nil
}

// content is a store whose bytes tell their offset.
type content struct{ Store }

func (content) Read(_ frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	for i := range dst {
		dst[i] = byte((int(ranges[0].Offset) + i) / layout.BlockSize)
	}
	return len(dst), nil
}

// TestOwnReadsTakeATurnForEachQuantum: a megabyte in one turn would make every
// read of others wait for all of it.
func TestOwnReadsTakeATurnForEachQuantum(t *testing.T) {
	s := &turns{quantum: 64 << 10}
	d := &Device{Store: content{}, Sched: s}
	buf := make([]byte, 160<<10)
	if err := d.read(t.Context(), frame.ShardRef{}, 1<<20, buf); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	whole := 0
	for i, tag := range s.tags {
		if sizes = append(sizes, tag.Bytes); tag.Class != layout.ClassBackground || tag.Write {
			t.Errorf("turn %d: %+v", i, tag)
		}
		if !tag.Part {
			whole++
		}
	}
	if slices.Sort(sizes); !slices.Equal(sizes, []int{32 << 10, 64 << 10, 64 << 10}) || whole != 1 {
		t.Errorf("turns of %v bytes, %d of which stand for the read", sizes, whole)
	}
	want := make([]byte, len(buf))
	content{}.Read(frame.ShardRef{}, []frame.ReadRange{{Offset: 1 << 20}}, want)
	if !bytes.Equal(buf, want) {
		t.Error("the pieces do not fit together")
	}
	s.tags, s.refuse = nil, 2
	if err := d.read(t.Context(), frame.ShardRef{}, 0, buf); errs.KindOf(err) != errs.Overloaded {
		t.Errorf("%v after %d turns, want the refusal of the second", err, len(s.tags))
	}
}
