package vfs_test

import (
	"errors"
	"syscall"
	"testing"

	"strake/internal/vfs"
)

func TestCapacityGivesENOSPCAndKeepsWhatFits(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{Capacity: 4 * 4096})
	f := must[vfs.File](t)(m.Create("a"))
	n, err := f.WriteAt(make([]byte, 5*4096), 100)
	if n != 4*4096-100 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	must[int](t)(f.WriteAt(make([]byte, 4096), 0)) // overwriting needs no space
	check(t, f.PunchHole(0, 4096))
	must[int](t)(f.WriteAt([]byte("x"), 1<<30))
	if u := usedPages(t, m); u != 4 {
		t.Fatalf("%d pages in use, want 4", u)
	}
}

func TestSpaceComesBack(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	a := syncedFile(t, m, "a", make([]byte, 10*4096))
	syncedFile(t, m, "b", make([]byte, 3*4096))
	steps := []struct {
		what string
		do   func() error
		want uint64
	}{
		{"rename", func() error { return m.Rename("a", "c") }, 13},
		{"rename over", func() error { return m.Rename("c", "b") }, 13}, // b is open
		{"remove open", func() error { return m.Remove("b") }, 13},
		{"truncate", func() error { return a.Truncate(4096) }, 4},
		{"close", a.Close, 3},
	}
	for _, s := range steps {
		check(t, s.do())
		if got := usedPages(t, m); got != s.want {
			t.Fatalf("after %s: %d pages in use, want %d", s.what, got, s.want)
		}
	}
}

func TestSparseFileIsCheap(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := must[vfs.File](t)(m.Create("a"))
	check(t, f.Truncate(64<<20))
	must[int](t)(f.WriteAt([]byte("x"), 40<<20))
	if u := usedPages(t, m); u != 1 {
		t.Fatalf("%d pages in use, want 1", u)
	}
	if got := readAll(t, m, "a"); len(got) != 64<<20 || got[40<<20] != 'x' {
		t.Fatal("the file does not read back")
	}
}

func TestRot(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := syncedFile(t, m, "a", []byte("0123456789"))
	check(t, m.FlipBit("a", 2, 0))
	wantFile(t, m, "0133456789")
	must[int](t)(f.WriteAt([]byte("X"), 9))
	check(t, m.FlipBit("a", 0, 1))
	wantFile(t, m, "213345678X")
	check(t, f.Sync())
	check(t, m.LoseNextWrite("a"))
	must[int](t)(f.WriteAt([]byte("abcd"), 8))
	wantFile(t, m, "213345678X\x00\x00")
	check(t, m.MisdirectNextWrite("a", 1))
	must[int](t)(f.WriteAt([]byte("zz"), 4))
	wantFile(t, m, "2zz345678X\x00\x00")
	must[int](t)(f.WriteAt([]byte("0"), 0))
	wantFile(t, m, "0zz345678X\x00\x00")
	if err := m.FlipBit("a", 12, 0); !errors.Is(err, syscall.EINVAL) {
		t.Fatalf("a flip past the end gave %v", err)
	}
	check(t, m.FlipBit("a", 1, 7))
	if got := readAll(t, m.Crash(nil, 0), "a"); string(got) != "2\xb13345678X" {
		t.Fatalf("after a cut: %q", got)
	}
}

func wantFile(t *testing.T, m *vfs.Mem, want string) {
	t.Helper()
	if got := readAll(t, m, "a"); string(got) != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
