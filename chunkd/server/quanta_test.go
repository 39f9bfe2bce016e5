package server

import (
	"bytes"
	"testing"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestQuantaCoverRangesOnceAndInOrder, whatever their lengths.
func TestQuantaCoverRangesOnceAndInOrder(t *testing.T) {
	ranges := []frame.ReadRange{{Offset: 0, Length: 300 << 10}, {Offset: 1 << 20, Length: 4096}, {Offset: 2 << 20, Length: 256 << 10}}
	for _, n := range []int{4096, 16 << 10, 100 << 10, 1 << 20} {
		var pieces []piece
		for _, p := range []int{256 << 10, 44 << 10, 4096, 256 << 10} {
			pieces = append(pieces, piece{bytes: make([]byte, p)})
		}
		q := &quanta{}
		q.begin(pieces, ranges)
		at := map[layout.ShardOffset]int{}
		for {
			offset, dst, ok := q.next(n)
			if !ok {
				break
			}
			if len(dst) == 0 || len(dst) > n {
				t.Fatalf("a quantum of %d bytes, want 1 to %d", len(dst), n)
			}
			for i := range dst {
				dst[i]++
			}
			at[offset] = len(dst)
		}
		for i, p := range pieces {
			if len(bytes.Trim(p.bytes, "\x01")) != 0 {
				t.Errorf("quanta of %d: piece %d is not read once", n, i)
			}
		}
		for _, g := range ranges {
			off := g.Offset
			for off < g.Offset+layout.ShardOffset(g.Length) && at[off] > 0 {
				off += layout.ShardOffset(at[off])
			}
			if off != g.Offset+layout.ShardOffset(g.Length) {
				t.Errorf("quanta of %d: the range at %d is read up to %d", n, g.Offset, off)
			}
		}
		if err := q.end(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnErrorEndsTheQuantaOfARead(t *testing.T) {
	q := &quanta{}
	q.begin([]piece{{bytes: make([]byte, 8192)}}, []frame.ReadRange{{Length: 8192}})
	first := errs.New(errs.Corrupt, "", "the first")
	q.fail(first)
	q.fail(errs.New(errs.Unavailable, "", "the second"))
	if _, _, ok := q.next(4096); ok || q.end() != error(first) {
		t.Errorf("%v", q.err)
	}
}

// TestTwoQuantaOfAReadAreAtTheDeviceAtOnce while its quanta are short: the device
// hangs in reads until there are two of them.
func TestTwoQuantaOfAReadAreAtTheDeviceAtOnce(t *testing.T) {
	shape, err := vfs.ParseShape("read=60MiB,write=600MiB,iops=4000,latency=1ms")
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), shape, nil))
	c := start(t, Limits{}, s)
	shard(t, s, ref(9, 0), 4<<20)
	writer, p := c.connect(t), c.connect(t)
	meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
	writer.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1, Class: 16}, meta, payload)
	if err := c.SetClass(layout.ClassInference, mclock.Params{Target: 100 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	p.refused(errs.OK, frame.Request{Kind: frame.Read, Class: layout.ClassInference}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	done := make(chan []byte)
	go func() {
		_, _, got := p.call(frame.Request{Kind: frame.Read, Class: layout.ClassTraining}, readMeta(ref(9, 0), frame.ReadRange{Length: 1 << 20}), nil)
		done <- got
	}()
	two := false
	for {
		select {
		case got := <-done:
			if !bytes.Equal(got, payload) {
				t.Error("what was read is not what was written")
			}
			if !two {
				t.Error("never were two quanta at the device")
			}
			return
		default:
			two = two || c.Stats()[0].Running == 2
		}
	}
}
