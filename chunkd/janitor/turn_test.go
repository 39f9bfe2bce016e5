package janitor

import (
	"bytes"
	"context"
	"runtime"
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

// TestLongQuantaAndShortReadsStayOnTheirGoroutine: a second one is for short quanta
// alone, and a simulator counts on there being none.
func TestLongQuantaAndShortReadsStayOnTheirGoroutine(t *testing.T) {
	for _, c := range []struct{ quantum, bytes int }{{sched.Quantum, 1 << 20}, {sched.Quantum, 300 << 10}, {64 << 10, 4096}} {
		s := &turns{quantum: c.quantum}
		where := &goroutines{}
		d := &Device{Store: where, Sched: s}
		if err := d.read(t.Context(), frame.ShardRef{}, 0, make([]byte, c.bytes)); err != nil {
			t.Fatal(err)
		}
		if me := goroutine(); where.other(me) {
			t.Errorf("%d bytes in quanta of %d: read on another goroutine", c.bytes, c.quantum)
		}
	}
}

// goroutines is a store that notes where it is read.
type goroutines struct {
	Store
	mu   sync.Mutex
	seen []string // guarded by mu
}

func (g *goroutines) Read(_ frame.ShardRef, _ []frame.ReadRange, dst []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, goroutine())
	return len(dst), nil
}

func (g *goroutines) other(than string) bool {
	return slices.ContainsFunc(g.seen, func(s string) bool { return s != than })
}

// goroutine is the first line of the caller's stack: "goroutine N [running]:".
func goroutine() string {
	b := make([]byte, 64)
	line, _, _ := bytes.Cut(b[:runtime.Stack(b, false)], []byte(" ["))
	return string(line)
}
