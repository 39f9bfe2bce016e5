package vfstest

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"strake/internal/vfs"
)

// Run checks the whole contract. Each subtest calls open once and expects an
// empty file system with room for at least 8 MiB.
func Run(t *testing.T, open func(t *testing.T) vfs.FS) {
	for _, c := range []struct {
		name string
		test func(*testing.T, vfs.FS)
	}{
		{"CreateRefusesTakenName", testCreate},
		{"OpenFindsOnlyFiles", testOpen},
		{"OpenReadRefusesWrites", testOpenRead},
		{"RemoveKeepsOpenFile", testRemove},
		{"RenameReplacesTarget", testRename},
		{"LinkSharesContent", testLink},
		{"MkdirAllIsIdempotent", testMkdirAll},
		{"ListIsSorted", testList},
		{"StatTellsSizeAndKind", testStat},
		{"SyncDirWantsDirectory", testSyncDir},
		{"LockIsExclusive", testLock},
		{"UsageIsPlausible", testUsage},
		{"PathsStayBelowRoot", testPaths},
		{"ReadAtEndsWithEOF", testReadAt},
		{"WriteAtFillsGapWithZeros", testWriteAt},
		{"VectorsCrossBuffers", testVectors},
		{"WriteDirectIsWriteAt", testWriteDirect},
		{"SectorBoundsDirectWrite", testSector},
		{"SyncKeepsContent", testSync},
		{"TruncateZeroesWhatItAdds", testTruncate},
		{"PunchHoleReadsAsZeros", testPunchHole},
		{"BadOffsetsAreRefused", testBadOffsets},
		{"ClosedFileFails", testClosed},
		{"ParallelWritersMeet", testParallel},
		{"RandomCallsMatchByteSlice", testRandom},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is fails the test unless errors.Is(err, want); a nil want takes any error.
func is(t *testing.T, err, want error) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// put makes a file of some content and closes it.
func put(t *testing.T, fsys vfs.FS, path, content string) {
	t.Helper()
	f := create(t, fsys, path)
	write(t, f, content, 0)
	ok(t, f.Close())
}

// create makes a file that the test closes; a second Close is harmless.
func create(t *testing.T, fsys vfs.FS, path string) vfs.File {
	t.Helper()
	f, err := fsys.Create(path)
	ok(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f vfs.File, content string, off int64) {
	t.Helper()
	n, err := f.WriteAt([]byte(content), off)
	ok(t, err)
	if n != len(content) {
		t.Fatalf("wrote %d bytes, want %d", n, len(content))
	}
}

// content reads a whole file by path.
func content(t *testing.T, fsys vfs.FS, path string) string {
	t.Helper()
	f, err := fsys.OpenRead(path)
	ok(t, err)
	got := whole(t, f)
	ok(t, f.Close())
	return string(got)
}

func whole(t *testing.T, f vfs.File) []byte {
	t.Helper()
	size, err := f.Size()
	ok(t, err)
	p := make([]byte, size)
	_, err = f.ReadAt(p, 0)
	ok(t, err)
	return p
}

func equal(t *testing.T, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d bytes, want %d", len(got), len(want))
	}
	if !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		t.Fatalf("byte %d is %#x, want %#x", at, got[at], want[at])
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func missing(t *testing.T, fsys vfs.FS, path string) {
	t.Helper()
	_, err := fsys.Stat(path)
	is(t, err, fs.ErrNotExist)
}
