//go:build !race

package server

import (
	"io"
	"testing"

	"strake/proto/frame"
)

// TestA4KiBReadAllocatesNothing counts over the whole process: the client of the
// test allocates nothing either.
func TestA4KiBReadAllocatesNothing(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	request := p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	reply := make([]byte, frame.HeaderLen+4+4096)
	if n := testing.AllocsPerRun(2000, func() {
		if _, err := p.nc.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.r, reply); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a read, want none", n)
	}
}

func TestA4KiBAppendAllocatesNothingButTheStores(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	meta, payload := unit(ref(8, 0), 1, 0, 4096)
	c.devices.all[0].Store = discardStore{c.store}
	request := p.encode(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
	reply := make([]byte, frame.HeaderLen)
	if n := testing.AllocsPerRun(2000, func() {
		p.nc.Write(request)
		io.ReadFull(p.r, reply)
	}); n != 0 {
		t.Errorf("%v allocations for an append, want none", n)
	}
}
