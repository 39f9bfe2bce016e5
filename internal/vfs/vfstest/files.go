package vfstest

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"strake/internal/vfs"
)

func testReadAt(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	p := make([]byte, 4)
	if n, err := f.ReadAt(p, 0); n != 0 || err != io.EOF {
		t.Fatalf("an empty file gave %d, %v", n, err)
	}
	write(t, f, "012345", 0)
	for _, c := range []struct {
		off  int64
		want string
		err  error
	}{{0, "0123", nil}, {2, "2345", nil}, {3, "345", io.EOF}, {6, "", io.EOF}, {99, "", io.EOF}} {
		n, err := f.ReadAt(p, c.off)
		if string(p[:n]) != c.want || err != c.err {
			t.Fatalf("at %d: got %q, %v, want %q, %v", c.off, p[:n], err, c.want, c.err)
		}
	}
}

func testWriteAt(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	write(t, f, "end", 100_000)
	write(t, f, "start", 0)
	write(t, f, "", 500_000)
	want := append([]byte("start"), make([]byte, 100_000-5)...)
	equal(t, whole(t, f), append(want, "end"...))
	write(t, f, "START", 0)
	if size, err := f.Size(); err != nil || size != 100_003 {
		t.Fatalf("an overwrite made the size %d, %v", size, err)
	}
}

func testVectors(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	var out [][]byte
	for i := range 2500 { // more than one system call takes
		out = append(out, bytes.Repeat([]byte{byte(i)}, i%7))
	}
	want := bytes.Join(out, nil)
	n, err := f.WritevAt(out, 10)
	ok(t, err)
	if n != len(want) {
		t.Fatalf("wrote %d bytes, want %d", n, len(want))
	}
	in := make([][]byte, 1700)
	for i := range in {
		in[i] = make([]byte, i%11)
	}
	if n, err = f.ReadvAt(in, 10); n != len(want) || err != io.EOF {
		t.Fatalf("read %d, %v, want %d, EOF", n, err, len(want))
	}
	equal(t, bytes.Join(in, nil)[:n], want)
	if n, err = f.ReadvAt([][]byte{make([]byte, n-1), {}, make([]byte, 1)}, 10); n != len(want) || err != nil {
		t.Fatalf("an exact read gave %d, %v", n, err)
	}
	if n, err = f.ReadvAt(nil, 0); n != 0 || err != nil {
		t.Fatalf("an empty read gave %d, %v", n, err)
	}
}

func testWriteDirect(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	whole64 := bytes.Repeat([]byte("direct__"), 8<<10) // memory of its own pages
	model := make([]byte, 0, 256<<10)
	for _, c := range []struct {
		from, to int
		off      int64
		durable  bool
	}{{0, 64 << 10, 4096, false}, {0, 8192, 128 << 10, true}, {1, 4097, 8192, false}, {0, 100, 3, true}, {0, 0, 1 << 20, true}, {4096, 8192, 0, true}} {
		n, err := f.WriteDirect(whole64[c.from:c.to], c.off, c.durable)
		ok(t, err)
		if n != c.to-c.from {
			t.Fatalf("wrote %d bytes, want %d", n, c.to-c.from)
		}
		if end := int(c.off) + n; n > 0 {
			model = model[:max(len(model), end)]
			copy(model[c.off:], whole64[c.from:c.to])
		}
		equal(t, whole(t, f), model)
	}
	ok(t, fsys.Remove("a"))
	if _, err := f.WriteDirect(whole64[:4096], 0, false); err != nil {
		t.Fatalf("a removed file that is open takes no direct write: %v", err)
	}
	_, err := f.WriteDirect(whole64[:4096], -4096, false)
	is(t, err, nil)
}

