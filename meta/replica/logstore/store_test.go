package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/meta/replica/smallfile"
)

const testLength = 4 << 10

// catalogue keeps the list in a file beside the log.
type catalogue struct {
	fs   vfs.FS
	list []uint64
}

func openCatalogue(fs vfs.FS) (*catalogue, error) {
	c := &catalogue{fs: fs}
	b, err := smallfile.Read(fs, "list")
	for ; len(b) >= 8; b = b[8:] {
		c.list = append(c.list, binary.LittleEndian.Uint64(b))
	}
	return c, err
}

func (c *catalogue) Files() []uint64 { return c.list }

func (c *catalogue) SetFiles(list []uint64) error {
	var b []byte
	for _, first := range list {
		b = binary.LittleEndian.AppendUint64(b, first)
	}
	if err := smallfile.Write(c.fs, "list", b); err != nil {
		return err
	}
	c.list = list
	return nil
}

// openLog opens the catalogue, then the log.
func openLog(fs vfs.FS) (*Store, error) {
	list, err := openCatalogue(fs)
	if err != nil {
		return nil, err
	}
	return Open(fs, "log", testLength, list)
}

func open(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	if err := fs.MkdirAll("log"); err != nil {
		t.Fatal(err)
	}
	s, err := openLog(fs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entry(index, term uint64, n int) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(index), byte(term)}, n)}
}

// model is what the log must hold: entries by index, from first to last.
type model struct {
	first, last uint64
	terms       map[uint64]uint64
	sizes       map[uint64]int
	deleting    bool // a removal is under way: its entries may be gone or there
}

func (m *model) check(t testing.TB, s *Store, mayBegin bool) {
	t.Helper()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	if last != m.last || first != m.first && !(mayBegin && first < m.first) {
		t.Fatalf("entries %d to %d, want %d to %d", first, last, m.first, m.last)
	}
	for i := m.first; i <= m.last && i > 0; i++ {
		var got raft.Log
		if err := s.GetLog(i, &got); err != nil {
			t.Fatal(err)
		}
		if want := entry(i, m.terms[i], m.sizes[i]); got.Index != i || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("entry %d: got %+v, want %+v", i, got, want)
		}
	}
	for _, i := range []uint64{0, first - 1, last + 1} {
		if err := s.GetLog(i, &raft.Log{}); i+1 > 0 && !errors.Is(err, raft.ErrLogNotFound) && !(i >= first && i <= last) {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// step changes store and model alike, at random; the model follows what was acknowledged.
func (m *model) step(s *Store, r *rand.Rand) error {
	m.deleting = true
	switch n := r.IntN(10); {
	case n == 0 && m.last > 0: // the end goes
		from := m.first + r.Uint64N(m.last-m.first+1)
		err := s.DeleteRange(from, m.last)
		if err == nil {
			if m.last = from - 1; m.last < m.first {
				m.first, m.last = 0, 0
			}
		}
		return err
	case n == 1 && m.last > m.first: // the beginning goes
		to := m.first + r.Uint64N(m.last-m.first)
		err := s.DeleteRange(m.first, to)
		if err == nil {
			m.first = to + 1
		}
		return err
	}
	m.deleting = false
	var batch []*raft.Log
	next := m.last + 1
	if m.last == 0 {
		next += r.Uint64N(5)
	}
	for i := range 1 + r.Uint64N(4) {
		m.terms[next+i], m.sizes[next+i] = r.Uint64N(100), r.IntN(500)
		batch = append(batch, entry(next+i, m.terms[next+i], m.sizes[next+i]))
	}
	err := s.StoreLogs(batch)
	if err == nil {
		if m.last == 0 {
			m.first = next
		}
		m.last = next + uint64(len(batch)) - 1
	}
	return err
}

func newModel() *model { return &model{terms: map[uint64]uint64{}, sizes: map[uint64]int{}} }

func TestRandomHistoriesReadBackOverRestarts(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		fs, m := vfs.NewMem(vfs.MemOptions{}), newModel()
		s := open(t, fs)
		for i := range 80 {
			if err := m.step(s, r); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			m.check(t, s, false)
			if r.IntN(8) == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, fs)
				m.check(t, s, true)
				if m.last > 0 { // what was cut off in the oldest file is back
					m.first = s.first
				}
			}
		}
		s.Close()
	}
}

