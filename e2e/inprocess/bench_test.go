package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/client"
)

// benchCell is a cell without gates, with a volume that is open for writing.
func benchCell(b *testing.B, size int64) (*Cell, *client.Volume) {
	b.Helper()
	c := Start(b, Options{Direct: true, ShardLength: 64 << 20})
	cell := c.Dial()
	if _, err := cell.CreateVolume(context.Background(), "v", client.VolumeOptions{Size: size, K: 4, M: 2}); err != nil {
		b.Fatal(err)
	}
	v, err := cell.Open(context.Background(), "v", writing)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { v.Close() })
	return c, v
}

// BenchmarkImport writes one long sequence, as an import does.
func BenchmarkImport(b *testing.B) {
	const size = 256 * mib
	_, v := benchCell(b, size)
	p := pattern(1, 4*mib)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	b.ResetTimer()
	var done [4]*client.Completion
	for i := range b.N {
		if d := done[i%len(done)]; d != nil {
			if err := d.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		done[i%len(done)] = v.WriteAsync(p, int64(i)*int64(len(p))%size)
	}
	if err := v.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkExport reads one long sequence.
func BenchmarkExport(b *testing.B) {
	const size = 128 * mib
	_, v := benchCell(b, size)
	p := pattern(1, 4*mib)
	for at := int64(0); at < size; at += int64(len(p)) {
		if _, err := v.WriteAt(p, at); err != nil {
			b.Fatal(err)
		}
	}
	if err := v.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := v.ReadAt(p, int64(i)*int64(len(p))%size); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRandomRead reads single blocks, one at a time and 16 at once.
func BenchmarkRandomRead(b *testing.B) {
	const size = 64 * mib
	_, v := benchCell(b, size)
	for at := int64(0); at < size; at += 4 * mib {
		if _, err := v.WriteAt(pattern(1, 4*mib), at); err != nil {
			b.Fatal(err)
		}
	}
	if err := v.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			b.SetParallelism(depth)
			b.ReportAllocs()
			read := func(more func() bool) {
				r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
				p := make([]byte, block)
				for more() {
					if _, err := v.ReadAt(p, r.Int64N(size/block)*block); err != nil {
						b.Error(err)
						return
					}
				}
			}
			if depth == 1 {
				i := 0
				read(func() bool { i++; return i <= b.N })
				return
			}
			b.RunParallel(func(pb *testing.PB) { read(pb.Next) })
		})
	}
}

// BenchmarkFlushedWrite writes single blocks, each made durable.
func BenchmarkFlushedWrite(b *testing.B) {
	_, v := benchCell(b, 64*mib)
	p := pattern(1, block)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := v.WriteAt(p, int64(i*7919%(16384))*block); err != nil {
			b.Fatal(err)
		}
		if err := v.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
