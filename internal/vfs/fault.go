package vfs

import (
	"math"
	"sync"
)

// Fault wraps a file system and makes chosen calls fail, hang, or find the
// power cut. It counts every method of FS and File except Close and Fd, in the
// order in which they begin, starting with 1. A failed call does not reach the
// file system below, except that a failed Sync loses what was un-synced in a Mem. All methods are safe for concurrent use.
type Fault struct {
	below FS

	mu    sync.Mutex // guards all below
	count int64
	at    map[int64]error
	from  int64 // first call that fails with all
	all   error
	cutAt int64
	cut   bool
	hook  func(Op) error
}

var _ FS = (*Fault)(nil)

// NewFault wraps below, without any fault yet.
func NewFault(below FS) *Fault {
	return &Fault{below: below, at: map[int64]error{}, from: math.MaxInt64, cutAt: math.MaxInt64}
}

// Ops is the number of calls so far.
func (f *Fault) Ops() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// FailAt makes call n, counted from the start, fail with err (syscall.EIO,
// syscall.ENOSPC, …). Several calls may be named.
func (f *Fault) FailAt(n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[n] = err
}

// FailFrom makes call n and every later one fail with err.
func (f *Fault) FailFrom(n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.all = n, err
}

// CutAt cuts the power as call n begins: it and all later ones fail with
// ErrPowerCut, and a Mem below is cut too, so that its Crash tells what is left.
func (f *Fault) CutAt(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutAt = n
}

// Cut cuts the power now. See CutAt.
func (f *Fault) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.powerOff()
}

// powerOff is called with mu held.
func (f *Fault) powerOff() {
	if f.cut {
		return
	}
	f.cut = true
	if m, ok := f.below.(interface{ Cut() }); ok {
		m.Cut()
	}
}

// Hook has fn called before each call, without a lock: it may block, to model a
// hang, and may fail the call by returning an error. A nil fn removes the hook.
func (f *Fault) Hook(fn func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = fn
}

// Heal takes back FailAt, FailFrom and the hook. A power cut stays.
func (f *Fault) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.at)
	f.from, f.all, f.hook = math.MaxInt64, nil, nil
}

// begin counts a call and gives the error that it shall fail with.
func (f *Fault) begin(kind OpKind, name string) error {
	op, hook, err := f.next(kind, name)
	if err == nil && hook != nil {
		err = hook(op)
	}
	if err != nil {
		return pathError(kind.String(), name, err)
	}
	return nil
}

func (f *Fault) next(kind OpKind, name string) (Op, func(Op) error, error) {
	if clean, err := Clean(name); err == nil {
		name = clean
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	op := Op{N: f.count, Kind: kind, Path: name}
	if f.count >= f.cutAt {
		f.powerOff()
	}
	switch {
	case f.cut:
		return op, nil, ErrPowerCut
	case f.at[f.count] != nil:
		return op, nil, f.at[f.count]
	case f.count >= f.from && f.all != nil:
		return op, nil, f.all
	}
	return op, f.hook, nil
}
