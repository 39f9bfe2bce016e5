package vfstest

import (
	"io"
	"math/rand/v2"
	"testing"

	"strake/internal/vfs"
)

const (
	randomCalls = 600
	randomSpan  = 200_000 // largest offset plus length, bytes
)

// testRandom makes random calls on one file and on a byte slice, and compares
// each answer and, at the end, the whole content.
func testRandom(t *testing.T, fsys vfs.FS) {
	r := rand.New(rand.NewPCG(1, 2))
	m := &model{t: t, r: r, f: create(t, fsys, "a")}
	calls := []func(){m.write, m.write, m.writev, m.read, m.readv, m.truncate, m.punch, m.sync}
	for range randomCalls {
		calls[r.IntN(len(calls))]()
	}
	equal(t, whole(t, m.f), m.want)
}

type model struct {
	t    *testing.T
	r    *rand.Rand
	f    vfs.File
	want []byte
}

// span gives a random range, mostly small and often aligned to sectors.
func (m *model) span() (off, n int64) {
	n = m.r.Int64N(1 << (1 + m.r.IntN(16)))
	off = m.r.Int64N(randomSpan - n)
	if m.r.IntN(2) == 0 {
		off &^= 511
	}
	return off, n
}

func (m *model) bytes(n int64) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(m.r.Uint32())
	}
	return p
}

func (m *model) put(p []byte, off int64) {
	if end := off + int64(len(p)); len(p) > 0 && end > int64(len(m.want)) {
		m.want = append(m.want, make([]byte, end-int64(len(m.want)))...)
	}
	if len(p) > 0 {
		copy(m.want[off:], p)
	}
}

func (m *model) write() {
	off, n := m.span()
	p := m.bytes(n)
	_, err := m.f.WriteAt(p, off)
	ok(m.t, err)
	m.put(p, off)
}

func (m *model) writev() {
	off, n := m.span()
	p := m.bytes(n)
	cut := m.r.Int64N(n + 1)
	_, err := m.f.WritevAt([][]byte{p[:cut], p[cut:]}, off)
	ok(m.t, err)
	m.put(p, off)
}

func (m *model) read() {
	off, n := m.span()
	p := make([]byte, n)
	got, err := m.f.ReadAt(p, off)
	m.check(p[:got], off, n, err)
}

func (m *model) readv() {
	off, n := m.span()
	p := make([]byte, n)
	cut := m.r.Int64N(n + 1)
	got, err := m.f.ReadvAt([][]byte{p[:cut], p[cut:]}, off)
	m.check(p[:got], off, n, err)
}

func (m *model) check(got []byte, off, n int64, err error) {
	m.t.Helper()
	size := int64(len(m.want))
	from, to := min(off, size), min(off+n, size)
	equal(m.t, got, m.want[from:to])
	if short := to-from < n; short && err != io.EOF || !short && err != nil {
		m.t.Fatalf("read %d at %d of %d gave %v", n, off, size, err)
	}
}

func (m *model) truncate() {
	size, _ := m.span()
	if m.r.IntN(2) == 0 {
		return // keep the file long most of the time
	}
	ok(m.t, m.f.Truncate(size))
	if size <= int64(len(m.want)) {
		m.want = m.want[:size:size]
		return
	}
	m.want = append(m.want, make([]byte, size-int64(len(m.want)))...)
}

func (m *model) punch() {
	off, n := m.span()
	ok(m.t, m.f.PunchHole(off, n))
	size := int64(len(m.want))
	clear(m.want[min(off, size):min(off+n, size)])
}

func (m *model) sync() { ok(m.t, m.f.Sync()) }