// TestNothingAcknowledgedIsLostByACutOrAnErrorOfAnyCall: the n-th call of the disk fails,
// or is the last, for every n of a history; afterwards everything acknowledged is there,
// and of the batch under way all or nothing that matters: a prefix.
func TestNothingAcknowledgedIsLostByACutOrAnErrorOfAnyCall(t *testing.T) {
	history := func(fs vfs.FS) *model {
		r, m := rand.New(rand.NewPCG(7, 7)), newModel()
		if fs.MkdirAll("log") != nil || fs.SyncDir(".") != nil {
			return m
		}
		s, err := openLog(fs)
		if err != nil {
			return m
		}
		defer s.Close()
		for range 60 {
			if err := m.step(s, r); err != nil {
				break // m holds what was acknowledged
			}
		}
		return m
	}
	whole := vfs.NewFault(vfs.NewMem(vfs.MemOptions{}))
	history(whole)
	for n := int64(1); n <= whole.Ops(); n++ {
		for _, cut := range []bool{true, false} {
			mem := vfs.NewMem(vfs.MemOptions{})
			fault := vfs.NewFault(mem)
			if cut {
				fault.CutAt(n)
			} else {
				fault.FailAt(n, syscall.EIO)
			}
			m := history(fault)
			for _, keep := range []int{0, 50, 100} {
				after := mem.Crash(rand.New(rand.NewPCG(uint64(n), uint64(keep))), keep)
				if after.MkdirAll("log") != nil {
					continue
				}
				verifyAfter(t, fmt.Sprintf("call %d, cut %v, keep %d", n, cut, keep), after, m)
			}
		}
	}
}

// verifyAfter wants what the model holds, but for what a change under way may have
// taken: the end or the beginning.
func verifyAfter(t *testing.T, what string, fs vfs.FS, m *model) {
	t.Helper()
	s, err := openLog(fs)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer s.Close()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	for i := m.first; i <= m.last && i > 0; i++ {
		var got raft.Log
		err := s.GetLog(i, &got)
		if err != nil && (i < first || i > last) && m.deleting {
			continue
		}
		if want := entry(i, m.terms[i], m.sizes[i]); err != nil || got.Term != want.Term || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s: entry %d of %d to %d: %v, got %+v", what, i, m.first, m.last, err, got)
		}
	}
}

func TestRotIsNoTornBatch(t *testing.T) {
	fs := vfs.NewMem(vfs.MemOptions{})
	s := open(t, fs)
	for i := uint64(1); i <= 4; i++ {
		if err := s.StoreLog(entry(i, 1, 20)); err != nil {
			t.Fatal(err)
		}
	}
	name := "log/" + s.files[0].name
	offsets := append([]int64(nil), s.files[0].offsets...)
	s.Close()
	for i := range 3 { // the last entry could be a torn batch, those before can't
		f, err := fs.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		at := offsets[i] + 20
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		flipped := []byte{b[0] ^ 1}
		f.WriteAt(flipped, at)
		if _, err := openLog(fs); errs.KindOf(err) != errs.Corrupt {
			t.Errorf("entry %d has rotted: %v", i+1, err)
		}
		f.WriteAt(b[:], at)
		f.Close()
	}
	s = open(t, fs)
	defer s.Close()
	if last, _ := s.LastIndex(); last != 4 {
		t.Errorf("last entry %d", last)
	}
}

func TestAFileThatIsMissingIsNoticed(t *testing.T) {
	fs := vfs.NewMem(vfs.MemOptions{})
	s := open(t, fs)
	for i := uint64(1); i <= 60; i++ {
		if err := s.StoreLog(entry(i, 1, 200)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.files) < 4 {
		t.Fatalf("%d files", len(s.files))
	}
	newest := s.files[len(s.files)-1].name
	s.Close()
	if err := fs.Remove("log/" + newest); err != nil {
		t.Fatal(err)
	}
	if _, err := openLog(fs); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("without its newest file: %v", err)
	}
}

