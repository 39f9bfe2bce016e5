package replica

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/vfs"
)

var crashOptions = Options{
	ID: "a:1", Timing: Timing{LogFile: 32 << 10, Watchdog: time.Minute}, Fatal: func(error) {}, Logger: loggerOr(nil),
}

// promised is what a disk acknowledged.
type promised struct {
	entries  map[uint64]string // that must be there
	term     uint64            // at least
	snapshot uint64            // the newest covers at least so many entries
}

// script does to a disk what raft does, until the first error, and notes what
// was acknowledged. What is being deleted is no longer promised.
func script(d *disk, p *promised) error {
	term := uint64(1)
	last := uint64(0)
	store := func(n int) error {
		var batch []*raft.Log
		for i := range n {
			index := last + uint64(i) + 1
			data := fmt.Sprintf("%d/%d %s", index, term, bytes.Repeat([]byte{'x'}, 2000))
			batch = append(batch, &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: []byte(data)})
		}
		if err := d.guard.StoreLogs(batch); err != nil {
			return err
		}
		for _, e := range batch {
			p.entries[e.Index], last = string(e.Data), e.Index
		}
		return nil
	}
	remove := func(from, to uint64) error {
		for i := from; i <= to; i++ {
			delete(p.entries, i)
		}
		return d.guard.DeleteRange(from, to)
	}
	snapshot := func() error {
		k, err := d.snaps.Create(1, last, term, configurationOf([]string{"a:1"}), 1, nil)
		if err != nil {
			return err
		}
		if _, err := k.Write(bytes.Repeat([]byte("state "), 2000)); err != nil {
			return err
		}
		if err := k.Close(); err != nil {
			return err
		}
		p.snapshot = last
		return nil
	}
	for round := range 4 {
		if err := d.guard.SetUint64([]byte("CurrentTerm"), term); err != nil {
			return err
		}
		p.term = term
		for range 4 {
			if err := store(3); err != nil {
				return err
			}
		}
		if err := remove(last-1, last); err != nil { // a follower that diverged
			return err
		}
		last -= 2
		term++
		if err := store(1 + round); err != nil {
			return err
		}
		if err := snapshot(); err != nil {
			return err
		}
		if err := remove(1, last-3); err != nil {
			return err
		}
	}
	return nil
}

// verify opens what a crash left and looks for what was promised.
func verify(t *testing.T, fs vfs.FS, p *promised) {
	t.Helper()
	opts := crashOptions
	opts.FS = fs
	d, err := openDisk(opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer d.close()
	for index, data := range p.entries {
		var e raft.Log
		if err := d.guard.GetLog(index, &e); err != nil || string(e.Data) != data {
			t.Fatalf("entry %d: %v, %.20q, want %.20q", index, err, e.Data, data)
		}
	}
	if p.term == formTerm && len(p.entries) == 0 && !d.state && !d.lost {
		return // the making of the group was cut short, and can be repeated
	}
	if term, err := d.guard.GetUint64([]byte("CurrentTerm")); err != nil || term < p.term {
		t.Fatalf("term %d, %v, want %d", term, err, p.term)
	}
	if newest, err := d.snaps.newestIndex(); err != nil || newest < p.snapshot {
		t.Fatalf("snapshot %d, %v, want %d", newest, err, p.snapshot)
	}
	if p.term > 0 && (!d.state || d.marker.Member != "a:1") {
		t.Fatalf("state %v, marker %+v", d.state, d.marker)
	}
	if d.lost {
		t.Fatal("it looks wiped")
	}
}

// run runs the script on a disk of which call n finds the power cut.
func run(mem *vfs.Mem, prepare func(*vfs.Fault)) (*promised, int64, error) {
	fault := vfs.NewFault(mem)
	prepare(fault)
	p := &promised{entries: map[uint64]string{}}
	opts := crashOptions
	opts.FS = fault
	d, err := openDisk(opts)
	if err == nil {
		err = script(d, p)
		d.close()
	}
	return p, fault.Ops(), err
}

// everyCall runs do for each call of the script, or for some when the test
// shall be short.
func everyCall(t *testing.T, do func(n int64)) {
	t.Helper()
	mem := vfs.NewMem(vfs.MemOptions{})
	p, calls, err := run(mem, func(*vfs.Fault) {})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, mem.Crash(nil, 0), p)
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for n := int64(1); n <= calls; n += step {
		do(n)
	}
}

func TestWhatWasAcknowledgedOutlivesAnErrorOfAnyCall(t *testing.T) {
	everyCall(t, func(n int64) {
		mem := vfs.NewMem(vfs.MemOptions{})
		p, _, _ := run(mem, func(f *vfs.Fault) { f.FailAt(n, syscall.EIO) })
		t.Run(fmt.Sprintf("call %d", n), func(t *testing.T) { verify(t, mem.Crash(nil, 0), p) })
	})
}

func TestWhatWasAcknowledgedOutlivesAPowerCutAtAnyCall(t *testing.T) {
	everyCall(t, func(n int64) {
		mem := vfs.NewMem(vfs.MemOptions{})
		p, _, _ := run(mem, func(f *vfs.Fault) { f.CutAt(n) })
		for _, keep := range []int{0, 50, 100} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(keep)))
			after := mem.Crash(rng, keep)
			t.Run(fmt.Sprintf("call %d keep %d", n, keep), func(t *testing.T) { verify(t, after, p) })
		}
	})
}
