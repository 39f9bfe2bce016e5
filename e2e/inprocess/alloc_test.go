package inprocess

import (
	"testing"

	"strake/client"
)

// TestASmallReadAllocatesNothing counts what a 4 KiB read allocates on its whole way:
// the client, the sockets, the chunk server and its store, all in this process. What
// the servers do beside it, heartbeats and the like, is not in the least of many counts.
func TestASmallReadAllocatesNothing(t *testing.T) {
	if slow > 1 {
		t.Skip("the race detector allocates")
	}
	c := Start(t, Options{Chunkds: 3})
	cell, v := volume(t, c, mib, 2, 1)
	want := pattern(1, mib)
	write(t, v, want, 0)
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{Class: "inference"})
	buffer, at := make([]byte, 4096), int64(0)
	read := func() {
		if _, err := v.ReadAt(buffer, at); err != nil {
			t.Fatal(err)
		}
		at = (at + 37*4096) % mib
	}
	for range 500 { // pools and connections fill up
		read()
	}
	least := testing.AllocsPerRun(100, read)
	for range 30 {
		least = min(least, testing.AllocsPerRun(100, read))
	}
	if least > 0 {
		t.Errorf("%v allocations per read", least)
	}
	closed(t, v)
}
