package janitor

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"strake/chunkd/format"
	"strake/chunkd/sched"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// listener is a metadata service that takes reports.
type listener struct {
	pb.MetaClient
	mu   sync.Mutex
	said []string // guarded by mu
}

func (l *listener) Do(ctx context.Context, call func(context.Context, pb.MetaClient) error) error {
	return call(ctx, l)
}

func (l *listener) CheckShards(context.Context, *pb.CheckShardsRequest, ...grpc.CallOption) (*pb.CheckShardsReply, error) {
	return &pb.CheckShardsReply{}, nil
}

func (l *listener) ReportShards(_ context.Context, q *pb.ReportShardsRequest, _ ...grpc.CallOption) (*pb.ReportShardsReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range q.Reports {
		l.said = append(l.said, told(errs.Kind(r.Kind), r.Shard, r.Offset))
	}
	return &pb.ReportShardsReply{}, nil
}

func told(kind errs.Kind, s *pb.ShardRef, at uint64) string {
	return fmt.Sprintf("%v %d/%d.%d device %d at %d", kind, s.Segment, s.Shard, s.Generation, s.Device, at)
}

// scrubOf gives the scrub of a shard's device, which begins no cycle by itself.
func (r *row) scrubOf(i layout.ShardIndex, s sched.Scheduler) (*scrub, *listener) {
	heard := &listener{}
	j := New(Config{Cell: rowCell, Devices: []Device{{ID: layout.DeviceID(i + 1), Store: r.stores[i], Sched: s}}, Meta: heard, ScrubCycle: -1})
	r.t.Cleanup(j.Close)
	return j.scrubs[0], heard
}

// found holds what a scrub counted, listed and reported against what it should have.
func (r *row) found(s *scrub, heard *listener, want ...string) {
	r.t.Helper()
	st := s.status()
	var listed []string
	for _, f := range st.Findings {
		kind := errs.Corrupt
		if len(heard.said) > len(listed) && heard.said[len(listed)] == told(errs.Internal, f.Shard, f.Offset) {
			kind = errs.Internal
		}
		listed = append(listed, told(kind, f.Shard, f.Offset))
	}
	if got := fmt.Sprint(listed); int(st.Found) != len(want) || got != fmt.Sprint(want) || fmt.Sprint(heard.said) != fmt.Sprint(want) {
		r.t.Errorf("%d found, listed %v, reported %v; want %v", st.Found, listed, heard.said, want)
	}
}

// flip flips a bit of a stripe's unit on a shard's disk.
func (r *row) flip(i layout.ShardIndex, seq layout.Seq) {
	r.must(r.disks[i].FlipBit("shards/"+format.ShardFileName(r.ref(i, 1).ShardKey, 1), int64(seq-1)*layout.BlockSize+17, 3))
}

// TestScrubFindsWrongBytes on data shards and on parity.
func TestScrubFindsWrongBytes(t *testing.T) {
	for _, shard := range []layout.ShardIndex{0, rowParity} {
		r := newRow(t)
		s, heard := r.scrubOf(shard, &turns{quantum: 1 << 20})
		s.cycle(t.Context())
		r.found(s, heard)
		r.flip(shard, 2)
		s.cycle(t.Context())
		r.found(s, heard, fmt.Sprintf("corrupt 5/%d.1 device %d at 4096", shard, shard+1))
		if st := s.status(); st.Shards != 1 || st.Cycles != 2 {
			t.Errorf("%d shards in the cycle, %d cycles; want 1 and 2", st.Shards, st.Cycles)
		}
	}
}

// crowded is a scheduler that refuses some requests at the door.
type crowded struct {
	turns
	refuse int
}

func (c *crowded) Do(ctx context.Context, tag sched.Tag, fn func()) error {
	if c.refuse > 0 {
		c.refuse--
		return errs.New(errs.Overloaded, "", "2048 requests wait for the device")
	}
	return c.turns.Do(ctx, tag, fn)
}

// TestScrubBlamesNoShardForABusyDevice: a shard that could not be read is looked at
// again, and is not lost.
func TestScrubBlamesNoShardForABusyDevice(t *testing.T) {
	r := newRow(t)
	s, heard := r.scrubOf(1, &crowded{turns: turns{quantum: 1 << 20}, refuse: 1})
	s.cycle(t.Context())
	r.found(s, heard)
	if st := s.status(); st.Shards != 1 || st.Bytes != rowStripes*layout.BlockSize {
		t.Errorf("%d shards and %d bytes were checked in the end, want 1 and %d", st.Shards, st.Bytes, rowStripes*layout.BlockSize)
	}
}

// ahead lists stripes as a newer build wrote them.
type ahead struct{ Store }

func (a ahead) List(ref frame.ShardRef, from layout.Seq, most int) ([]byte, int, layout.Seq, error) {
	b, n, next, err := a.Store.List(ref, from, most)
	b = slices.Clone(b)
	for at := 0; at < len(b); {
		size, _ := stripe.Length(b[at:])
		h := b[at:][:size]
		h[4]++
		binary.LittleEndian.PutUint32(h[size-4:], crc32.Checksum(h[:size-4], stripe.Castagnoli))
		at += size
	}
	return b, n, next, err
}

// TestScrubBlamesNoShardOfANewerBuild: what it can't read is not damaged, and must not be
// made again.
func TestScrubBlamesNoShardOfANewerBuild(t *testing.T) {
	r := newRow(t)
	s, heard := r.scrubOf(1, &turns{quantum: 1 << 20})
	s.dev.Store = ahead{s.dev.Store}
	if _, _, err := s.verify(t.Context(), r.ref(1, 1)); errs.KindOf(err) != errs.Version {
		t.Fatalf("verified: %v", err)
	}
	s.cycle(t.Context())
	r.found(s, heard)
}

// deep compares the row's parity as the server of its parity shard does.
func (r *row) deep(s *scrub) {
	b, err := jobOf(r.request(rowParity, 1, 0, 1, rowParity))
	r.must(err)
	s.compareAll(r.t.Context(), newTask(b, r.work()))
}

// TestADeepScrubFindsParityThatIsNotTheDatas, though each unit has its checksum.
func TestADeepScrubFindsParityThatIsNotTheDatas(t *testing.T) {
	for _, odd := range []layout.Seq{0, 2} {
		r := newOddRow(t, odd)
		s, heard := r.scrubOf(rowParity, &turns{quantum: 1 << 20})
		s.cycle(t.Context())
		r.deep(s)
		if odd == 0 {
			r.found(s, heard)
		} else {
			r.found(s, heard, "internal 5/2.1 device 3 at 4096")
		}
		if st := s.status(); st.ParityCompared != rowStripes*layout.BlockSize {
			t.Errorf("%d bytes of parity compared, want %d", st.ParityCompared, rowStripes*layout.BlockSize)
		}
	}
}

// TestADeepScrubGoesOnBehindWrongBytes: they are reported, and the other stripes compared.
func TestADeepScrubGoesOnBehindWrongBytes(t *testing.T) {
	r := newOddRow(t, 3)
	r.flip(0, 2)
	s, heard := r.scrubOf(rowParity, &turns{quantum: 1 << 20})
	r.deep(s)
	r.found(s, heard, "corrupt 5/0.1 device 1 at 0", "internal 5/2.1 device 3 at 8192")
	if st := s.status(); st.ParityCompared != 2*layout.BlockSize {
		t.Errorf("%d bytes of parity compared, want %d", st.ParityCompared, 2*layout.BlockSize)
	}
}
