package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"strake/internal/vfs"
)

var percents = []int{0, 10, 50, 100}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rng(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0)) }

// syncedFile makes a durable file.
func syncedFile(t *testing.T, fsys vfs.FS, path string, p []byte) vfs.File {
	t.Helper()
	f := must[vfs.File](t)(fsys.Create(path))
	must[int](t)(f.WriteAt(p, 0))
	check(t, f.Sync())
	check(t, fsys.SyncDir("."))
	return f
}

func readAll(t *testing.T, fsys vfs.FS, path string) []byte {
	t.Helper()
	f := must[vfs.File](t)(fsys.OpenRead(path))
	defer f.Close()
	p := make([]byte, must[int64](t)(f.Size()))
	if _, err := f.ReadAt(p, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return p
}

// dump tells a whole file system as text.
func dump(t *testing.T, fsys vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range must[[]string](t)(fsys.List(dir)) {
		path := dir + "/" + name
		if must[fs.FileInfo](t)(fsys.Stat(path)).IsDir() {
			fmt.Fprintf(&b, "%s/\n%s", path, dump(t, fsys, path))
			continue
		}
		fmt.Fprintf(&b, "%s %x\n", path, readAll(t, fsys, path))
	}
	return b.String()
}

func TestCutFailsOpenFilesAndCalls(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := syncedFile(t, m, "a", []byte("one"))
	after := m.Crash(nil, 0)
	for what, err := range map[string]error{
		"read":  second(f.ReadAt(make([]byte, 1), 0)),
		"write": second(f.WriteAt([]byte("x"), 0)),
		"sync":  f.Sync(),
		"open":  second(m.Open("a")),
		"list":  second(m.List(".")),
	} {
		if !errors.Is(err, vfs.ErrPowerCut) {
			t.Errorf("%s after the cut gave %v", what, err)
		}
	}
	check(t, f.Close())
	if got := readAll(t, after, "a"); string(got) != "one" {
		t.Fatalf("got %q", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestUnsyncedWriteIsMixOfOldAndNewSectors(t *testing.T) {
	const sectors = 20
	old, fresh := bytes.Repeat([]byte{1}, 512*sectors), bytes.Repeat([]byte{2}, 512*sectors)
	seen := map[string]bool{}
	for seed := range 200 {
		for _, keep := range percents {
			m := vfs.NewMem(vfs.MemOptions{})
			f := syncedFile(t, m, "a", old)
			must[int](t)(f.WriteAt(fresh, 0))
			got := readAll(t, m.Crash(rng(seed), keep), "a")
			n := newSectors(t, got)
			if keep == 0 && n != 0 || keep == 100 && n != sectors {
				t.Fatalf("seed %d keep %d: %d new sectors", seed, keep, n)
			}
			seen[map[bool]string{true: "torn", false: "whole"}[n > 0 && n < sectors]] = true
		}
	}
	if !seen["torn"] || !seen["whole"] {
		t.Fatalf("saw only %v", seen)
	}
}

// newSectors counts sectors of twos and fails when one is not pure.
func newSectors(t *testing.T, p []byte) (n int) {
	t.Helper()
	for i := 0; i < len(p); i += 512 {
		s := p[i : i+512]
		if !bytes.Equal(s, bytes.Repeat(s[:1], 512)) {
			t.Fatalf("sector %d is torn inside", i/512)
		}
		if s[0] == 2 {
			n++
		}
	}
	return n
}

func TestSectorHoldsAllWritesUntilThen(t *testing.T) {
	for seed := range 300 {
		m := vfs.NewMem(vfs.MemOptions{})
		f := syncedFile(t, m, "a", make([]byte, 512))
		for i := range 8 {
			must[int](t)(f.WriteAt([]byte{byte(i + 1)}, int64(i)))
		}
		got := readAll(t, m.Crash(rng(seed), 50), "a")
		cut := bytes.IndexByte(got, 0)
		if !bytes.Equal(got[:cut], []byte{1, 2, 3, 4, 5, 6, 7, 8}[:cut]) || !bytes.Equal(got[cut:8], make([]byte, 8-cut)) {
			t.Fatalf("seed %d: a later write without an earlier one to the same sector: %v", seed, got[:8])
		}
	}
}

func TestLostTruncationTakesLaterGrowthWithIt(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{1}, 8192), bytes.Repeat([]byte{2}, 8192)
	for seed := range 200 {
		m := vfs.NewMem(vfs.MemOptions{})
		f := syncedFile(t, m, "a", old)
		check(t, f.Truncate(0))
		must[int](t)(f.WriteAt(fresh, 0))
		got := readAll(t, m.Crash(rng(seed), 50), "a")
		if bytes.IndexByte(got, 1) >= 0 && bytes.IndexByte(got, 2) >= 0 {
			t.Fatalf("seed %d: bytes from before and after a truncation", seed)
		}
	}
}

func TestHardLinksStayLinkedAcrossCut(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	syncedFile(t, m, "a", []byte("one"))
	check(t, m.Link("a", "b"))
	after := m.Crash(nil, 100)
	f := must[vfs.File](t)(after.Open("a"))
	must[int](t)(f.WriteAt([]byte("two"), 0))
	if got := readAll(t, after, "b"); string(got) != "two" {
		t.Fatalf("got %q through the other name", got)
	}
}
