package transport_test

import (
	"fmt"
	"testing"

	"strake/client/internal/transport"
	"strake/internal/tls"
	"strake/proto/frame"
)

// BenchmarkRead measures reads of one connection over loopback, depth of them
// under way, against a server that writes prepared replies.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{4 << 10, 128 << 10, 1 << 20} {
		for _, depth := range []int{1, 16} {
			b.Run(fmt.Sprintf("%dKiB/depth%d", n>>10, depth), func(b *testing.B) { benchRead(b, n, depth) })
		}
	}
}

func benchRead(b *testing.B, n, depth int) {
	reply := make([]byte, frame.HeaderLen+n/1024+n)
	s := serveRaw(b, func(req frame.Request) []byte {
		r := frame.Reply{Kind: req.Kind, ID: req.ID, Payload: n}
		r.Encode(reply, reply[frame.HeaderLen:frame.HeaderLen+n/1024])
		return reply
	})
	tcp := transport.NewTCP(tls.Policy{}, transport.Settings{Window: 64 << 20})
	c, err := tcp.Dial(b.Context(), s.addr, frame.HelloBody{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	idle := make(chan *transport.Call, depth)
	for range depth {
		idle <- &transport.Call{Request: frame.Request{Kind: frame.Read}, Meta: make([]byte, 32),
			Into: [][]byte{make([]byte, n)}, Done: func(call *transport.Call) { idle <- call }}
	}
	before := tcp.Counters()
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		call := <-idle
		if call.Err != nil {
			b.Fatal(call.Err)
		}
		if err := c.Submit(call); err != nil {
			b.Fatal(err)
		}
	}
	for range depth {
		<-idle
	}
	after := tcp.Counters()
	calls := float64(after.Calls - before.Calls)
	b.ReportMetric(float64(after.Writes-before.Writes)/calls, "writes/op")
	b.ReportMetric(float64(after.Reads-before.Reads)/calls, "reads/op")
	b.ReportMetric(float64(after.BytesCopied-before.BytesCopied)/calls, "copied/op")
}
