package calibrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/vfs"
)

const (
	// workers is how many pieces are at the device at a time.
	workers = 16
	// fileBytes is how long the file is at most that is written and read.
	fileBytes = 128 << 20
	// long and short are the pieces, in bytes.
	long, short = sched.Quantum, layout.BlockSize
)

// Result is what a device did a second.
type Result struct {
	ReadBytes, WriteBytes int64 // in pieces of 256 KiB; what was written is durable
	ReadOps, WriteOps     int64 // of 4 KiB
	Took                  time.Duration
}

// Rate is what admission may count on: of reads and writes whichever is slower.
func (r Result) Rate() mclock.Rate {
	return mclock.Rate{Bytes: min(r.ReadBytes, r.WriteBytes), Ops: min(r.ReadOps, r.WriteOps)}
}

// File is a file on the device that holds nothing; *store.Trial is one.
type File interface {
	Size() int64
	Write(p []byte, off int64, durable bool) error
	Read(p []byte, off int64) error
	Sync() error
	Close() error
}

// Device is what is measured.
type Device struct {
	// New makes a file of so many bytes, or fewer once enough says so.
	New   func(size int64, enough func() bool) (File, error)
	Sched sched.Scheduler
}

// Run measures for at most so long, or until ctx ends. Errors: NoSpace, those of the
// device and the scheduler.
func Run(ctx context.Context, d Device, most time.Duration) (r Result, err error) {
	begun := time.Now()
	phase := most / 5 // the fifth for the file's making and what is under way at a phase's end
	trial, err := d.New(fileBytes, func() bool { return time.Since(begun) > phase })
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, trial.Close()) }()
	half := trial.Size() / 2 / long * long
	m := meter{ctx: ctx, dev: d, trial: trial, length: phase}
	r.WriteBytes, _, err = m.measure(err, run{write: true, piece: long, from: 0, to: max(half, short), again: true})
	_, r.WriteOps, err = m.measure(err, run{write: true, piece: short, from: half, to: trial.Size(), again: true})
	r.ReadBytes, _, err = m.measure(err, run{piece: long, from: 0, to: max(half, short)})
	_, r.ReadOps, err = m.measure(err, run{piece: short, from: half, to: trial.Size()})
	r.Took = time.Since(begun)
	return r, err
}

// run is one phase's work: pieces of a part of the file, once or again and again.
type run struct {
	write    bool
	again    bool
	piece    int
	from, to int64
}

// meter runs phases.
type meter struct {
	ctx    context.Context
	dev    Device
	trial  File
	length time.Duration
}

// measure runs a phase and gives what went through the device a second.
func (m *meter) measure(before error, r run) (bytes, ops int64, err error) {
	if before != nil {
		return 0, 0, before
	}
	if err := m.ctx.Err(); err != nil {
		return 0, 0, err
	}
	was, begun := m.moved(r.write), time.Now()
	own, err := m.pieces(r, begun.Add(m.length))
	if err == nil && r.write {
		err = m.trial.Sync()
	}
	now, seconds := m.moved(r.write), max(time.Since(begun), time.Microsecond).Seconds()
	// A scheduler that counts nothing leaves what was done here.
	bytes, ops = max(own*int64(r.piece), now.Bytes-was.Bytes), max(own, now.Ops-was.Ops)
	return int64(float64(bytes) / seconds), int64(float64(ops) / seconds), err
}

// moved is what the device has read or written in its scheduler's turns.
func (m *meter) moved(write bool) (sum mclock.Rate) {
	for _, f := range m.dev.Sched.Stats().Flows {
		if write {
			sum.Bytes, sum.Ops = sum.Bytes+int64(f.WroteBytes), sum.Ops+int64(f.Writes)
		} else {
			sum.Bytes, sum.Ops = sum.Bytes+int64(f.ReadBytes), sum.Ops+int64(f.Reads)
		}
	}
	return sum
}

// pieces has workers do the phase's pieces until it is over, and gives how many.
func (m *meter) pieces(r run, end time.Time) (int64, error) {
	var wg sync.WaitGroup
	var next, done atomic.Int64
	var once sync.Once
	var failed error
	for range workers {
		wg.Go(func() {
			b := vfs.AlignedBytes(r.piece)
			rand.NewChaCha8([32]byte{}).Read(b) // not zeros: some devices store none
			for time.Now().Before(end) {
				at, ok := r.place(next.Add(1) - 1)
				if !ok {
					return
				}
				if err := m.piece(r, b[:min(int64(r.piece), r.to-at)], at); err != nil {
					once.Do(func() { failed = err })
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load(), failed
}

// stride spreads short pieces over the file, so that neighbours in time are none in
// place; it has no factor in common with any count of pieces that is a power of two.
const stride = 1021

// place is where the n-th piece goes; false: all have been.
func (r *run) place(n int64) (at int64, ok bool) {
	count := max(1, (r.to-r.from)/int64(r.piece))
	if n >= count && !r.again {
		return 0, false
	}
	if r.piece == short {
		n *= stride
	}
	return r.from + n%count*int64(r.piece), true
}

func (m *meter) piece(r run, b []byte, at int64) (err error) {
	tag := sched.Tag{Class: sched.TrialKey.Class, Tenant: sched.TrialKey.Tenant, Write: r.write, Bytes: len(b)}
	turn := m.dev.Sched.Do(m.ctx, tag, func() {
		if r.write {
			err = m.trial.Write(b, at, false)
		} else {
			err = m.trial.Read(b, at)
		}
	})
	return errors.Join(turn, err)
}
