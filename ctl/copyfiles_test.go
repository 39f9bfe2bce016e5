package ctl

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strake/internal/errs"
)

func TestDirectoryComesAsTar(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("hello"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a", strings.Repeat("long", 30)), bytes.Repeat([]byte{1}, 5000), 0o644))
	must(t, os.Symlink("file", filepath.Join(dir, "a", "b", "link")))
	src, err := openSource(dir, nil)
	must(t, err)
	b, err := io.ReadAll(src)
	must(t, err)
	must(t, src.Close())
	if src.atLeast == 0 || src.atLeast > int64(len(b)) {
		t.Errorf("at least %d bytes were announced, %d came", src.atLeast, len(b))
	}
	found := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		found[h.Name] = string(body) + h.Linkname
	}
	if found["a/b/file"] != "hello" || found["a/b/link"] != "file" || len(found) != 6 {
		t.Errorf("got %d entries: %v", len(found), found)
	}
}

func TestSourceThatShrinksIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, make([]byte, 100_000), 0o644))
	alone, err := openSource(path, nil)
	must(t, err)
	packed, err := openSource(dir, nil)
	must(t, err)
	buf := make([]byte, 600)
	for _, src := range []source{alone, packed} {
		if _, err := io.ReadFull(src, buf); err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.Truncate(path, 50_000))
	for _, src := range []source{alone, packed} {
		_, err := io.ReadAll(src)
		if !errors.Is(err, errs.Conflict) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want a conflict that names the file", err)
		}
		must(t, src.Close())
	}
}

func TestSourceThatVanishesIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 100_000), 0o644))
	}
	src, err := openSource(dir, nil)
	must(t, err)
	if _, err := io.ReadFull(src, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	must(t, os.Remove(filepath.Join(dir, "b")))
	if _, err := io.ReadAll(src); !errors.Is(err, errs.NotFound) || !strings.Contains(err.Error(), filepath.Join(dir, "b")) {
		t.Errorf("got %v, want not-found that names the file", err)
	}
	must(t, src.Close())
	if _, err := openSource(filepath.Join(dir, "b"), nil); !errors.Is(err, errs.NotFound) {
		t.Errorf("got %v, want not-found", err)
	}
}

func TestClosingASourceEndsItsPacker(t *testing.T) {
	src, err := openSource(t.TempDir(), nil)
	must(t, err)
	must(t, src.Close()) // nothing was read
}

func TestTargetStaysThinAndAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	content := make([]byte, 3<<20)
	copy(content[hole+10:], "data")
	copy(content[2<<20:], "more")
	out, err := openTarget(path, nil, false)
	must(t, err)
	for at := 0; at < len(content); at += 1 << 20 {
		_, err := out.Write(content[at : at+1<<20])
		must(t, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name before it is complete")
	}
	must(t, out.Commit())
	got, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, content) {
		t.Error("the content differs")
	}
	if used := fileBlocks(t, path); used > 1<<20 {
		t.Errorf("%d bytes of disk for two blocks of data", used)
	}
}

func TestTargetIsNotOverwrittenUnasked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	if _, err := openTarget(path, nil, false); !errors.Is(err, errs.AlreadyExists) {
		t.Fatalf("got %v, want already-exists", err)
	}
	out, err := openTarget(path, nil, true)
	must(t, err)
	_, err = out.Write([]byte("half"))
	must(t, err)
	out.Abort()
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("an export that failed left %q", b)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("an export that failed left files: %v", names)
	}
	if _, err := openTarget(dir, nil, true); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("a directory: got %v", err)
	}
	if _, err := openTarget(filepath.Join(dir, "no", "out"), nil, true); !errors.Is(err, errs.NotFound) {
		t.Errorf("no such directory: got %v", err)
	}
}

func fileBlocks(t *testing.T, path string) uint64 {
	var m measure
	(&limitedFS{dir: path}).walk(&m)
	must(t, m.err)
	return m.used
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
