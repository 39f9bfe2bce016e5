package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/internal/layout"
)

// TestFullCellRefusesWritesAndNothingElse fills a small cell to the brim: writes
// are refused with no-space while the reserve of each device is free, by the blocks
// that the disk counts; what is there reads back, a discard goes on, the status says
// what is wrong, removing a volume works and makes room.
func TestFullCellRefusesWritesAndNothingElse(t *testing.T) {
	const capacity = 192 << 20
	c := start(t, cluster.Options{Chunkds: 3, ChunkdArgs: []string{"--capacity", "192MiB"}}) // 2+1
	const size = 2 * capacity                                                                // all that the devices hold, reserve and overhead included
	create(t, c, "a", size/4096)
	create(t, c, "b", 4096)
	vol := open(t, c, "a", client.OpenOptions{Write: true})
	chunk := bytes.Repeat([]byte("full"), 1<<20) // 4 MiB
	written := 0                                 // chunks
	var full error
	for at := int64(0); at < size && full == nil; at += int64(len(chunk)) {
		if _, full = vol.WriteAt(chunk, at); full == nil {
			full = vol.Flush(t.Context())
		}
		if full == nil {
			written++
		}
	}
	if !errors.Is(full, client.ErrNoSpace) {
		t.Fatalf("after %d MiB: got %v, want no-space", 4*written, full)
	}
	t.Logf("%d MiB fitted", 4*written)
	for _, s := range c.Chunkds {
		used := blocksBelow(t, filepath.Join(c.Dir(), s.Name))
		if most := capacity - layout.ForData.Kept(capacity); used > most {
			t.Errorf("%s holds %d bytes, of %d data may fill %d", s.Name, used, capacity, most)
		}
	}
	cell := dial(t, c)
	eventually(t, "the status tells that the cell is full", 30*time.Second, func() bool {
		s, err := cell.Status(t.Context())
		check(t, err)
		return s.Health != "healthy"
	})
	if err := vol.Discard(t.Context(), size-1<<20, 1<<20); err != nil {
		t.Errorf("a discard in a full cell: %v", err)
	}
	if written < 16 {
		t.Errorf("%d MiB fitted into a cell of 3 x 192 MiB at 2+1", 4*written)
	}
	got := make([]byte, len(chunk))
	for i := range written {
		if _, err := vol.ReadAt(got, int64(i)*int64(len(chunk))); err != nil || !bytes.Equal(got, chunk) {
			t.Fatalf("read back chunk %d: %v", i, err)
		}
	}
	if err := vol.Close(); err != nil && !errors.Is(err, client.ErrNoSpace) {
		t.Fatal(err)
	}
	check(t, cell.RemoveVolume(t.Context(), "a", true))
	b, err := cell.Open(t.Context(), "b", client.OpenOptions{Write: true})
	check(t, err)
	eventually(t, "room after the removal", 30*time.Second, func() bool {
		_, err := b.WriteAt(chunk, 0)
		if err == nil {
			err = b.Flush(t.Context())
		}
		return err == nil
	})
	check(t, b.Close())
}

// blocksBelow counts the bytes that the files of a directory take on the disk.
func blocksBelow(t *testing.T, dir string) (used uint64) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it went meanwhile
		}
		if info, err := d.Info(); err == nil {
			used += uint64(info.Sys().(*syscall.Stat_t).Blocks) * 512
		}
		return nil
	}))
	return used
}
