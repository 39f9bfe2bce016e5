package bench

import (
	"os"
	"slices"
	"testing"
)

// TestCeilingsHaveTheCasesDepth: what a case has under way, its ceiling has too.
func TestCeilingsHaveTheCasesDepth(t *testing.T) {
	for _, c := range healthy() {
		shape := ceilingOf(c, 1)
		under := 0
		for _, w := range shape.Windows {
			under += w * shape.Message
		}
		size := c.Block
		if c.Smallest > 0 {
			size = (c.Block + c.Smallest) / 2
		}
		if want := int(size) * c.Depth * max(1, c.Clients); under > want || under < want-shape.Message {
			t.Errorf("%s: %d bytes under way, the case has %d", c.Name, under, want)
		}
		if len(shape.Windows) > ceilingConns || slices.Min(shape.Windows) < 1 || shape.Write != c.Write {
			t.Errorf("%s: %+v", c.Name, shape)
		}
	}
	if got := ceilingOf(Case{Block: 4 * kib, Depth: 32}, 1).Windows; !slices.Equal(got, []int{6, 6, 5, 5, 5, 5}) {
		t.Errorf("32 messages over six connections: %v", got)
	}
}

// TestCeilingsCountWhatTheyMove runs both directions for a moment.
func TestCeilingsCountWhatTheyMove(t *testing.T) {
	for _, c := range []Case{{Block: 4 * kib, Depth: 3}, {Block: 4 * mib, Depth: 4}, {Block: 64 * kib, Depth: 8, Write: true}} {
		shape := ceilingOf(c, 1)
		p, err := servePeer(shape)
		if err != nil {
			t.Fatal(err)
		}
		got, err := exchange(t.Context(), shape, p.address(), 0.02)
		p.close()
		if err != nil {
			t.Fatal(err)
		}
		if got.Ops < int64(len(shape.Windows)) || got.Bytes != got.Ops*int64(shape.Message) {
			t.Errorf("%+v: %d messages, %d bytes", shape, got.Ops, got.Bytes)
		}
	}
}

func TestComputeCeilingsRun(t *testing.T) {
	for _, name := range computeCeilings() {
		got, err := compute(name, 4, 2, 0.001)
		if err != nil || got.Bytes < mib {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	dir := t.TempDir()
	if got, err := writeDisk(t.Context(), dir, 4, 2, 0.02); err != nil || got.Bytes < mib {
		t.Errorf("%s: %+v %v", diskWrite, got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%s leaves %v behind: %v", diskWrite, left, err)
	}
	if _, err := compute("prophecy", 4, 2, 0.001); err == nil {
		t.Error("an unknown ceiling runs")
	}
}

func TestCasesAreChosenByPattern(t *testing.T) {
	for _, c := range []struct {
		names                              string
		healthy, degraded, loose, computes int
	}{
		{"all", 13, 13, 0, 4}, {"seqread-4m", 1, 0, 0, 0}, {"randread-*,degraded-randread-*", 3, 3, 0, 0},
		{"ceiling-*", 0, 0, 13, 4}, {"degraded-hotstart", 0, 1, 0, 0}, {"ceiling-seqread-4m,shuffle", 1, 0, 1, 0},
	} {
		p, err := newPlan(c.names)
		if err != nil || len(p.healthy) != c.healthy || len(p.degraded) != c.degraded || len(p.loose) != c.loose || len(p.compute) != c.computes {
			t.Errorf("%s: %d healthy, %d degraded, %d loose, %d computed: %v", c.names, len(p.healthy), len(p.degraded), len(p.loose), len(p.compute), err)
		}
	}
	for _, bad := range []string{"", "no-such", "[", "seqread-4m,"} {
		if _, err := newPlan(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