// testSector: what lies in the sectors beside a direct write stays.
func testSector(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	n := int(f.Sector())
	if n < 512 || n > vfs.DirectAlign || n&(n-1) != 0 {
		t.Fatalf("a sector of %d bytes", n)
	}
	write(t, f, strings.Repeat("x", 4*vfs.DirectAlign), 0)
	ok(t, f.Sync())
	model := bytes.Repeat([]byte("x"), 4*vfs.DirectAlign)
	p := vfs.AlignedBytes(2 * vfs.DirectAlign)
	for i := range p {
		p[i] = 'd'
	}
	for _, c := range []struct{ at, n int }{{n, n}, {3 * n, 2*vfs.DirectAlign - n}, {4*vfs.DirectAlign - n, n}} {
		_, err := f.WriteDirect(p[:c.n], int64(c.at), true)
		ok(t, err)
		copy(model[c.at:], p[:c.n])
		equal(t, whole(t, f), model)
	}
}

func testSync(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	ok(t, f.Sync())
	write(t, f, strings.Repeat("x", 10_000), 0)
	ok(t, f.StartWriteback(0, 4096))
	ok(t, f.StartWriteback(4096, 0))
	ok(t, f.StartWriteback(1<<20, 1<<20))
	ok(t, f.Sync())
	ok(t, f.Sync())
	same(t, string(whole(t, f)), strings.Repeat("x", 10_000))
}

func testTruncate(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	write(t, f, strings.Repeat("x", 10_000), 0)
	ok(t, f.Truncate(5_000))
	ok(t, f.Truncate(20_000))
	equal(t, whole(t, f), append(bytes.Repeat([]byte("x"), 5_000), make([]byte, 15_000)...))
	ok(t, f.Truncate(3))
	write(t, f, "y", 5)
	same(t, string(whole(t, f)), "xxx\x00\x00y")
	is(t, f.Truncate(-1), nil)
}

func testPunchHole(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	write(t, f, strings.Repeat("x", 20_000), 0)
	ok(t, f.PunchHole(1, 9_999))
	ok(t, f.PunchHole(15_000, 0))
	ok(t, f.PunchHole(19_000, 1<<20))
	ok(t, f.PunchHole(20_100, 10))
	want := append([]byte("x"), make([]byte, 9_999)...)
	want = append(want, bytes.Repeat([]byte("x"), 9_000)...)
	equal(t, whole(t, f), append(want, make([]byte, 1_000)...))
}

func testBadOffsets(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	write(t, f, "one", 0)
	p := make([]byte, 1)
	_, err := f.ReadAt(p, -1)
	is(t, err, nil)
	_, err = f.WriteAt(p, -1)
	is(t, err, nil)
	_, err = f.ReadvAt([][]byte{p}, -1)
	is(t, err, nil)
	_, err = f.WritevAt([][]byte{p}, -1)
	is(t, err, nil)
	is(t, f.PunchHole(-1, 1), nil)
	is(t, f.PunchHole(0, -1), nil)
	is(t, f.StartWriteback(-1, 1), nil)
	same(t, string(whole(t, f)), "one")
}

func testClosed(t *testing.T, fsys vfs.FS) {
	f := create(t, fsys, "a")
	ok(t, f.Close())
	p := make([]byte, 1)
	_, err := f.ReadAt(p, 0)
	is(t, err, os.ErrClosed)
	_, err = f.WriteAt(p, 0)
	is(t, err, os.ErrClosed)
	_, err = f.ReadvAt([][]byte{p}, 0)
	is(t, err, os.ErrClosed)
	_, err = f.WritevAt([][]byte{p}, 0)
	is(t, err, os.ErrClosed)
	is(t, f.Sync(), os.ErrClosed)
	is(t, f.Truncate(1), os.ErrClosed)
	is(t, f.PunchHole(0, 1), os.ErrClosed)
	_, err = f.Size()
	is(t, err, nil)
	is(t, f.Close(), os.ErrClosed)
}

func testParallel(t *testing.T, fsys vfs.FS) {
	const writers, chunk = 8, 5_000
	f := create(t, fsys, "a")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			p := bytes.Repeat([]byte{byte(w + 1)}, chunk)
			for i := range 4 {
				if _, err := f.WriteAt(p, int64((i*writers+w)*chunk)); err != nil {
					t.Error(err)
				}
			}
			if err := f.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var want []byte
	for i := range 4 * writers {
		want = append(want, bytes.Repeat([]byte{byte(i%writers + 1)}, chunk)...)
	}
	equal(t, whole(t, f), want)
}
