package vfs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"strake/internal/vfs"
	"strake/internal/vfs/vfstest"
)

func openOS(t *testing.T) vfs.FS {
	t.Helper()
	fsys, err := vfs.NewOS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

func TestOSMeetsContract(t *testing.T) { vfstest.Run(t, openOS) }

func TestOSRefusesMissingRoot(t *testing.T) {
	if _, err := vfs.NewOS(filepath.Join(t.TempDir(), "no")); !os.IsNotExist(err) {
		t.Fatalf("got %v, want not-exist", err)
	}
}

func TestOSDoesNotFollowLinksOutOfRoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	fsys, err := vfs.NewOS(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.OpenRead("link"); err == nil {
		t.Fatal("opened a file outside the root through a symbolic link")
	}
}

func TestOSGivesDescriptor(t *testing.T) {
	f, err := openOS(t).Create("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.Fd(); !ok {
		t.Fatal("a real file has no descriptor")
	}
}

// TestOSReadsWhatIsCachedAndWhatIsNot: a file that was written past the page cache
// is read from the device; the second time, and beyond the file's end, it is the
// same.
func TestOSReadsWhatIsCachedAndWhatIsNot(t *testing.T) {
	fsys := openOS(t)
	f, err := fsys.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := vfs.AlignedBytes(64 << 10)
	for i := range want {
		want[i] = byte(i / 5)
	}
	if _, err := f.WriteDirect(want, 0, false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, at := range []int{0, 4096, 60<<10 + 1} {
			got := make([]byte, 16<<10)
			n, err := f.ReadAt(got, int64(at))
			if n != min(len(got), len(want)-at) || (err == io.EOF) != (n < len(got)) || err != nil && err != io.EOF || !bytes.Equal(got[:n], want[at:at+n]) {
				t.Fatalf("read at %d: %d bytes, %v", at, n, err)
			}
		}
	}
	if n, err := f.ReadAt(make([]byte, 1), int64(len(want))); n != 0 || err != io.EOF {
		t.Fatalf("read at the end: %d bytes, %v", n, err)
	}
}

func TestOSReadAllocatesNothing(t *testing.T) {
	fsys := openOS(t)
	f, err := fsys.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := make([]byte, 4096)
	if _, err := f.WriteAt(p, 0); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { f.ReadAt(p, 0) }); n > 0 && !raceEnabled {
		t.Fatalf("%v allocations", n)
	}
}
