package vfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"strake/internal/vfs"
)

// life makes random calls on a few files and directories of m.
func life(t *testing.T, m *vfs.Mem, r *rand.Rand, calls int) {
	t.Helper()
	for range calls {
		dir := fmt.Sprintf("d%d", r.IntN(3))
		a, b := fmt.Sprintf("%s/%d", dir, r.IntN(4)), fmt.Sprintf("d%d/%d", r.IntN(3), r.IntN(4))
		switch r.IntN(9) { // errors are part of the mix
		case 0:
			_ = m.MkdirAll(dir)
		case 1:
			_ = m.Rename(a, b)
		case 2:
			_ = m.Link(a, b)
		case 3:
			_ = m.Remove(a)
		case 4:
			_ = m.Remove(dir)
		case 5:
			_ = m.SyncDir([]string{dir, "."}[r.IntN(2)])
		default:
			scribble(t, m, r, a)
		}
	}
}

func scribble(t *testing.T, m *vfs.Mem, r *rand.Rand, path string) {
	t.Helper()
	f, err := m.Open(path)
	if err != nil {
		f, err = m.Create(path)
	}
	if err != nil {
		return
	}
	defer f.Close()
	for range 1 + r.IntN(4) {
		switch r.IntN(6) {
		case 0:
			check(t, f.Truncate(r.Int64N(9000)))
		case 1:
			check(t, f.PunchHole(r.Int64N(9000), r.Int64N(9000)))
		case 2:
			check(t, f.Sync())
		default:
			p := bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(5000))
			must[int](t)(f.WriteAt(p, r.Int64N(9000)))
		}
	}
}

func TestCrashIsDeterministic(t *testing.T) {
	outcome := func(seed, keep int) string {
		m := vfs.NewMem(vfs.MemOptions{})
		life(t, m, rng(seed), 100)
		return dump(t, m.Crash(rng(seed), keep), ".")
	}
	for seed := range 30 {
		for _, keep := range percents {
			if a, b := outcome(seed, keep), outcome(seed, keep); a != b {
				t.Fatalf("seed %d keep %d: two outcomes:\n%s\n%s", seed, keep, a, b)
			}
		}
	}
}

func TestCrashKeepingAllChangesNothing(t *testing.T) {
	for seed := range 100 {
		m := vfs.NewMem(vfs.MemOptions{})
		life(t, m, rng(seed), 100)
		want := dump(t, m, ".")
		if got := dump(t, m.Crash(nil, 100), "."); got != want {
			t.Fatalf("seed %d: got\n%swant\n%s", seed, got, want)
		}
	}
}

func TestSyncedStateSurvivesCutsInARow(t *testing.T) {
	for seed := range 60 {
		r := rng(seed)
		m := vfs.NewMem(vfs.MemOptions{})
		for range 5 {
			life(t, m, r, 40)
			syncAll(t, m, ".")
			want := dump(t, m, ".")
			check(t, m.MkdirAll("elsewhere"))
			scribble(t, m, r, "elsewhere/x")
			m = m.Crash(r, percents[r.IntN(4)])
			_ = m.Remove("elsewhere/x")
			_ = m.Remove("elsewhere")
			if got := dump(t, m, "."); got != want {
				t.Fatalf("seed %d: got\n%swant\n%s", seed, got, want)
			}
			if a, b := usedPages(t, m), countPages(t, m); a != b {
				t.Fatalf("seed %d: %d pages in use after a cut, but removal freed %d", seed, a, b)
			}
		}
	}
}

func usedPages(t *testing.T, m *vfs.Mem) uint64 {
	t.Helper()
	u := must[vfs.Usage](t)(m.Usage())
	return (u.Total - u.Free) / 4096
}

// countPages removes everything and tells how many pages that freed.
func countPages(t *testing.T, m *vfs.Mem) uint64 {
	t.Helper()
	before := usedPages(t, m)
	removeAll(t, m, ".")
	return before - usedPages(t, m)
}

func removeAll(t *testing.T, m *vfs.Mem, dir string) {
	t.Helper()
	for _, name := range must[[]string](t)(m.List(dir)) {
		path := dir + "/" + name
		if must[isDirer](t)(m.Stat(path)).IsDir() {
			removeAll(t, m, path)
		}
		check(t, m.Remove(path))
	}
}

type isDirer interface{ IsDir() bool }

func syncAll(t *testing.T, m *vfs.Mem, dir string) {
	t.Helper()
	for _, name := range must[[]string](t)(m.List(dir)) {
		path := dir + "/" + name
		info, err := m.Stat(path)
		check(t, err)
		if info.IsDir() {
			syncAll(t, m, path)
			continue
		}
		f := must[vfs.File](t)(m.Open(path))
		check(t, f.Sync())
		check(t, f.Close())
	}
	check(t, m.SyncDir(dir))
}
