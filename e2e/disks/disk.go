package disks

import (
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"

	"strake/internal/vfs"
)

// Disk is one disk and what ails it.
type Disk struct {
	mu       sync.Mutex
	mem      *vfs.Mem      // guarded by mu
	fault    *vfs.Fault    // guarded by mu; over mem
	serving  *session      // guarded by mu; of the process that opened the disk last
	released chan struct{} // guarded by mu; calls hang until it is closed; nil: none does
}

func newDisk(mem *vfs.Mem) *Disk {
	return &Disk{mem: mem, fault: vfs.NewFault(mem)}
}

// Cut cuts the power of a disk whose process has ended: of what was not synced,
// each write survives with a chance of keepPercent (0 to 100), whole or as some of
// its sectors; see vfs.Mem.Crash. What ailed the disk has ended too.
func (d *Disk) Cut(r *rand.Rand, keepPercent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
	d.mem = d.mem.Crash(r, keepPercent)
	d.fault = vfs.NewFault(d.mem)
	d.serving = nil
}

// Mem is what is on the disk, past all that ails it: for rot and for looking.
func (d *Disk) Mem() *vfs.Mem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mem
}

// ReadOnly makes every call that would change the disk fail with EROFS.
func (d *Disk) ReadOnly() {
	d.hook(nil, func(op vfs.Op) error {
		if op.Kind.Mutates() {
			return syscall.EROFS
		}
		return nil
	})
}

// Hang makes every call wait until Heal or Cut.
func (d *Disk) Hang() {
	until := make(chan struct{})
	d.hook(until, func(vfs.Op) error {
		<-until
		return nil
	})
}

// Fill takes all room but so many bytes, as another user of the disk does, until
// Heal or Cut.
func (d *Disk) Fill(leave int64) { d.Mem().Occupy(leave) }

// Heal ends ReadOnly, Hang and Fill.
func (d *Disk) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
	d.fault.Heal()
	d.mem.Occupy(math.MaxInt64)
}

// hook has f called before each call; released is closed when that ends.
func (d *Disk) hook(released chan struct{}, f func(vfs.Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
	d.released = released
	d.fault.Hook(f)
}

// release lets go of calls that hang; called with mu held.
func (d *Disk) release() {
	if d.released != nil {
		close(d.released)
		d.released = nil
	}
}

// session gives the session of a process; a new one ends the one before, whose
// process has ended.
func (d *Disk) session(id uint64) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving != nil && d.serving.id == id {
		return d.serving
	}
	if d.serving != nil {
		d.serving.end()
	}
	d.serving = &session{id: id, fs: d.fault, open: map[uint64]io.Closer{}}
	return d.serving
}