func TestReadersMayReadWhileTheBeginningGoes(t *testing.T) {
	s := open(t, vfs.NewMem(vfs.MemOptions{}))
	defer s.Close()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				last, _ := s.LastIndex()
				var e raft.Log
				if err := s.GetLog(last, &e); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
					t.Error(err)
				}
			}
		})
	}
	for i := uint64(1); i <= 300; i++ {
		if err := s.StoreLog(entry(i, 1, 200)); err != nil {
			t.Error(err)
		}
		if i%50 == 0 {
			if err := s.DeleteRange(1, i-5); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	readers.Wait()
}

// frozen is a file of version 1: entries 5 and 6 in two batches.
const frozen = "testdata/log.v1"

func frozenBytes() []byte {
	b := encodeHeader(5)
	b = appendRecord(b, &raft.Log{Index: 5, Term: 2, Type: raft.LogNoop, Extensions: []byte("ext")}, fileHeader)
	return appendRecord(b, &raft.Log{Index: 6, Term: 2, Type: raft.LogCommand, Data: []byte("data")}, int64(len(b)))
}

func TestAFileOfVersion1IsRead(t *testing.T) {
	want, err := os.ReadFile(frozen)
	if err != nil || !bytes.Equal(want, frozenBytes()) {
		t.Fatalf("the format changed (%v): now %x", err, frozenBytes())
	}
	fs := vfs.NewMem(vfs.MemOptions{})
	fs.MkdirAll("log")
	f, err := fs.Create("log/" + nameOf(5))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt(append(want, make([]byte, 64)...), 0)
	f.Close()
	if err := (&catalogue{fs: fs}).SetFiles([]uint64{5}); err != nil {
		t.Fatal(err)
	}
	s := open(t, fs)
	defer s.Close()
	var e raft.Log
	if err := s.GetLog(5, &e); err != nil || e.Type != raft.LogNoop || string(e.Extensions) != "ext" {
		t.Errorf("got %+v, %v", e, err)
	}
	if err := s.GetLog(6, &e); err != nil || string(e.Data) != "data" || e.Term != 2 {
		t.Errorf("got %+v, %v", e, err)
	}
}

// The newest file of a newer program is refused, and left as it is: it is no torn
// batch, whose entries nobody acknowledged.
func TestAFileOfAnotherVersionIsRefused(t *testing.T) {
	fs := vfs.NewMem(vfs.MemOptions{})
	fs.MkdirAll("log")
	f, err := fs.Create("log/" + nameOf(5))
	if err != nil {
		t.Fatal(err)
	}
	alien := bytes.Clone(frozenBytes())
	alien[len(magic)]++
	alien = alien[:fileHeader+8]
	f.WriteAt(append(alien, make([]byte, 64)...), 0)
	f.Close()
	if err := (&catalogue{fs: fs}).SetFiles([]uint64{5}); err != nil {
		t.Fatal(err)
	}
	if s, err := openLog(fs); errs.KindOf(err) != errs.Version {
		t.Fatalf("got %v, %v", s, err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(frozenBytes()[fileHeader:], uint(3))
	f.Fuzz(func(t *testing.T, b []byte, bit uint) {
		e, batch, size, err := decodeRecord(b)
		if err != nil || size == 0 {
			return
		}
		again := appendRecord(nil, &e, batch)
		got, _, _, err := decodeRecord(again)
		if err != nil || got.Index != e.Index || got.Term != e.Term || !bytes.Equal(got.Data, e.Data) || !bytes.Equal(got.Extensions, e.Extensions) {
			t.Fatalf("%+v does not round-trip: %+v, %v", e, got, err)
		}
		length := recordFixed + len(e.Extensions) + len(e.Data)
		again[int(bit/8)%length] ^= 1 << (bit % 8)
		if damaged, _, size, err := decodeRecord(again); err == nil && size > 0 {
			t.Fatalf("bit %d flipped is taken: %+v", bit, damaged)
		}
	})
}
