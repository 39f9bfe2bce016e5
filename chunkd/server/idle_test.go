package server

import (
	"net"
	"runtime"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

const (
	// idleConns are enough to tell what each takes, in bytes; idleBar is the share of
	// 128 MiB that each of 10,000 may take.
	idleConns = 400
	idleBar   = 128 << 20 / 10_000
)

// TestIdleConnectionsTakeLittle: heap and stacks, of both ends, once connections
// that have read and written are quiet.
func TestIdleConnectionsTakeLittle(t *testing.T) {
	per := idleFootprint(t, idleConns)
	t.Logf("%d bytes a connection: %d MiB for 10,000", per, per*10_000>>20)
	if per > idleBar {
		t.Errorf("a quiet connection takes %d bytes, more than %d", per, idleBar)
	}
}

// idleFootprint gives what each of n quiet connections takes, in bytes.
func idleFootprint(t *testing.T, n int) int64 {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	meta, payload := unit(ref(9, 0), 1, 0, 4096)
	c.connect(t).refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
	read := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	before := inUse()
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, nc := range conns {
			nc.Close()
		}
	}()
	for range n {
		p := c.dial(t)
		p.hello()
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Class: layout.ClassTraining}, read, nil)
		conns = append(conns, p.nc)
	}
	// The pooled buffers go back a while after the last byte.
	per := int64(0)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if per = (inUse() - before) / int64(n); per <= idleBar {
			break
		}
	}
	return per
}

// inUse is the memory of heap and stacks that is in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // pools drop what they keep with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
