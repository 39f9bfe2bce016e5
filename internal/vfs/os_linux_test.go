package vfs_test

import (
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
