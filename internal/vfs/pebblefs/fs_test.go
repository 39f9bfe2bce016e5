package pebblefs_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/internal/vfs/pebblefs"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quiet fails the test where Pebble would end the process.
type quiet struct{ t *testing.T }

func (quiet) Infof(string, ...any)             {}
func (quiet) Errorf(string, ...any)            {}
func (q quiet) Fatalf(format string, a ...any) { q.t.Errorf(format, a...) }

func openStore(t *testing.T, fsys vfs.FS) *pebble.DB {
	t.Helper()
	check(t, fsys.MkdirAll("index"))
	check(t, fsys.SyncDir("."))
	db, err := pebble.Open("db", &pebble.Options{
		FS:           pebblefs.New(fsys, "index"),
		Logger:       quiet{t},
		MemTableSize: 16 << 10, // so that flushes and compactions happen
	})
	check(t, err)
	return db
}

func key(i int) []byte   { return fmt.Appendf(nil, "key-%06d", i) }
func value(i int) []byte { return fmt.Appendf(nil, "%0512d", i) }

func wantKeys(t *testing.T, db *pebble.DB, n int) {
	t.Helper()
	for i := range n {
		v, closer, err := db.Get(key(i))
		if err != nil {
			t.Fatalf("key %d of %d: %v", i, n, err)
		}
		if string(v) != string(value(i)) {
			t.Fatalf("key %d of %d is wrong", i, n)
		}
		check(t, closer.Close())
	}
}

func testStore(t *testing.T, fsys vfs.FS) {
	const keys = 200
	db := openStore(t, fsys)
	for i := range keys {
		check(t, db.Set(key(i), value(i), pebble.NoSync))
	}
	check(t, db.Flush())
	check(t, db.Close())
	db = openStore(t, fsys)
	wantKeys(t, db, keys)
	check(t, db.Compact(t.Context(), key(0), key(keys), false))
	wantKeys(t, db, keys)
	check(t, db.Close())
}

func TestStoreReopensOnOS(t *testing.T) {
	fsys, err := vfs.NewOS(t.TempDir())
	check(t, err)
	testStore(t, fsys)
}

func TestStoreReopensOnMem(t *testing.T) { testStore(t, vfs.NewMem(vfs.MemOptions{})) }

// TestSyncedKeysSurviveCutAtEveryCall runs a store once. Before each call that
// it makes, it takes what a power cut would leave, and opens a store on it.
func TestSyncedKeysSurviveCutAtEveryCall(t *testing.T) {
	const keys = 60
	type cut struct {
		op    vfs.Op
		acked int
		after *vfs.Mem
	}
	var mu sync.Mutex // guards acked and cuts
	var acked int
	var cuts []cut
	m := vfs.NewMem(vfs.MemOptions{})
	f := vfs.NewFault(m)
	f.Hook(func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		keep := []int{0, 10, 50, 100}[op.N%4]
		if op.Kind.Mutates() {
			cuts = append(cuts, cut{op, acked, m.CrashClone(rand.New(rand.NewPCG(1, uint64(op.N))), keep)})
		}
		return nil
	})
	db := openStore(t, f)
	for i := range keys {
		check(t, db.Set(key(i), value(i), pebble.Sync))
		mu.Lock()
		acked = i + 1
		mu.Unlock()
	}
	check(t, db.Close())
	for _, c := range cuts {
		t.Run(c.op.String(), func(t *testing.T) {
			db := openStore(t, c.after)
			wantKeys(t, db, c.acked)
			check(t, db.Close())
		})
	}
	t.Logf("%d cuts in %d calls", len(cuts), f.Ops())
}

func TestFileSystemForPebble(t *testing.T) {
	below := vfs.NewMem(vfs.MemOptions{Capacity: 1 << 20})
	fsys := pebblefs.New(below, "x/y")
	check(t, fsys.MkdirAll("/a/b", 0o755))
	for range 2 { // the second replaces the first
		f, err := fsys.Create("a/f", pebblevfs.WriteCategoryUnspecified)
		check(t, err)
		_, err = f.Write([]byte("hello "))
		check(t, err)
		_, err = f.Write([]byte("world"))
		check(t, err)
		check(t, f.Close())
	}
	f, err := fsys.ReuseForWrite("a/f", "a/g", pebblevfs.WriteCategoryUnspecified)
	check(t, err)
	_, err = f.Write([]byte("HELLO"))
	check(t, err)
	check(t, f.Close())
	f, err = fsys.Open("a/g", pebblevfs.RandomReadsOption)
	check(t, err)
	if all, err := io.ReadAll(f); err != nil || string(all) != "HELLO world" {
		t.Fatalf("got %q, %v", all, err)
	}
	check(t, f.Close())
	if names, err := below.List("x/y/a"); err != nil || !slices.Equal(names, []string{"b", "g"}) {
		t.Fatalf("got %q, %v", names, err)
	}
	if _, err := fsys.Open("../x"); !errors.Is(err, errs.InvalidArgument) {
		t.Fatalf("a name above the directory gave %v", err)
	}
	check(t, fsys.RemoveAll("a"))
	check(t, fsys.RemoveAll("a"))
	u, err := fsys.GetDiskUsage("")
	if err != nil || u.UsedBytes != 0 || u.TotalBytes != 1<<20 {
		t.Fatalf("got %+v, %v", u, err)
	}
}
