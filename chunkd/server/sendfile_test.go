package server

import (
	"bytes"
	"testing"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// onDisk gives a store on the real file system with one shard of two 1 MiB units,
// and their bytes, which a first read has brought into the page cache.
func onDisk(t *testing.T) (*store.Store, []byte) {
	t.Helper()
	fsys, err := vfs.NewOS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, fsys)
	shard(t, s, ref(9, 0), 4<<20)
	p := start(t, Limits{}, s).connect(t)
	var all []byte
	for i := range 2 {
		meta, payload := unit(ref(9, 0), layout.Seq(i+1), layout.ShardOffset(i)<<20, 1<<20)
		p.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		all = append(all, payload...)
	}
	if _, err := s.Read(ref(9, 0), []frame.ReadRange{{Length: 2 << 20}}, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	return s, all
}

// TestLargeReadsComeFromThePageCache: without a copy in the server, mixed with
// small ones, in order, and the same bytes as ever.
func TestLargeReadsComeFromThePageCache(t *testing.T) {
	s, all := onDisk(t)
	fd, off, release, ok := s.File(ref(9, 0), frame.ReadRange{Length: 1 << 20})
	if !ok {
		t.Fatal("a unit in the data file is in no file")
	}
	cached := vfs.Cached(fd, off, 1<<20)
	release()
	if !cached {
		t.Skip("the kernel can't tell what is in the page cache, or keeps nothing there")
	}
	c := start(t, Limits{}, s)
	p := c.connect(t)
	before := s.Counters().ReadBytes
	var burst []byte
	ranges := [][]frame.ReadRange{
		{{Offset: 0, Length: 1 << 20}}, {{Offset: 4096, Length: 4096}}, {{Offset: 512 << 10, Length: 1 << 20}},
		{{Offset: 0, Length: 128 << 10}, {Offset: 1 << 20, Length: 4096}, {Offset: 8192, Length: 300 << 10}},
	}
	for _, g := range ranges {
		burst = append(burst, p.encode(frame.Request{Kind: frame.Read, Flags: frame.NoCRCs}, readMeta(ref(9, 0), g...), nil)...)
	}
	if _, err := p.nc.Write(burst); err != nil {
		t.Fatal(err)
	}
	for i, g := range ranges {
		var one []byte
		for _, r := range g {
			one = append(one, all[r.Offset:int(r.Offset)+int(r.Length)]...)
		}
		rep, _, got := p.receive()
		if rep.Status != errs.OK || !bytes.Equal(got, one) {
			t.Errorf("read %d: %v, %d bytes, the same: %v", i, rep.Status, len(got), bytes.Equal(got, one))
		}
	}
	if n := c.Counters.FileBytes.Load(); n < 2<<20 {
		t.Errorf("%d bytes were sent from the page cache", n)
	}
	if n := s.Counters().ReadBytes - before; n > 512<<10 {
		t.Errorf("%d bytes were copied out of it", n)
	}
}

// TestAFencedShardIsNotSentFromThePageCacheEither: who may not read does not.
func TestAFencedShardIsNotSentFromThePageCacheEither(t *testing.T) {
	s, _ := onDisk(t)
	if _, err := s.Fence(ref(9, 0), 3); err != nil {
		t.Fatal(err)
	}
	p := start(t, Limits{}, s).connect(t)
	p.refused(errs.StaleEpoch, frame.Request{Kind: frame.Read, Epoch: 2}, readMeta(ref(9, 0), frame.ReadRange{Length: 1 << 20}), nil)
}
