package vfs

import "testing"

func TestSharesTogetherPromiseNoMoreThanTheDisk(t *testing.T) {
	const parts = 6
	disk := NewMem(MemOptions{Capacity: 1 << 20})
	whole, err := disk.Usage()
	if err != nil || whole.Total == 0 || whole.Free == 0 {
		t.Fatalf("the disk: %+v, %v", whole, err)
	}
	var sum Usage
	for range parts {
		u, err := NewShare(disk, parts).Usage()
		if err != nil {
			t.Fatal(err)
		}
		sum.Total, sum.Free = sum.Total+u.Total, sum.Free+u.Free
	}
	if sum.Total > whole.Total || sum.Free > whole.Free || sum.Total+parts <= whole.Total || sum.Free+parts <= whole.Free {
		t.Errorf("%d shares have %+v, the disk has %+v", parts, sum, whole)
	}
}
