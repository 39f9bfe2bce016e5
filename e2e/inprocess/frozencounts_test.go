package inprocess

import (
	"fmt"
	"testing"

	"strake/client"
)

// counting starts a cell, and a client whose calls to data servers are counted.
func counting(t *testing.T) (cell *client.Cell, calls func(f func()) uint64) {
	t.Helper()
	cfg, counters := client.Counted(unattended)
	c := Start(t, Options{Direct: true, Client: cfg})
	return c.Dial(), func(f func()) uint64 {
		before := counters().Calls
		f()
		return counters().Calls - before
	}
}

// TestOpeningASnapshotAsksNoMoreOfALargerVolume opens snapshots of a volume with 512
// extents in one segment, and of one with 16 times as many in eight.
func TestOpeningASnapshotAsksNoMoreOfALargerVolume(t *testing.T) {
	cell, calls := counting(t)
	var asked []uint64
	for i, size := range []int64{512 * piece, 8192 * piece} {
		name := fmt.Sprintf("v%d", i)
		create(t, cell, name, size, 4, 2)
		v := open(t, cell, name, writing)
		scatter(t, v, size)
		closed(t, v) // with a root
		freeze(t, cell, name+"@s")
		asked = append(asked, calls(func() {
			s := open(t, cell, name+"@s", client.OpenOptions{})
			holds(t, s, pattern(1, block), size/2)
			closed(t, s)
		}))
	}
	t.Log(asked)
	if asked[1] > asked[0]+4 { // some pages of the map more, on the way to the block
		t.Errorf("an open and a read take %d calls, of a larger volume %d", asked[0], asked[1])
	}
}

// TestAWriteAfterASnapshotCostsWhatItDidBefore counts the calls and the appended bytes
// of durable writes of single blocks.
func TestAWriteAfterASnapshotCostsWhatItDidBefore(t *testing.T) {
	const size, writes = 4 * mib, 200
	cell, calls := counting(t)
	create(t, cell, "v", size, 4, 2)
	v := open(t, cell, "v", writing)
	write(t, v, pattern(1, size), 0)
	half := func() (n uint64, appended uint64) {
		before := v.Stats().AppendedBytes
		n = calls(func() {
			for i := range int64(writes) {
				write(t, v, pattern(2, block), i*5*block%size)
				flush(t, v)
			}
		})
		return n, v.Stats().AppendedBytes - before
	}
	half()
	n, appended := half()
	freeze(t, cell, "v@s")
	after, more := half()
	t.Logf("%d calls and %d bytes, after a snapshot %d and %d", n, appended, after, more)
	if float64(after) > 1.1*float64(n) || more > appended {
		t.Errorf("%d writes take %d calls and %d bytes, after a snapshot %d and %d", writes, n, appended, after, more)
	}
	closed(t, v)
}

// TestTenThousandSnapshotsAreListedInTenPages makes them in groups, and removes one from
// the middle of a page.
func TestTenThousandSnapshotsAreListedInTenPages(t *testing.T) {
	const most = 10_000
	c := Start(t, Options{Chunkds: 2, Direct: true})
	cell, v := volume(t, c, mib, 1, 1)
	for n := 0; n < most; n += group {
		var names []string
		for i := range group {
			names = append(names, fmt.Sprintf("v@s%d", n+i))
		}
		if n%(most/10) == 0 {
			write(t, v, pattern(1, block), 0)
		}
		freeze(t, cell, names...)
	}
	unfreeze(t, cell, "v@s4711")
	freeze(t, cell, "v@last")
	var all []client.SnapshotInfo
	pages := 0
	for after := uint64(0); pages == 0 || after > 0; pages++ {
		page, next, err := cell.Snapshots(t.Context(), "v", after, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, page...), next
	}
	if pages != most/1000 || len(all) != most || all[4710].Name != "v@s4710" || all[4711].Name != "v@s4712" || all[most-1].Name != "v@last" {
		t.Errorf("%d snapshots in %d pages", len(all), pages)
	}
	frozenAs(t, cell, "v@s4710", pattern(1, block), 0)
	closed(t, v)
}
