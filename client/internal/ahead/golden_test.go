package ahead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"strake/internal/layout"
)

// TestGolden runs the command language of testdata, sizes in KiB:
//
//	volume k=4 class=training [size=65536]                 begins anew
//	read at=0 size=128 [times=8] [step=128] [busy=512]     reads, one after another
//
// A read that has something fetched prints a line.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.step)
	})
}

type script struct {
	d     Detector
	start Start
	k     int
	size  layout.BlockNumber
}

const perKiB = 1 << 10

func (s *script) step(t *testing.T, d *datadriven.TestData) string {
	arg := func(name string, value int) int {
		d.MaybeScanArgs(t, name, &value)
		return value
	}
	switch d.Cmd {
	case "volume":
		var class string
		d.ScanArgs(t, "class", &class)
		*s = script{start: StartOf(classNamed(t, class)), k: arg("k", 0), size: layout.BlockNumber(arg("size", 1<<20) * perKiB / layout.BlockSize)}
		return ""
	case "read":
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	var out strings.Builder
	at, size := arg("at", 0), arg("size", 0)
	for i := range arg("times", 1) {
		from := at + i*arg("step", size)
		r := layout.Range{Start: layout.BlockNumber(from * perKiB / layout.BlockSize), Count: layout.Blocks(int64(size * perKiB))}
		if got := s.d.Read(r, s.start, s.k, s.size, layout.Blocks(int64(arg("busy", 0)*perKiB))); got.Count > 0 {
			fmt.Fprintf(&out, "read %d+%d: fetch %d+%d\n", from, size, int64(got.Start)*layout.BlockSize/perKiB, got.Count.Bytes()/perKiB)
		}
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

func classNamed(t *testing.T, name string) layout.Class {
	for c := layout.ClassInference; c <= layout.ClassBackground; c++ {
		if c.String() == name {
			return c
		}
	}
	t.Fatalf("no class %q", name)
	return 0
}
