package vfs_test

import (
	"bytes"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"strake/internal/vfs"
	"strake/internal/vfs/vfstest"
)

func newFault() *vfs.Fault { return vfs.NewFault(vfs.NewMem(vfs.MemOptions{})) }

func TestFaultMeetsContract(t *testing.T) {
	vfstest.Run(t, func(*testing.T) vfs.FS { return newFault() })
}

// work makes seven calls and gives their errors.
func work(fsys vfs.FS) []error {
	f, err := fsys.Create("a")
	errs := []error{err}
	if err != nil {
		f, _ = fsys.Open("b") // prepared by the test
	}
	p := []byte("x")
	_, err = f.WriteAt(p, 0)
	errs = append(errs, err)
	_, err = f.WritevAt([][]byte{p}, 1)
	errs = append(errs, err, f.Sync())
	_, err = f.ReadAt(p, 0)
	errs = append(errs, err)
	_, err = fsys.List(".")
	return append(errs, err, fsys.SyncDir("."), f.Close())
}

func TestFaultFailsNamedCallOnly(t *testing.T) {
	for n := range int64(7) {
		f := newFault()
		must[vfs.File](t)(f.Create("b"))
		f.FailAt(f.Ops()+1+n, syscall.EIO)
		for i, err := range work(f) {
			if got, want := errors.Is(err, syscall.EIO), int64(i) == n; got != want {
				t.Fatalf("n=%d: call %d gave %v", n, i, err)
			}
		}
	}
}

func TestFaultFailsFromOnUntilHealed(t *testing.T) {
	f := newFault()
	file := must[vfs.File](t)(f.Create("a"))
	f.FailFrom(3, syscall.ENOSPC)
	must[int](t)(file.WriteAt([]byte("x"), 0))
	for range 3 {
		if _, err := file.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v", err)
		}
	}
	f.Heal()
	must[int](t)(file.WriteAt([]byte("x"), 0))
	if f.Ops() != 6 {
		t.Fatalf("counted %d calls, want 6", f.Ops())
	}
}

func TestFaultCutReachesMem(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := vfs.NewFault(m)
	file := syncedFile(t, f, "a", []byte("one"))
	f.CutAt(f.Ops() + 2)
	must[int](t)(file.WriteAt([]byte("two"), 0))
	for range 2 {
		if err := file.Sync(); !errors.Is(err, vfs.ErrPowerCut) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := m.List("."); !errors.Is(err, vfs.ErrPowerCut) {
		t.Fatalf("the file system below lives: %v", err)
	}
	if got := readAll(t, m.Crash(nil, 0), "a"); string(got) != "one" {
		t.Fatalf("got %q", got)
	}
}

func TestFaultHookSeesEachCallAndMayFail(t *testing.T) {
	f := newFault()
	var seen []string
	f.Hook(func(op vfs.Op) error {
		seen = append(seen, op.String())
		if op.Kind == vfs.OpSync {
			return syscall.EIO
		}
		return nil
	})
	errs := work(f)
	if !errors.Is(errs[3], syscall.EIO) {
		t.Fatalf("sync gave %v", errs[3])
	}
	want := []string{"#1 create a", "#2 write a", "#3 write a", "#4 sync a", "#5 read a", "#6 list .", "#7 syncdir ."}
	if len(seen) != len(want) {
		t.Fatalf("got %q", seen)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Fatalf("got %q, want %q", seen[i], want[i])
		}
	}
}

func TestFaultHookMayHangOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFault()
		file := must[vfs.File](t)(f.Create("a"))
		release := make(chan struct{})
		f.Hook(func(op vfs.Op) error {
			if op.Kind == vfs.OpSync {
				<-release
			}
			return nil
		})
		done := false
		go func() {
			_ = file.Sync()
			done = true
		}()
		synctest.Wait()
		must[int](t)(file.WriteAt([]byte("x"), 0)) // others go on
		if done {
			t.Fatal("sync did not hang")
		}
		close(release)
		synctest.Wait()
		if !done {
			t.Fatal("sync still hangs")
		}
	})
}

func TestFaultCountsConcurrentCallsOnce(t *testing.T) {
	f := newFault()
	file := must[vfs.File](t)(f.Create("a"))
	f.FailAt(50, syscall.EIO)
	var mu sync.Mutex
	failed := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := file.WriteAt([]byte("x"), 0); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if f.Ops() != 161 || failed != 1 {
		t.Fatalf("counted %d calls, %d failed", f.Ops(), failed)
	}
}

func TestSyncAfterFailedSyncLies(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := vfs.NewFault(m)
	old, fresh := make([]byte, 3*4096), make([]byte, 3*4096)
	for i := range fresh {
		old[i], fresh[i] = 1, 2
	}
	file := syncedFile(t, f, "a", old)
	must[int](t)(file.WriteAt(fresh, 0))
	f.FailAt(f.Ops()+1, syscall.EIO)
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	must[int](t)(file.WriteAt(fresh[:4096], 4096)) // only this page is dirty again
	check(t, file.Sync())
	if got := readAll(t, f, "a"); !bytes.Equal(got, fresh) {
		t.Fatal("the un-synced content does not read back")
	}
	want := append(append(bytes.Clone(old[:4096]), fresh[:4096]...), old[:4096]...)
	for _, keep := range []int{0, 100} {
		if got := readAll(t, m.CrashClone(nil, keep), "a"); !bytes.Equal(got, want) {
			t.Fatalf("keep %d: a later sync wrote what a failed one had given up", keep)
		}
	}
	check(t, file.Truncate(0))
	check(t, file.Truncate(3*4096))
	check(t, file.Sync())
	if got := readAll(t, m.CrashClone(nil, 0), "a"); !bytes.Equal(got, make([]byte, 3*4096)) {
		t.Fatal("old bytes came back after a truncation")
	}
}

// TestReplacedFileIsOldOrNewAtEveryCut replaces a file by the usual steps, with
// the power cut, or an error, at each of them.
func TestReplacedFileIsOldOrNewAtEveryCut(t *testing.T) {
	replace := func(fsys vfs.FS) error {
		f, err := fsys.Create("tmp")
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err = f.WriteAt([]byte("new"), 0); err != nil {
			return err
		}
		if err = f.Sync(); err != nil {
			return err
		}
		if err = fsys.Rename("tmp", "a"); err != nil {
			return err
		}
		return fsys.SyncDir(".")
	}
	for n := range int64(6) {
		for _, keep := range percents {
			m := vfs.NewMem(vfs.MemOptions{})
			syncedFile(t, m, "a", []byte("old"))
			f := vfs.NewFault(m)
			f.CutAt(1 + n)
			err := replace(f)
			got := string(readAll(t, m.Crash(rng(int(n)), keep), "a"))
			if got != "old" && got != "new" || err == nil && got != "new" {
				t.Fatalf("cut at %d keep %d: %q, %v", n+1, keep, got, err)
			}
		}
	}
}
