package store

import (
	"log/slog"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// Options are the properties of a store; the zero value takes the defaults.
type Options struct {
	Logger           *slog.Logger // nil: no log lines
	LogBytes         int64        // bound of the log of small appends; default 64 MiB
	SmallAppend      int          // payloads up to this many bytes go to the log; default 64 KiB
	HeaderCacheBytes int64        // bound of the cache of checksums; default 8 MiB
}

// ShardSpec is what a shard is made as.
type ShardSpec struct {
	Key        layout.ShardKey
	Generation layout.Generation
	Cell       layout.CellID
	Volume     layout.VolumeID
	Epoch      layout.Epoch // that allocated the segment; lower ones are refused
	Geometry   layout.Geometry
	Length     layout.ShardOffset // a multiple of BlockSize, at most MaxShardLength
	Map        bool
}

// Append is one unit and its stripe header. Header and Payload are not kept.
type Append struct {
	Ref     frame.ShardRef
	Epoch   layout.Epoch
	Header  []byte // one encoded stripe header
	Payload []byte // the unit
	Durable bool   // return only when the unit is durable
}

// Fenced is one stripe of a fenced shard's list.
type Fenced struct {
	Seq    layout.Seq
	Header []byte // encoded; empty when it can't be read
	Err    error  // nil: the shard has it, durable and verified; else it can't tell
}

// State is a shard's state.
type State uint8

// States of a shard.
const (
	StateOpen       State = 1 // takes appends
	StateFenced     State = 2 // under recovery: takes no appends
	StateFinalized  State = 3 // immutable, a source for rebuild
	StateIncomplete State = 4 // its list does not match the seal: to be rebuilt
)

// String gives the state as the wire and the command line name it.
func (s State) String() string {
	return [...]string{"none", "open", "fenced", "finalized", "incomplete"}[s]
}

// Stat tells a shard's properties and fill.
type Stat struct {
	Ref      frame.ShardRef
	Volume   layout.VolumeID
	Epoch    layout.Epoch // that allocated it
	Fence    layout.Epoch // lower epochs are refused; 0: not fenced
	Geometry layout.Geometry
	Length   layout.ShardOffset // promised; of a finalized shard: where its last unit ends
	Stored   int64              // bytes of durable units
	Stripes  uint32             // durable ones
	State    State
	Map      bool
}

// Usage is the account of a device, in bytes.
type Usage struct {
	Total    uint64
	Stored   uint64 // in durable units
	Reserved uint64 // promised to shards, stored bytes included
	Free     uint64 // for new shards, after the reserve
	Shards   uint64
}

// Counters count what the store did to its device since Open.
type Counters struct {
	DataBytes, LogBytes, IndexBytes uint64 // written
	ReadBytes                       uint64
	Fsyncs                          uint64
	Copies                          uint64 // payloads copied in memory
}

// Store is the store of one device. All methods are safe for concurrent use.
type Store struct{}

var errTodo error = errs.New(errs.Unavailable, "store", "not built yet")

func Format(fsys vfs.FS, id format.Superblock) error { return errTodo }
func Open(fsys vfs.FS, want format.Superblock, opts Options) (*Store, error) {
	return nil, errTodo
}
func Inspect(fsys vfs.FS) (format.Superblock, error) { return format.Superblock{}, errTodo }
func (s *Store) Superblock() format.Superblock       { return format.Superblock{} }
func (s *Store) Incarnation() layout.Incarnation     { return 0 }
func (s *Store) SetDevice(id layout.DeviceID) error  { return errTodo }
func (s *Store) Create(spec ShardSpec) error         { return errTodo }
func (s *Store) Append(a Append) error               { return errTodo }
func (s *Store) Sync(epoch layout.Epoch, incarnation layout.Incarnation, shards []frame.ShardRef) error {
	return errTodo
}

// Read fills dst with the ranges' bytes one after another.
func (s *Store) Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	return 0, errTodo
}

// CRCs appends the checksum of each block of the ranges to dst.
func (s *Store) CRCs(ref frame.ShardRef, ranges []frame.ReadRange, dst []uint32) ([]uint32, error) {
	return dst, errTodo
}

// Headers gives the encoded headers that cover the ranges, ascending, each once.
func (s *Store) Headers(ref frame.ShardRef, ranges []frame.ReadRange) ([][]byte, error) {
	return nil, errTodo
}

// File tells where a range lies in a data file, for sendfile. When ok, the
// descriptor stays open until release is called.
func (s *Store) File(ref frame.ShardRef, r frame.ReadRange) (fd uintptr, off int64, release func(), ok bool) {
	return 0, 0, nil, false
}
func (s *Store) List(ref frame.ShardRef, from layout.Seq, most int) (headers []byte, count int, next layout.Seq, err error) {
	return nil, 0, 0, errTodo
}
func (s *Store) Fence(ref frame.ShardRef, epoch layout.Epoch) ([]Fenced, error) { return nil, errTodo }

// CheckRecovery: the shard is fenced, durably, at exactly this epoch.
func (s *Store) CheckRecovery(ref frame.ShardRef, epoch layout.Epoch) error { return errTodo }

// CheckReader refuses with StaleEpoch a reader that holds a writer's token of
// an epoch below the fence; epoch 0 is a reader without one.
func (s *Store) CheckReader(ref frame.ShardRef, epoch layout.Epoch) error { return errTodo }
func (s *Store) Finalize(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error {
	return errTodo
}
func (s *Store) Delete(ref frame.ShardRef) error       { return errTodo }
func (s *Store) Stat(ref frame.ShardRef) (Stat, error) { return Stat{}, errTodo }
func (s *Store) Usage() Usage                          { return Usage{} }
func (s *Store) Counters() Counters                    { return Counters{} }
func (s *Store) Each(visit func(Stat) bool)            {}
func (s *Store) Failed() <-chan struct{}               { return nil }
func (s *Store) Err() error                            { return errTodo }
func (s *Store) Close() error                          { return nil }
func (s *Store) Check() error                          { return errTodo }
