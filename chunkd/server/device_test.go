package server

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestAShardOnTwoDevicesIsServedByGeneration: while it moves, the old generation
// answers from where it is, and goes without taking the new one along.
func TestAShardOnTwoDevicesIsServedByGeneration(t *testing.T) {
	a, b := openStore(t, vfs.NewMem(vfs.MemOptions{})), openStore(t, vfs.NewMem(vfs.MemOptions{}))
	old := ref(9, 0)
	moved := frame.ShardRef{ShardKey: old.ShardKey, Generation: old.Generation + 1}
	shard(t, a, old, 4<<20)
	c := start(t, Limits{}, a, b)
	shard(t, b, moved, 4<<20)
	c.Made(moved, testDevice+1)
	for _, w := range []struct {
		ref  frame.ShardRef
		want layout.DeviceID
	}{{old, testDevice}, {moved, testDevice + 1}, {ref(77, 0), testDevice}} {
		if d, err := c.devices.find(w.ref); err != nil || d.ID != w.want {
			t.Errorf("shard %v is served by %v, %v, want device %d", w.ref, d, err, w.want)
		}
	}
	if err := a.Delete(old); err != nil {
		t.Fatal(err)
	}
	c.Gone(old, testDevice)
	p := c.connect(t)
	read := frame.Request{Kind: frame.Read}
	p.refused(errs.OK, read, readMeta(moved, frame.ReadRange{Length: 4096}), nil)
	p.refused(errs.StaleGeneration, read, readMeta(old, frame.ReadRange{Length: 4096}), nil)
}
