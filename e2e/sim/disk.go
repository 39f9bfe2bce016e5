package sim

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/e2e/sim/ordered"
	"strake/internal/layout"
	"strake/internal/vfs"
)

const (
	diskBytes = 64 << 20
	indexDir  = "index"
	leastLog  = 256 << 10 // of the store's log
)

// disk is a device's medium: the index's files in one Mem (or the index itself,
// where it is not Pebble), all others in another.
type disk struct {
	data, index *vfs.Mem
	ordered     *ordered.Disk
	fault       *vfs.Fault // in front of data
}

func newDisk() *disk {
	d := &disk{data: vfs.NewMem(vfs.MemOptions{Capacity: diskBytes}), index: vfs.NewMem(vfs.MemOptions{Capacity: diskBytes}), ordered: ordered.NewDisk()}
	d.fault = vfs.NewFault(d.data)
	return d
}

// after is the disk that a power cut at this moment leaves; d goes on. The index
// comes first: whatever the store's mover does meanwhile, data is never older.
func (d *disk) after(rng *rand.Rand, keepPercent int) *disk {
	n := &disk{ordered: d.ordered.After(), index: d.index.CrashClone(rand.New(rand.NewPCG(uint64(keepPercent), 3)), keepPercent)}
	n.data = d.data.CrashClone(rng, keepPercent)
	n.fault = vfs.NewFault(n.data)
	return n
}

// fs is the disk as a store sees it.
func (d *disk) fs() vfs.FS { return split{d.fault, d.index} }

// split sends the index's files to a file system of their own.
type split struct{ data, index vfs.FS }

func (s split) of(path string) vfs.FS {
	if path == indexDir || strings.HasPrefix(path, indexDir+"/") {
		return s.index
	}
	return s.data
}

func (s split) Create(p string) (vfs.File, error)   { return s.of(p).Create(p) }
func (s split) Open(p string) (vfs.File, error)     { return s.of(p).Open(p) }
func (s split) OpenRead(p string) (vfs.File, error) { return s.of(p).OpenRead(p) }
func (s split) Remove(p string) error               { return s.of(p).Remove(p) }
func (s split) Rename(from, to string) error        { return s.of(from).Rename(from, to) }
func (s split) Link(from, to string) error          { return s.of(from).Link(from, to) }
func (s split) MkdirAll(p string) error             { return s.of(p).MkdirAll(p) }
func (s split) List(p string) ([]string, error)     { return s.of(p).List(p) }
func (s split) Stat(p string) (fs.FileInfo, error)  { return s.of(p).Stat(p) }
func (s split) Lock(p string) (vfs.Lock, error)     { return s.of(p).Lock(p) }
func (s split) Usage() (vfs.Usage, error)           { return s.data.Usage() }

// SyncDir syncs the root in both.
func (s split) SyncDir(p string) error {
	if p == "." {
		if err := s.index.SyncDir(p); err != nil {
			return err
		}
	}
	return s.of(p).SyncDir(p)
}

// Plant keeps what is dear to make and the same in every seed: formatted disks.
// One thread at a time may use it.
type Plant struct{ disks map[diskKey]*disk }

type diskKey struct {
	server int
	stores storeKind
}

// storeKind is how a seed's stores are set up.
type storeKind struct {
	mode   storeMode
	pebble bool // for an index; else e2e/sim/ordered
}

// storeMode is how stores treat small appends.
type storeMode uint8

const (
	modeData  storeMode = iota // no log: all units go to the data files
	modeLog                    // a log that hardly ever fills
	modeMover                  // the smallest log: it is emptied all the time
	modes
)

// open opens a disk's store.
func (k storeKind) open(d *disk, clock func() time.Duration) (*store.Store, error) {
	o := store.Options{LogBytes: leastLog, HeaderCacheBytes: 32 << 10, Clock: clock}
	if !k.pebble {
		o.Engine = d.ordered.Open
	}
	switch k.mode {
	case modeData:
		o.SmallAppend = 1
	case modeLog:
		o.LogBytes = 3 * leastLog
	}
	return store.Open(d.fs(), format.Superblock{}, o)
}

const cellID layout.CellID = 0xce11

// disk gives a fresh disk of a server: opened once and closed.
func (p *Plant) disk(server int, stores storeKind) (*disk, error) {
	key := diskKey{server, stores}
	if d := p.disks[key]; d != nil {
		return d.after(nil, 100), nil
	}
	d := newDisk()
	id := format.Superblock{Cell: cellID, Server: uuidOf(server, 1), UUID: uuidOf(server, 2), LogKey: [16]byte{byte(server), 7}}
	if err := store.Format(d.fs(), id); err != nil {
		return nil, err
	}
	s, err := stores.open(d, nil)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if p.disks == nil {
		p.disks = map[diskKey]*disk{}
	}
	p.disks[key] = d.after(nil, 100)
	return p.disks[key].after(nil, 100), nil
}

func uuidOf(server int, what byte) (u layout.UUID) {
	u[0], u[1] = byte(server), what
	return u
}
