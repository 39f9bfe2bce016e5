package store

import (
	"log/slog"
	"time"

	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// Options are the properties of a store; the zero value takes the defaults.
type Options struct {
	Logger           *slog.Logger // nil: no log lines
	LogBytes         int64        // bound of the log of small appends; default 32 MiB
	SmallAppend      int          // payloads up to this many bytes go to the log; default 64 KiB
	HeaderCacheBytes int64        // bound of the cache of checksums; default 8 MiB
	Queue            Queue        // the device's scheduler, for the store's own work; nil: it is done at once
	// Engine opens the index in a folder; nil: Pebble.
	Engine func(fsys vfs.FS, dir string) (Engine, error)
	// Clock is a clock for a planted bug to trust; the store itself looks at none.
	Clock func() time.Duration
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
	Purpose    layout.Purpose // how far into the reserve it may go; not kept
}

// Append is one unit and its stripe header. Header and Payload are not kept.
type Append struct {
	Ref     frame.ShardRef
	Epoch   layout.Epoch
	Header  []byte // one encoded stripe header
	Payload []byte // the unit
	// Sums are the checksums of Payload's blocks, for a caller that made them while
	// it received the bytes, when they were still in the processor's cache. Nil: the
	// store makes them. They are held against the header's either way.
	Sums    []uint32
	Turns   Turns // the device's scheduler, for a large unit; nil: it is written at once
	Durable bool  // return only when the unit is durable
}

// Turns gives a large unit its turns at the device, so that no unit stands before
// others for longer than a piece takes. Used by one unit at a time.
type Turns interface {
	// Piece is how many bytes the next piece should have at most.
	Piece() int
	// Turn runs work on n bytes when its turn has come, or has it run: it may return
	// while work of several calls is under way. The error is that of a turn that did
	// not come, or of earlier work.
	Turn(n int, work func() error) error
	// Wait waits for all work, and gives the first error.
	Wait() error
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
	Other    uint64 // on the disk beside durable units: logs, index, what waits for a sync, others' files
	Free     uint64 // for new shards of clients' data, after the reserve
	Shards   uint64
}

// Counters count what the store did to its device since Open.
type Counters struct {
	DataBytes, LogBytes, IndexBytes uint64 // written
	ReadBytes                       uint64
	Fsyncs                          uint64
	Copies                          uint64 // payloads copied in memory, once into a record each
	CopiedBytes                     uint64 // of these, and of records copied into batches of the log
}
