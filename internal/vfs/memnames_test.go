package vfs_test

import (
	"errors"
	"io/fs"
	"testing"

	"strake/internal/vfs"
)

func exists(t *testing.T, fsys vfs.FS, path string) bool {
	t.Helper()
	_, err := fsys.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestUnsyncedNameIsLostThoughFileWasSynced(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	f := must[vfs.File](t)(m.Create("a"))
	check(t, f.Sync())
	if exists(t, m.Crash(nil, 0), "a") {
		t.Fatal("a name survived without SyncDir")
	}
}

func TestUnsyncedParentHidesSyncedChild(t *testing.T) {
	m := vfs.NewMem(vfs.MemOptions{})
	check(t, m.MkdirAll("d"))
	must[vfs.File](t)(m.Create("d/tmp"))
	check(t, m.Rename("d/tmp", "d/a"))
	check(t, m.Link("d/a", "d/b"))
	check(t, m.SyncDir("d"))
	if exists(t, m.Crash(nil, 0), "d") {
		t.Fatal("a directory survived without SyncDir of its parent")
	}
}

func TestRenameIsAtomicAcrossCut(t *testing.T) {
	for seed := range 200 {
		m := vfs.NewMem(vfs.MemOptions{})
		syncedFile(t, m, "CURRENT", []byte("old"))
		f := must[vfs.File](t)(m.Create("tmp"))
		must[int](t)(f.WriteAt([]byte("new"), 0))
		check(t, f.Sync())
		check(t, m.Rename("tmp", "CURRENT"))
		after := m.Crash(rng(seed), 50)
		got := string(readAll(t, after, "CURRENT"))
		if got != "old" && got != "new" || got == "new" && exists(t, after, "tmp") {
			t.Fatalf("seed %d: CURRENT is %q, tmp exists: %v", seed, got, exists(t, after, "tmp"))
		}
	}
}

func TestFileThatAlwaysHadANameKeepsOne(t *testing.T) {
	for seed := range 300 {
		m := vfs.NewMem(vfs.MemOptions{})
		syncedFile(t, m, "a", []byte("one"))
		check(t, m.MkdirAll("d/e"))
		check(t, m.Rename("a", "d/e/a"))
		check(t, m.Link("d/e/a", "b"))
		check(t, m.Remove("d/e/a"))
		if seed%2 == 0 {
			check(t, m.SyncDir("d/e"))
		}
		after := m.Crash(rng(seed), 50)
		if !exists(t, after, "a") && !exists(t, after, "d/e/a") && !exists(t, after, "b") {
			t.Fatalf("seed %d: the file is gone:\n%s", seed, dump(t, after, "."))
		}
	}
}

func TestRemovedDirectoryTakesNoMovedFileWithIt(t *testing.T) {
	for seed := range 200 {
		m := vfs.NewMem(vfs.MemOptions{})
		check(t, m.MkdirAll("d"))
		f := must[vfs.File](t)(m.Create("d/a"))
		check(t, f.Sync())
		check(t, m.SyncDir("d"))
		check(t, m.SyncDir("."))
		check(t, m.Rename("d/a", "a"))
		check(t, m.Remove("d"))
		after := m.Crash(rng(seed), 50)
		if exists(t, after, "d/a") == exists(t, after, "a") {
			t.Fatalf("seed %d: the file has two names or none:\n%s", seed, dump(t, after, "."))
		}
	}
}
