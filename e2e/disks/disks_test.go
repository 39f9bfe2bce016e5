package disks_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"strake/e2e/disks"
	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/internal/vfs/vfstest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func host(t *testing.T) *disks.Host {
	t.Helper()
	h, err := disks.NewHost()
	check(t, err)
	t.Cleanup(func() { check(t, h.Close()) })
	return h
}

func dial(t *testing.T, h *disks.Host) vfs.FS {
	t.Helper()
	fsys, err := disks.Dial(h.Address(), "a")
	check(t, err)
	return fsys
}

func TestADiskOfAnotherProcessIsAFileSystem(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) vfs.FS {
		h := host(t)
		h.Add("a", 1<<30)
		return dial(t, h)
	})
}

func TestACutLosesWhatWasNotSynced(t *testing.T) {
	h := host(t)
	d := h.Add("a", 1<<30)
	f, err := dial(t, h).Create("x")
	check(t, err)
	write(t, f, "synced", 0)
	check(t, errors.Join(f.Sync(), dialDir(t, h)))
	f, err = dial(t, h).Open("x")
	check(t, err)
	write(t, f, "gone..", 0)
	d.Cut(rand.New(rand.NewPCG(1, 1)), 0)
	if err := f.Sync(); err == nil {
		t.Error("a process from before the cut synced a file after it")
	}
	after, err := dial(t, h).OpenRead("x")
	check(t, err)
	got := make([]byte, 6)
	_, err = after.ReadAt(got, 0)
	check(t, err)
	if !bytes.Equal(got, []byte("synced")) {
		t.Errorf("got %q", got)
	}
}

// dialDir makes the names of the root durable, as a process of its own.
func dialDir(t *testing.T, h *disks.Host) error { return dial(t, h).SyncDir(".") }

func write(t *testing.T, f vfs.File, text string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(text), off)
	check(t, err)
}

func TestALockEndsWithItsSession(t *testing.T) {
	h := host(t)
	h.Add("a", 1<<30)
	first := dial(t, h)
	_, err := first.Lock("LOCK")
	check(t, err)
	if _, err := first.Lock("LOCK"); errs.KindOf(err) != errs.Busy {
		t.Fatalf("a second lock: %v", err)
	}
	_, err = dial(t, h).Lock("LOCK")
	check(t, err)
	if _, err := first.List("."); err == nil {
		t.Fatal("a session that has ended is still served")
	}
}

func TestAFullAndAReadOnlyDiskRefuseWrites(t *testing.T) {
	h := host(t)
	d := h.Add("a", 1<<20)
	f, err := dial(t, h).Create("x")
	check(t, err)
	write(t, f, "x", 0)
	d.Fill(4096)
	_, err = f.WriteAt(make([]byte, 8192), 4096)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write to a full disk: %v", err)
	}
	d.Heal()
	_, err = f.WriteAt(make([]byte, 8192), 4096)
	check(t, err)
	d.ReadOnly()
	if _, err = f.WriteAt([]byte("y"), 0); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a write to a read-only disk: %v", err)
	}
	if _, err = f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("a read of a read-only disk: %v", err)
	}
	d.Heal()
	check(t, f.Sync())
}

func TestADiskThatHangsAnswersOnceItIsHealed(t *testing.T) {
	h := host(t)
	d := h.Add("a", 1<<20)
	fsys := dial(t, h)
	d.Hang()
	answered := make(chan error)
	go func() {
		_, err := fsys.Stat("x")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a call on a disk that hangs was answered: %v", err)
	default:
	}
	d.Heal()
	if err := <-answered; !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
