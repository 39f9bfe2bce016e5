package vfstest

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"strake/internal/errs"
	"strake/internal/vfs"
)

func testCreate(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	if size, err := f.Size(); err != nil || size != 0 {
		t.Fatalf("a new file has size %d, %v", size, err)
	}
	_, err := fsys.Create("a")
	is(t, err, fs.ErrExist)
	_, err = fsys.Create("no/a")
	is(t, err, fs.ErrNotExist)
	_, err = fsys.Create("a/b")
	is(t, err, syscall.ENOTDIR)
}

func testOpen(t *testing.T, fsys vfs.FS) {
	_, err := fsys.Open("a")
	is(t, err, fs.ErrNotExist)
	put(t, fsys, "a", "one")
	f, err := fsys.Open("a")
	ok(t, err)
	write(t, f, "two", 0)
	ok(t, f.Close())
	same(t, content(t, fsys, "./a"), "two")
	ok(t, fsys.MkdirAll("d"))
	_, err = fsys.Open("d")
	is(t, err, syscall.EISDIR)
}

func testOpenRead(t *testing.T, fsys vfs.FS) {
	_, err := fsys.OpenRead("a")
	is(t, err, fs.ErrNotExist)
	put(t, fsys, "a", "one")
	f, err := fsys.OpenRead("a")
	ok(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	is(t, err, nil)
	_, err = f.WritevAt([][]byte{[]byte("x")}, 0)
	is(t, err, nil)
	is(t, f.Truncate(0), nil)
	is(t, f.PunchHole(0, 1), nil)
	same(t, string(whole(t, f)), "one")
	ok(t, f.Close())
	ok(t, fsys.MkdirAll("d"))
	_, err = fsys.OpenRead("d")
	is(t, err, syscall.EISDIR)
}

func testRemove(t *testing.T, fsys vfs.FS) {
	is(t, fsys.Remove("a"), fs.ErrNotExist)
	f := create(t, fsys, "a")
	write(t, f, "one", 0)
	ok(t, fsys.Remove("a"))
	missing(t, fsys, "a")
	write(t, f, "two", 3)
	same(t, string(whole(t, f)), "onetwo")
	put(t, fsys, "a", "new")
	same(t, string(whole(t, f)), "onetwo")
	ok(t, f.Sync())

	ok(t, fsys.MkdirAll("d"))
	put(t, fsys, "d/f", "")
	is(t, fsys.Remove("d"), syscall.ENOTEMPTY)
	ok(t, fsys.Remove("d/f"))
	ok(t, fsys.Remove("d"))
	missing(t, fsys, "d")
	is(t, fsys.Remove("."), nil)
}

func testRename(t *testing.T, fsys vfs.FS) {
	is(t, fsys.Rename("a", "b"), fs.ErrNotExist)
	ok(t, fsys.MkdirAll("d"))
	put(t, fsys, "a", "one")
	old := create(t, fsys, "d/b")
	write(t, old, "old", 0)
	ok(t, fsys.Rename("a", "d/b"))
	missing(t, fsys, "a")
	same(t, content(t, fsys, "d/b"), "one")
	same(t, string(whole(t, old)), "old")
	ok(t, fsys.Rename("d/b", "d/b"))
	same(t, content(t, fsys, "d/b"), "one")
	is(t, fsys.Rename("d/b", "no/b"), fs.ErrNotExist)
	is(t, fsys.Rename("d/b", "d"), nil)
	is(t, fsys.Rename("d", "e"), syscall.EISDIR)
	ok(t, fsys.Link("d/b", "c"))
	ok(t, fsys.Rename("c", "d/b")) // two names of one file: nothing happens
	same(t, content(t, fsys, "c"), "one")
}

func testLink(t *testing.T, fsys vfs.FS) {
	is(t, fsys.Link("a", "b"), fs.ErrNotExist)
	put(t, fsys, "a", "one")
	ok(t, fsys.Link("a", "b"))
	is(t, fsys.Link("a", "b"), fs.ErrExist)
	f, err := fsys.Open("b")
	ok(t, err)
	write(t, f, "two", 0)
	ok(t, f.Close())
	same(t, content(t, fsys, "a"), "two")
	ok(t, fsys.Remove("a"))
	same(t, content(t, fsys, "b"), "two")
	ok(t, fsys.MkdirAll("d"))
	is(t, fsys.Link("d", "e"), nil)
}

func testMkdirAll(t *testing.T, fsys vfs.FS) {
	ok(t, fsys.MkdirAll("."))
	ok(t, fsys.MkdirAll("a/b/c"))
	ok(t, fsys.MkdirAll("a/b/c"))
	put(t, fsys, "a/b/c/f", "one")
	ok(t, fsys.MkdirAll("a/b"))
	same(t, content(t, fsys, "a/b/c/f"), "one")
	is(t, fsys.MkdirAll("a/b/c/f"), nil)
	is(t, fsys.MkdirAll("a/b/c/f/g"), nil)
}

func testList(t *testing.T, fsys vfs.FS) {
	names, err := fsys.List("")
	ok(t, err)
	if len(names) != 0 {
		t.Fatalf("a new file system holds %q", names)
	}
	for _, name := range []string{"b", "c", "a"} {
		put(t, fsys, name, name)
	}
	ok(t, fsys.MkdirAll("ab/x"))
	names, err = fsys.List(".")
	ok(t, err)
	if want := []string{"a", "ab", "b", "c"}; !slices.Equal(names, want) {
		t.Fatalf("got %q, want %q", names, want)
	}
	_, err = fsys.List("no")
	is(t, err, fs.ErrNotExist)
	_, err = fsys.List("a")
	is(t, err, syscall.ENOTDIR)
}

func testStat(t *testing.T, fsys vfs.FS) {
	missing(t, fsys, "a")
	put(t, fsys, "a", "one")
	info, err := fsys.Stat("a")
	ok(t, err)
	if info.Name() != "a" || info.Size() != 3 || info.IsDir() || !info.Mode().IsRegular() {
		t.Fatalf("got %v", fs.FormatFileInfo(info))
	}
	ok(t, fsys.MkdirAll("d/e"))
	info, err = fsys.Stat("d/e")
	ok(t, err)
	if info.Name() != "e" || !info.IsDir() {
		t.Fatalf("got %v", fs.FormatFileInfo(info))
	}
	_, err = fsys.Stat("a/b")
	is(t, err, syscall.ENOTDIR)
}

func testSyncDir(t *testing.T, fsys vfs.FS) {
	ok(t, fsys.SyncDir(""))
	ok(t, fsys.MkdirAll("d"))
	put(t, fsys, "d/a", "one")
	ok(t, fsys.SyncDir("d"))
	is(t, fsys.SyncDir("no"), fs.ErrNotExist)
	is(t, fsys.SyncDir("d/a"), syscall.ENOTDIR)
}

func testLock(t *testing.T, fsys vfs.FS) {
	held, err := fsys.Lock("LOCK")
	ok(t, err)
	_, err = fsys.Lock("LOCK")
	is(t, err, errs.Busy)
	if !strings.Contains(err.Error(), "LOCK") {
		t.Fatalf("%q does not name the path", err)
	}
	info, err := fsys.Stat("LOCK")
	ok(t, err)
	if info.IsDir() || info.Size() != 0 {
		t.Fatalf("a lock made %v", fs.FormatFileInfo(info))
	}
	_, err = fsys.Lock("no/LOCK")
	is(t, err, fs.ErrNotExist)
	other, err := fsys.Lock("LOCK2")
	ok(t, err)
	ok(t, other.Close())
	ok(t, held.Close())
	held, err = fsys.Lock("LOCK")
	ok(t, err)
	ok(t, held.Close())
}

func testUsage(t *testing.T, fsys vfs.FS) {
	u, err := fsys.Usage()
	ok(t, err)
	if u.Total == 0 || u.Free > u.Total {
		t.Fatalf("got %+v", u)
	}
}

func testPaths(t *testing.T, fsys vfs.FS) {
	put(t, fsys, "a", "one")
	for _, path := range []string{"/a", "../a", "x/../../a", "..", "a\x00b"} {
		_, err := fsys.Create(path)
		is(t, err, errs.InvalidArgument)
		_, err = fsys.Open(path)
		is(t, err, errs.InvalidArgument)
		_, err = fsys.OpenRead(path)
		is(t, err, errs.InvalidArgument)
		_, err = fsys.Stat(path)
		is(t, err, errs.InvalidArgument)
		_, err = fsys.List(path)
		is(t, err, errs.InvalidArgument)
		_, err = fsys.Lock(path)
		is(t, err, errs.InvalidArgument)
		is(t, fsys.Remove(path), errs.InvalidArgument)
		is(t, fsys.Rename("a", path), errs.InvalidArgument)
		is(t, fsys.Rename(path, "b"), errs.InvalidArgument)
		is(t, fsys.Link("a", path), errs.InvalidArgument)
		is(t, fsys.MkdirAll(path), errs.InvalidArgument)
		is(t, fsys.SyncDir(path), errs.InvalidArgument)
	}
}
