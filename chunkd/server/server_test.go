package server

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatWasAppendedReadsBack(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 64<<20)
		p := c.connect(t)
		var at layout.ShardOffset
		for i, n := range []int{4096, 16384, 32768, 36864, 65536, 131072, 1 << 20, 5 << 20} {
			meta, payload := unit(ref(9, 0), layout.Seq(i+1), at, n)
			rep, text, _ := p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
			if rep.Status != errs.OK || rep.Incarnation != 1 || rep.Generation != 2 {
				t.Fatalf("append of %d: %+v %v", n, rep, frame.DecodeError(rep.Status, text))
			}
			rep, crcs, got := p.call(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Offset: at, Length: uint32(n)}), nil)
			if rep.Status != errs.OK || !bytes.Equal(got, payload) || rep.Generation != 2 || rep.Incarnation != 1 {
				t.Fatalf("read of %d: %+v, %d bytes, equal %v", n, rep, len(got), bytes.Equal(got, payload))
			}
			for b := 0; b < n; b += layout.BlockSize {
				if binary.LittleEndian.Uint32(crcs[b/layout.BlockSize*4:]) != stripe.BlockCRC(got[b:b+layout.BlockSize]) {
					t.Fatalf("read of %d: checksum of block %d differs", n, b/layout.BlockSize)
				}
			}
			rep, none, _ := p.call(frame.Request{Kind: frame.Read, Flags: frame.NoCRCs}, readMeta(ref(9, 0), frame.ReadRange{Offset: at, Length: uint32(n)}), nil)
			if len(none) != 0 || rep.Payload != n {
				t.Errorf("read without checksums: %d bytes of meta, %d of payload", len(none), rep.Payload)
			}
			at += layout.ShardOffset(n)
		}
	})
}

func TestReadGathersRangesInOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		meta, payload := unit(ref(9, 0), 1, 0, 2<<20)
		p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		for _, ranges := range [][]frame.ReadRange{{{Offset: 8192, Length: 4096}, {Offset: 0, Length: 8192}},
			{{Offset: 1 << 20, Length: 600 << 10}, {Offset: 4096, Length: 4096}, {Offset: 0, Length: 300 << 10}}} {
			var want []byte
			for _, g := range ranges {
				want = append(want, payload[g.Offset:int(g.Offset)+int(g.Length)]...)
			}
			rep, crcs, got := p.call(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), ranges...), nil)
			if rep.Status != errs.OK || !bytes.Equal(got, want) || len(crcs) != len(want)/1024 {
				t.Errorf("%v: %v, %d bytes, equal %v, %d bytes of checksums", ranges, rep.Status, len(got), bytes.Equal(got, want), len(crcs))
			}
		}
	})
}

// Who works in the background is told that somebody reads, which other background
// work, probes and lists of headers don't count as.
func TestBackgroundWorkIsToldOfReaders(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		meta, payload := unit(ref(9, 0), 1, 0, 8192)
		p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		read := func(class layout.Class, flags frame.Flags) bool {
			t.Helper()
			rep, _, _ := p.call(frame.Request{Kind: frame.Read, Class: class, Flags: flags}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
			if rep.Status != errs.OK {
				t.Fatal(rep.Status)
			}
			return rep.Reading
		}
		read(layout.ClassInference, frame.NoCRCs)
		read(layout.ClassBackground, 0)
		if read(layout.ClassBackground, 0) {
			t.Error("background work counts as somebody who reads")
		}
		read(layout.ClassInference, 0)
		if !read(layout.ClassBackground, 0) {
			t.Error("somebody read, and background work was not told")
		}
	})
}

func TestHeadersComeWhole(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		meta, payload := unit(ref(9, 0), 1, 0, 8192)
		p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		rep, got, data := p.call(frame.Request{Kind: frame.Read, Flags: frame.Headers}, readMeta(ref(9, 0), frame.ReadRange{Length: 8192}), nil)
		if rep.Status != errs.OK || binary.LittleEndian.Uint32(got) != 1 || !bytes.Equal(got[4:], meta[16:]) || !bytes.Equal(data, payload) {
			t.Errorf("%v, meta %x, want one header %x", rep.Status, got, meta[16:])
		}
	})
}

func TestListGivesHeadersInPages(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		var want []byte
		for seq := range layout.Seq(3) {
			meta, payload := unit(ref(9, 0), seq+1, layout.ShardOffset(seq)*4096, 4096)
			p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
			want = append(want, meta[16:]...)
		}
		p.refused(errs.OK, frame.Request{Kind: frame.Sync, Epoch: 1}, syncMeta(s.Incarnation(), ref(9, 0)), nil)
		var got []byte
		for from, pages := layout.Seq(1), 0; from != 0; pages++ {
			body := frame.ListBody{Shard: ref(9, 0), From: from, Most: uint32(len(want)) - 1}
			rep, meta, headers := p.call(frame.Request{Kind: frame.List}, body.AppendTo(nil), nil)
			l, err := frame.DecodeListReply(meta)
			if rep.Status != errs.OK || err != nil || l.Count == 0 || pages > 1 {
				t.Fatalf("page %d: %v %+v (%v)", pages, rep.Status, l, err)
			}
			got, from = append(got, headers...), l.Next
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
		p.refused(errs.NotHere, frame.Request{Kind: frame.List}, (&frame.ListBody{Shard: ref(8, 0)}).AppendTo(nil), nil)
	})
}

func TestPingIsAnswered(t *testing.T) {
	p := start(t, Limits{}).connect(t)
	if rep, _, _ := p.call(frame.Request{Kind: frame.Ping, ID: 77}, nil, nil); rep.Status != errs.OK || rep.ID != 77 {
		t.Errorf("%+v", rep)
	}
}

