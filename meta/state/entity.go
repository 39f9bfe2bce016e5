package state

import (
	"strake/internal/layout"
	"strake/proto/stripe"
)

// CommandID names a command; the client draws it at random. An equal repeat of
// a command gives its first result, an unequal command of the same id is a
// conflict. Zero means that the command is idempotent by nature and is not
// remembered; commands that make something refuse it.
type CommandID uint64

// DeviceState says what a device may be used for.
type DeviceState uint8

// States of a device. Numbers are frozen: they stand in commands and snapshots.
const (
	DeviceUp       DeviceState = 0 // takes new shards
	DeviceLimping  DeviceState = 1 // serves, but takes no new shards
	DeviceDraining DeviceState = 2 // being emptied, takes no new shards
	DeviceDown     DeviceState = 3 // does not serve; may come back
	DeviceDead     DeviceState = 4 // will not come back; its shards are lost
)

// String gives the state's name as the command line prints it.
func (s DeviceState) String() string {
	names := [...]string{"up", "limping", "draining", "down", "dead"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Server is a chunk server as it registered.
type Server struct {
	ID             layout.ServerID   `cbor:"1,keyasint"`
	UUID           layout.UUID       `cbor:"2,keyasint,omitempty"`
	DataAddress    string            `cbor:"3,keyasint,omitempty"`
	ControlAddress string            `cbor:"4,keyasint,omitempty"`
	Domain         string            `cbor:"5,keyasint,omitempty"` // zone/rack/host, outermost first
	Version        string            `cbor:"6,keyasint,omitempty"` // of its program
	Up             bool              `cbor:"7,keyasint,omitempty"`
	Registered     uint64            `cbor:"8,keyasint,omitempty"` // log index of its last registration; names that life of it
	Devices        []layout.DeviceID `cbor:"9,keyasint,omitempty"`
}

// Device is one device of a server. The byte counts are coarse: they change by
// command only when they changed much.
type Device struct {
	ID          layout.DeviceID    `cbor:"1,keyasint"`
	UUID        layout.UUID        `cbor:"2,keyasint,omitempty"`
	Server      layout.ServerID    `cbor:"3,keyasint,omitempty"`
	Path        string             `cbor:"4,keyasint,omitempty"`
	Total       uint64             `cbor:"5,keyasint,omitempty"`
	Used        uint64             `cbor:"6,keyasint,omitempty"`
	Reserved    uint64             `cbor:"7,keyasint,omitempty"` // promised to shards beyond what is stored
	Incarnation layout.Incarnation `cbor:"8,keyasint,omitempty"`
	State       DeviceState        `cbor:"9,keyasint,omitempty"`
	// Wish is what the administrator wants of it. It outlives the device's
	// absences, which State does not.
	Wish DeviceWish `cbor:"10,keyasint,omitempty"`
}

// DeviceWish is what the administrator wants of a device. Numbers are frozen.
type DeviceWish uint8

// Wishes. A removed device is dead for ever.
const (
	WishNone    DeviceWish = 0
	WishDrained DeviceWish = 1
	WishRemoved DeviceWish = 2
)

// Session is a client's standing with the metadata service.
type Session struct {
	ID    layout.SessionID `cbor:"1,keyasint"`
	Owner string           `cbor:"2,keyasint,omitempty"` // for people: host, pid, program
	// Janitor: others take its leases without force.
	Janitor bool `cbor:"3,keyasint,omitempty"`
	// Pins are the snapshots that it reads, in order.
	Pins []layout.SnapshotID `cbor:"4,keyasint,omitempty"`
}

// Root is the entry point of a map checkpoint. Number 0 means that there is none.
type Root struct {
	Number layout.RootNumber `cbor:"1,keyasint"`
	Covers layout.Seq        `cbor:"2,keyasint,omitempty"`
	Page   []byte            `cbor:"3,keyasint,omitempty"` // opaque, at most MaxRootPage bytes
	// What the writer counted, for people and for who plans cleaning: blocks that
	// the map names, of these those in the volume's own segments, and blocks of its
	// own map segments that are pages.
	Live  uint64 `cbor:"4,keyasint,omitempty"`
	Own   uint64 `cbor:"5,keyasint,omitempty"`
	Pages uint64 `cbor:"6,keyasint,omitempty"`
}

// Cut says that of epochs older than Before, replay takes stripes up to Seq only.
type Cut struct {
	Before layout.Epoch `cbor:"1,keyasint"`
	Seq    layout.Seq   `cbor:"2,keyasint,omitempty"`
}

// Loss is on record when people gave up stripes that nobody could decide about.
type Loss struct {
	Epoch  layout.Epoch `cbor:"1,keyasint"`           // of the recovery
	Cut    layout.Seq   `cbor:"2,keyasint,omitempty"` // where the log ended
	After  layout.Seq   `cbor:"3,keyasint,omitempty"` // after which loss was accepted
	By     string       `cbor:"4,keyasint,omitempty"` // the owner of the session
	AtUnix uint64       `cbor:"5,keyasint,omitempty"` // for display only
}

// Volume is a volume's record.
type Volume struct {
	ID        layout.VolumeID `cbor:"1,keyasint"`
	Tenant    string          `cbor:"2,keyasint,omitempty"`
	Name      string          `cbor:"3,keyasint,omitempty"`
	SizeBytes uint64          `cbor:"4,keyasint,omitempty"`
	Geometry  layout.Geometry `cbor:"5,keyasint,omitempty"` // wanted; segments may be narrower
	Class     layout.Class    `cbor:"6,keyasint,omitempty"`

	Epoch   layout.Epoch     `cbor:"7,keyasint,omitempty"`  // 0: never written
	Holder  layout.SessionID `cbor:"8,keyasint,omitempty"`  // 0: nobody writes
	Closed  bool             `cbor:"9,keyasint,omitempty"`  // all epochs below Epoch are closed; true in a new volume
	LastSeq layout.Seq       `cbor:"10,keyasint,omitempty"` // the highest seq that a sealed segment or a cut vouches for
	Root    Root             `cbor:"11,keyasint,omitempty"`
	Cuts    []Cut            `cbor:"12,keyasint,omitempty"` // oldest first, at most MaxCuts

	Removed       bool   `cbor:"13,keyasint,omitempty"` // hidden; undelete brings it back
	Purged        bool   `cbor:"14,keyasint,omitempty"` // being deleted for ever
	RemovedAtUnix uint64 `cbor:"15,keyasint,omitempty"`
	Undecided     string `cbor:"16,keyasint,omitempty"` // why recovery stands: server, shard and reason; empty when it does not
	Losses        []Loss `cbor:"17,keyasint,omitempty"` // that people accepted; oldest first, the newest MaxLosses

	Family layout.VolumeID   `cbor:"18,keyasint,omitempty"` // whose snapshots' names it shares; 0: its own
	Origin layout.SnapshotID `cbor:"19,keyasint,omitempty"` // what the branch began as, and may still name; 0: nothing
	// Flat is the first root that names nothing of the origin, 0: none yet.
	Flat layout.RootNumber `cbor:"20,keyasint,omitempty"`
	// Freeing: snapshots became fewer, and of the retired segments those above
	// FreeAfter were not looked at since; with FreeAgain all are, once more.
	Freeing   bool             `cbor:"21,keyasint,omitempty"`
	FreeAgain bool             `cbor:"22,keyasint,omitempty"`
	FreeAfter layout.SegmentID `cbor:"23,keyasint,omitempty"`
	// Flattening: somebody wants it to name nothing of its origin any more.
	Flattening bool `cbor:"24,keyasint,omitempty"`

	Segments      uint64 `cbor:"-"` // that hold or may hold data: not given back, not deleted
	Unsealed      uint64 `cbor:"-"` // of these, allocated or open
	StoredBytes   uint64 `cbor:"-"` // in sealed segments, parity included
	RetiredBytes  uint64 `cbor:"-"` // of these, in segments that the head no longer names
	ReservedBytes uint64 `cbor:"-"` // in unsealed ones
}

// LastCut is the seq after which the next writer goes on, less one.
func (v *Volume) LastCut() layout.Seq {
	if len(v.Cuts) == 0 {
		return 0
	}
	return v.Cuts[len(v.Cuts)-1].Seq
}

// SegmentState is a segment's place in its life.
type SegmentState uint8

// States of a segment, in order of life. Numbers are frozen. A segment leaves
// the state when all its shards are confirmed gone.
const (
	Allocated SegmentState = 0 // placed; its shards are being created; no writer knows it
	Open      SegmentState = 1 // takes appends
	Sealed    SegmentState = 2 // ended for ever by its seal
	Finalized SegmentState = 3 // its shards compared themselves with the seal
	Dropped   SegmentState = 4 // holds nothing that counts; its shards may be deleted
)

// String gives the state's name.
func (s SegmentState) String() string {
	names := [...]string{"allocated", "open", "sealed", "finalized", "dropped"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Placement says where one shard lives. The server is the device's.
type Placement struct {
	Device     layout.DeviceID   `cbor:"1,keyasint"`
	Generation layout.Generation `cbor:"2,keyasint"`
}

// Segment is a segment's record, unpacked.
type Segment struct {
	ID          layout.SegmentID
	Volume      layout.VolumeID
	Epoch       layout.Epoch // that allocated it
	Command     CommandID    // that allocated it
	Geometry    layout.Geometry
	ShardLength layout.ShardOffset
	Map         bool // holds pages of the extent map
	State       SegmentState
	Placements  []Placement // k+m, by shard
	// Seal is the seal of a sealed segment. In an unsealed map segment it is
	// the list attached to the newest root, and Listed tells whether there is one.
	Seal   Seal
	Listed bool
	// Retired is 0 while the head names the segment. Of a data segment it is
	// covers of the first root that does not name it; of a map segment the
	// number of that root.
	Retired uint64
	// Born is, of a map segment, the first root that may name it; 0: not known.
	Born layout.RootNumber
	// Lost are shards of a sealed segment that must be made again although their
	// devices may live. A shard on a dead device is lost too, and not noted here.
	Lost layout.Mask
}

// Unsealed tells whether the segment takes, or may soon take, appends.
func (s *Segment) Unsealed() bool { return s.State == Allocated || s.State == Open }

// ShardSeal is what a seal says of one shard.
type ShardSeal struct {
	Count  uint32             `cbor:"1,keyasint,omitempty"`
	Length layout.ShardOffset `cbor:"2,keyasint,omitempty"`
	Digest stripe.Digest      `cbor:"3,keyasint"`
}

// Seal ends a segment for ever at an agreed list of stripes. It is stripe.Seal
// in the form that commands carry.
type Seal struct {
	Segment layout.SegmentID `cbor:"1,keyasint"`
	First   layout.Seq       `cbor:"2,keyasint,omitempty"` // 0 when empty
	Last    layout.Seq       `cbor:"3,keyasint,omitempty"`
	Count   uint32           `cbor:"4,keyasint,omitempty"`
	Shards  []ShardSeal      `cbor:"5,keyasint"` // k+m
}

// SealOf converts from the form that the data path uses.
func SealOf(s stripe.Seal) Seal {
	out := Seal{Segment: s.Segment, First: s.First, Last: s.Last, Count: s.Count, Shards: make([]ShardSeal, len(s.Shards))}
	for i, sh := range s.Shards {
		out.Shards[i] = ShardSeal(sh)
	}
	return out
}

// Stripe converts to the form that the data path uses.
func (s Seal) Stripe() stripe.Seal {
	out := stripe.Seal{Segment: s.Segment, First: s.First, Last: s.Last, Count: s.Count, Shards: make([]stripe.ShardSeal, len(s.Shards))}
	for i, sh := range s.Shards {
		out.Shards[i] = stripe.ShardSeal(sh)
	}
	return out
}
