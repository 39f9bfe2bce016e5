package server

import (
	"fmt"
	"io"
	"net"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// BenchmarkRead reads over loopback, depth requests under way on one connection:
// from a store in memory, and from a device's store on the real file system (the
// page cache).
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct{ bytes, depth int }{{4096, 1}, {4096, 32}, {128 << 10, 8}, {1 << 20, 1}, {1 << 20, 4}} {
		for _, kind := range []string{"fake", "disk"} {
			b.Run(fmt.Sprintf("%dKiB/qd%d/%s", c.bytes>>10, c.depth, kind), func(b *testing.B) {
				s := Store(newFakeStore())
				if kind == "disk" {
					fsys, err := vfs.NewOS(b.TempDir())
					if err != nil {
						b.Fatal(err)
					}
					s = openStore(b, fsys)
				}
				shard(b, s, ref(9, 0), 4<<20)
				cl := start(b, Limits{}, s)
				p := cl.connect(b)
				meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
				p.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
				one := p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: uint32(c.bytes)}), nil)
				pingPong(b, p.nc, one, frame.HeaderLen+c.bytes/layout.BlockSize*4+c.bytes, c.depth)
				b.SetBytes(int64(c.bytes))
			})
		}
	}
}

// BenchmarkEcho is the ceiling of BenchmarkRead: the same lengths, one write and
// one read call for each message, nothing else.
func BenchmarkEcho(b *testing.B) {
	for _, c := range []struct{ bytes, depth int }{{4096, 1}, {4096, 32}, {1 << 20, 1}, {1 << 20, 4}} {
		b.Run(fmt.Sprintf("%dKiB/qd%d", c.bytes>>10, c.depth), func(b *testing.B) {
			l, err := tls.Policy{}.Listen(b.Context(), "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			request, reply := make([]byte, 96), make([]byte, c.bytes+frame.HeaderLen+c.bytes/1024)
			go func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				in := make([]byte, len(request))
				for {
					if _, err := io.ReadFull(nc, in); err != nil {
						return
					}
					if _, err := nc.Write(reply); err != nil {
						return
					}
				}
			}()
			nc, err := tls.Policy{}.Dial(b.Context(), l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			pingPong(b, nc, request, len(reply), c.depth)
			b.SetBytes(int64(c.bytes))
		})
	}
}

// pingPong keeps depth requests under way and counts replies by their bytes.
func pingPong(b *testing.B, nc net.Conn, request []byte, replyLen, depth int) {
	in := make([]byte, max(256<<10, replyLen))
	burst := make([]byte, 0, depth*len(request))
	for range depth {
		burst = append(burst, request...)
	}
	sent, done, rest := 0, 0, 0
	send := func(n int) {
		n = min(n, b.N-sent)
		nc.Write(burst[:n*len(request)])
		sent += n
	}
	b.ReportAllocs()
	b.ResetTimer()
	send(depth)
	for done < b.N {
		n, err := nc.Read(in)
		if err != nil {
			b.Fatal(err)
		}
		rest += n
		if got := rest / replyLen; got > 0 {
			done, rest = done+got, rest%replyLen
			send(got)
		}
	}
	b.StopTimer()
}