// TestPipelinedRequestsAreAllAnswered sends a thousand requests in one write.
func TestPipelinedRequestsAreAllAnswered(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 8<<20)
		p := c.connect(t)
		meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
		p.call(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		var all []byte
		want := map[uint64]uint32{}
		for i := range uint64(1000) {
			length := uint32(4096)
			if i%50 == 0 {
				length = 512 << 10
			}
			want[5000+i] = length
			all = append(all, p.encode(frame.Request{Kind: frame.Read, ID: 5000 + i}, readMeta(ref(9, 0), frame.ReadRange{Length: length}), nil)...)
		}
		go p.nc.Write(all)
		for len(want) > 0 {
			rep, _, got := p.receive()
			if rep.Status != errs.OK || uint32(len(got)) != want[rep.ID] || len(got) == 0 || !bytes.Equal(got, payload[:len(got)]) {
				t.Fatalf("reply %d: %v, %d bytes, want %d", rep.ID, rep.Status, len(got), want[rep.ID])
			}
			delete(want, rep.ID)
		}
	})
}

func TestRequestsCutAnywhereAreReceived(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		for i, n := range []int{4096, 1 << 20} {
			r := ref(layout.SegmentID(9+i), 0)
			shard(t, s, r, 8<<20)
			p := c.connect(t)
			meta, payload := unit(r, 1, 0, n)
			whole := p.encode(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
			for _, cut := range []int{1, 63, 64, 65, 500, 600, len(whole) - 1} {
				p.nc.Write(whole[:cut])
				p.nc.Write(whole[cut:])
				if rep, _, _ := p.receive(); rep.Status != errs.OK {
					t.Errorf("%d bytes cut at %d: %v", n, cut, rep.Status)
				}
			}
		}
	})
}

func TestSlowSyncsHoldNobodyUp(t *testing.T) {
	c := start(t, Limits{})
	c.store.holdSync, c.store.entered = make(chan struct{}), make(chan struct{}, 1)
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	p.send(frame.Request{Kind: frame.Sync, ID: 100, Epoch: 1}, syncMeta(1, ref(9, 0)), nil)
	<-c.store.entered
	meta, payload := unit(ref(9, 0), 1, 0, 4096)
	p.send(frame.Request{Kind: frame.Append, ID: 101, Epoch: 1, Flags: frame.Durable}, meta, payload)
	<-c.store.entered
	p.send(frame.Request{Kind: frame.Read, ID: 102}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	if rep, _, got := p.receive(); rep.ID != 102 || !bytes.Equal(got, payload) {
		t.Fatalf("reply %d before the read's", rep.ID)
	}
	close(c.store.holdSync)
	got := map[uint64]errs.Kind{}
	for range 2 {
		rep, _, _ := p.receive()
		got[rep.ID] = rep.Status
	}
	if len(got) != 2 || got[100] != errs.OK || got[101] != errs.OK || c.store.syncs.Load() != 2 {
		t.Errorf("got %v after %d syncs", got, c.store.syncs.Load())
	}
}

// TestSlowAppendsStayInOrderAndHoldNobodyUp: once the device is known to be slow,
// appends wait aside, and a sync waits behind those that came before it.
func TestSlowAppendsStayInOrderAndHoldNobodyUp(t *testing.T) {
	c := start(t, Limits{})
	c.store.holdAppend, c.store.entered = make(chan struct{}), make(chan struct{}, 16)
	shard(t, c.store, ref(9, 0), 4<<20)
	c.devices.all[0].writes.measured(1, time.Minute)
	p := c.connect(t)
	var flags frame.Flags
	for seq := layout.Seq(1); seq <= 6; seq++ {
		meta, payload := unit(ref(9, 0), seq, layout.ShardOffset(seq)<<18, 4096<<seq)
		p.send(frame.Request{Kind: frame.Append, ID: 100 + uint64(seq), Epoch: 1, Flags: flags}, meta, payload)
		flags ^= frame.Durable
	}
	p.send(frame.Request{Kind: frame.Sync, ID: 200, Epoch: 1}, syncMeta(1, ref(9, 0)), nil)
	if rep, _, _ := p.call(frame.Request{Kind: frame.Ping, ID: 300}, nil, nil); rep.ID != 300 || c.store.syncs.Load() != 0 {
		t.Fatalf("reply %d before the ping's, %d syncs before the appends", rep.ID, c.store.syncs.Load())
	}
	close(c.store.holdAppend)
	for range 7 {
		if rep, _, _ := p.receive(); rep.Status != errs.OK {
			t.Errorf("reply %d: %v", rep.ID, rep.Status)
		}
	}
	if got := c.store.shards[ref(9, 0).ShardKey].seqs; !slices.IsSorted(got) || len(got) != 6 || c.store.syncs.Load() != 4 {
		t.Errorf("stored %v, %d syncs", got, c.store.syncs.Load())
	}
	waitFor(t, func() bool { return c.memory.try(c.limits.Memory) })
	c.memory.release(c.limits.Memory)
}

func TestSyncNamesDeviceAndIncarnation(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		p.refused(errs.IncarnationMoved, frame.Request{Kind: frame.Sync}, syncMeta(s.Incarnation()+1, ref(9, 0)), nil)
		p.refused(errs.NotHere, frame.Request{Kind: frame.Sync}, (&frame.SyncBody{Device: 99}).AppendTo(nil), nil)
		p.refused(errs.NotHere, frame.Request{Kind: frame.Sync}, syncMeta(s.Incarnation(), ref(8, 0)), nil)
	})
}
