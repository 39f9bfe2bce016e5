package inprocess

import (
	"fmt"
	"testing"

	"strake/client"
)

// TestWhatASnapshotHoldsBackIsTold overwrites every second block of a volume under a
// snapshot: every segment has a live block, so none is retired, and yet the snapshot
// holds half of what is stored. What is told of that is what its removal then brings.
func TestWhatASnapshotHoldsBackIsTold(t *testing.T) {
	const size = 24 * mib
	c := Start(t, Options{Client: unattended})
	cell, v := volume(t, c, size, 4, 2)
	write(t, v, pattern(1, size), 0)
	freeze(t, cell, "v@a")
	for i := range int64(size / block / 2) {
		v.WriteAsync(pattern(uint64(i+2), block), 2*i*block)
	}
	flush(t, v)
	if _, err := v.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
	s, err := cell.Snapshot(t.Context(), "v@a")
	if err != nil {
		t.Fatal(err)
	}
	before, err := cell.Volume(t.Context(), "v")
	if err != nil {
		t.Fatal(err)
	}
	told := s.FreesBytes + s.CleanableBytes
	if told < size/2 || before.SnapshotBytes != told {
		t.Errorf("removal frees %d and %d bytes; of the volume's %d stored bytes its snapshots hold %d", s.FreesBytes, s.CleanableBytes, before.StoredBytes, before.SnapshotBytes)
	}
	unfreeze(t, cell, "v@a")
	v = open(t, cell, "v", writing)
	if _, err := v.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
	c.Eventually("as much comes back as was told, or nearly", func() error {
		now, err := cell.Volume(t.Context(), "v")
		if err == nil && (now.StoredBytes+told > before.StoredBytes+size/4 || now.SnapshotBytes > 0) {
			err = fmt.Errorf("%d MiB were stored, %d are, and %d were told", before.StoredBytes/mib, now.StoredBytes/mib, told/mib)
		}
		return err
	})
}

// TestWhatAHiddenSnapshotHoldsIsTold removes a snapshot on which a clone stands.
func TestWhatAHiddenSnapshotHoldsIsTold(t *testing.T) {
	const size = 8 * mib
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{CloseHeaders: 1}}})
	cell, v := volume(t, c, size, 4, 2)
	write(t, v, pattern(1, size), 0)
	freeze(t, cell, "v@a")
	closed(t, v)
	if _, err := cell.CloneVolume(t.Context(), "v@a", "w"); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) { // the second root retires what the first could not
		v = open(t, cell, "v", writing)
		write(t, v, pattern(2+i, size), 0)
		closed(t, v)
	}
	unfreeze(t, cell, "v@a")
	info, err := cell.Volume(t.Context(), "v")
	if err != nil || info.Snapshots != 0 || info.SnapshotBytes < size {
		t.Errorf("its %d snapshots hold %d bytes, %v", info.Snapshots, info.SnapshotBytes, err)
	}
}
