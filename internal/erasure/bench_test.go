package erasure

import (
	"fmt"
	"testing"

	"strake/internal/layout"
)

func benchUnits(g layout.Geometry, n int) [][]byte {
	units := make([][]byte, g.Shards())
	for s := range units {
		units[s] = make([]byte, n)
		for i := range units[s] {
			units[s][i] = byte(i*7 + s)
		}
	}
	return units
}

func BenchmarkEncode(b *testing.B) {
	for _, g := range []layout.Geometry{{K: 4, M: 2}, {K: 8, M: 3}, {K: 16, M: 4}} {
		for _, n := range []int{4 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%v/%dKiB", g, n>>10), func(b *testing.B) {
				c, err := For(g)
				if err != nil {
					b.Fatal(err)
				}
				units := benchUnits(g, n)
				b.SetBytes(int64(n) * int64(g.K))
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Encode(units); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEncodeNarrow(b *testing.B) {
	c, _ := For(layout.Geometry{K: 4, M: 2})
	units := benchUnits(c.Geometry(), 4<<10)
	units[0], units[1], units[3] = nil, nil, nil
	b.SetBytes(4 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Encode(units); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReconstruct(b *testing.B) {
	for _, n := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("4+2/%dKiB", n>>10), func(b *testing.B) {
			c, _ := For(layout.Geometry{K: 4, M: 2})
			units := benchUnits(c.Geometry(), n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Reconstruct(units, 0b111101, 0, 0b10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
