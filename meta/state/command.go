package state

import "strake/internal/layout"

// Type numbers a kind of command. Numbers are frozen and only ever appended.
type Type uint8

// Types of commands.
const (
	TypeFormCell         Type = 1
	TypeRegisterServer   Type = 2
	TypeUpdateDevices    Type = 3
	TypeSetServerState   Type = 4
	TypeOpenSession      Type = 5
	TypeCloseSession     Type = 6
	TypeExpireSession    Type = 7
	TypeCreateVolume     Type = 8
	TypeResizeVolume     Type = 9
	TypeRemoveVolume     Type = 10
	TypeUndeleteVolume   Type = 11
	TypePurgeVolume      Type = 12
	TypeAcquireLease     Type = 13
	TypeReleaseLease     Type = 14
	TypeAllocateSegments Type = 15
	TypeOpenSegments     Type = 16
	TypeDropSegments     Type = 17
	TypeSealSegments     Type = 18
	TypeCloseEpoch       Type = 19
	TypeRecordRoot       Type = 20
	TypeMarkFinalized    Type = 21
	TypeReplaceShard     Type = 22
	TypeMarkDeleted      Type = 23
	TypeMarkLost         Type = 24
	TypeMarkSound        Type = 25
	TypeChangeDevices    Type = 26
	TypeRemoveServer     Type = 27
	TypeSetClass         Type = 28
	TypeRemoveClass      Type = 29
	TypeReserve          Type = 30
	TypeRenewReservation Type = 31
	TypeEndReservation   Type = 32
	TypeRestoreCell      Type = 33
	TypeRecordMember     Type = 34
	TypeCreateSnapshots  Type = 35
	TypeRemoveSnapshot   Type = 36
	TypeCloneVolume      Type = 37
	TypeRollbackVolume   Type = 38
	TypePinSnapshot      Type = 39
	TypeUnpinSnapshot    Type = 40
	TypeHoldTag          Type = 41
	TypeMarkTagReady     Type = 42
	TypeFreeSegments     Type = 43
	TypeRebalance        Type = 44
	TypeFlattenVolume    Type = 45
)

// Command is one of the command structs below, by value.
type Command interface {
	// Type numbers the command's kind.
	Type() Type
	// CommandID is the command's id, 0 when it is not remembered.
	CommandID() CommandID
	// request is the part that the client chose, the same in each repeat: what
	// the leader added (placements, its clock) is cleared.
	request() Command
	// check refuses what no state would accept; it needs no state.
	check() error
	// apply changes the tables, or refuses and changes nothing.
	apply(t *tables, r *Result) error
}

// VolumeRef names a volume by id, or by tenant and name when the id is 0. An
// empty tenant is "default".
type VolumeRef struct {
	ID     layout.VolumeID `cbor:"1,keyasint,omitempty"`
	Tenant string          `cbor:"2,keyasint,omitempty"`
	Name   string          `cbor:"3,keyasint,omitempty"`
}

// FormCell is the first command of all: it gives the cell its identity.
type FormCell struct {
	ID          CommandID          `cbor:"1,keyasint,omitempty"`
	Cell        layout.CellID      `cbor:"2,keyasint"`
	ShardLength layout.ShardOffset `cbor:"3,keyasint,omitempty"` // 0: layout.DefaultShardLength
}

// DeviceReport is what a starting server says of one device.
type DeviceReport struct {
	UUID        layout.UUID        `cbor:"1,keyasint"`
	Path        string             `cbor:"2,keyasint,omitempty"`
	Total       uint64             `cbor:"3,keyasint,omitempty"`
	Used        uint64             `cbor:"4,keyasint,omitempty"`
	Reserved    uint64             `cbor:"5,keyasint,omitempty"`
	Incarnation layout.Incarnation `cbor:"6,keyasint"`
	State       DeviceState        `cbor:"7,keyasint,omitempty"`
}

// RegisterServer is a chunk server's first call of each start. The same UUID
// registers again with new addresses and higher incarnations; devices that it
// does not name any more go down.
type RegisterServer struct {
	ID             CommandID      `cbor:"1,keyasint,omitempty"`
	Cell           layout.CellID  `cbor:"2,keyasint,omitempty"` // 0 when all devices are new
	UUID           layout.UUID    `cbor:"3,keyasint"`
	DataAddress    string         `cbor:"4,keyasint,omitempty"`
	ControlAddress string         `cbor:"5,keyasint,omitempty"`
	Domain         string         `cbor:"6,keyasint,omitempty"`
	Version        string         `cbor:"7,keyasint,omitempty"`
	Devices        []DeviceReport `cbor:"8,keyasint,omitempty"`
}

// DeviceUpdate is one device's coarse figures and state.
type DeviceUpdate struct {
	Device   layout.DeviceID `cbor:"1,keyasint"`
	Total    uint64          `cbor:"2,keyasint,omitempty"`
	Used     uint64          `cbor:"3,keyasint,omitempty"`
	Reserved uint64          `cbor:"4,keyasint,omitempty"`
	State    DeviceState     `cbor:"5,keyasint,omitempty"`
}

// UpdateDevices records figures that changed much since the last record.
type UpdateDevices struct {
	ID      CommandID      `cbor:"1,keyasint,omitempty"`
	Devices []DeviceUpdate `cbor:"2,keyasint"`
}

// SetServerState marks a server up or down.
type SetServerState struct {
	ID     CommandID       `cbor:"1,keyasint,omitempty"`
	Server layout.ServerID `cbor:"2,keyasint"`
	Up     bool            `cbor:"3,keyasint,omitempty"`
	// Registered is the life that the sender judged (Server.Registered); the
	// command is refused when the server registered again since. 0: any.
	Registered uint64 `cbor:"4,keyasint,omitempty"`
}

// OpenSession gives a client its standing.
type OpenSession struct {
	ID    CommandID `cbor:"1,keyasint"`
	Owner string    `cbor:"2,keyasint,omitempty"`
	// Janitor marks a session that recovers or cleans volumes by order of the
	// leader: any other session takes its leases without force.
	Janitor bool `cbor:"3,keyasint,omitempty"`
}

// CloseSession ends a session by its own wish; its leases end as by ExpireSession.
type CloseSession struct {
	ID      CommandID        `cbor:"1,keyasint,omitempty"`
	Session layout.SessionID `cbor:"2,keyasint"`
}

// ExpireSession ends a session that was silent too long. Its volumes lose
// their holder and keep their epoch.
type ExpireSession struct {
	ID      CommandID        `cbor:"1,keyasint,omitempty"`
	Session layout.SessionID `cbor:"2,keyasint"`
}

// CreateVolume makes a volume. A zero geometry takes the widest of 4+2, 2+2,
// 2+1, 1+1 that the cell holds.
type CreateVolume struct {
	ID        CommandID       `cbor:"1,keyasint"`
	Tenant    string          `cbor:"2,keyasint,omitempty"`
	Name      string          `cbor:"3,keyasint"`
	SizeBytes uint64          `cbor:"4,keyasint"`
	Geometry  layout.Geometry `cbor:"5,keyasint"`
	Class     layout.Class    `cbor:"6,keyasint,omitempty"`
}

// ResizeVolume changes a volume's size. Growing is allowed at any time;
// shrinking wants the flag and the lease: its holder has discarded what lies
// beyond, which would come to light again when the volume grows.
type ResizeVolume struct {
	ID        CommandID        `cbor:"1,keyasint"`
	Volume    VolumeRef        `cbor:"2,keyasint"`
	SizeBytes uint64           `cbor:"3,keyasint"`
	Shrink    bool             `cbor:"4,keyasint,omitempty"`
	Session   layout.SessionID `cbor:"5,keyasint,omitempty"`
	Epoch     layout.Epoch     `cbor:"6,keyasint,omitempty"`
}

// RemoveVolume hides a volume until UndeleteVolume or PurgeVolume; with Now it
// is purged at once.
type RemoveVolume struct {
	ID     CommandID `cbor:"1,keyasint"`
	Volume VolumeRef `cbor:"2,keyasint"`
	Now    bool      `cbor:"3,keyasint,omitempty"`
	AtUnix uint64    `cbor:"4,keyasint,omitempty"` // the leader's clock, for display only
}

// UndeleteVolume brings a removed volume back.
type UndeleteVolume struct {
	ID     CommandID `cbor:"1,keyasint"`
	Volume VolumeRef `cbor:"2,keyasint"`
}

// PurgeVolume ends a removed volume for ever: its segments become deletable.
type PurgeVolume struct {
	ID     CommandID       `cbor:"1,keyasint,omitempty"`
	Volume layout.VolumeID `cbor:"2,keyasint"`
}

// AcquireLease makes the session the volume's writer under the next epoch.
type AcquireLease struct {
	ID      CommandID        `cbor:"1,keyasint"`
	Session layout.SessionID `cbor:"2,keyasint"`
	Volume  VolumeRef        `cbor:"3,keyasint"`
	Force   bool             `cbor:"4,keyasint,omitempty"` // take over from a live session
}

// ReleaseLease ends an epoch in good order. All stripes up to LastSeq are in
// sealed segments; segments that are still unsealed were never appended to and
// go back. With Abandon it ends nothing: the session lets go of the lease, as it
// would by its own end, and the next AcquireLease decides what is left to recover.
type ReleaseLease struct {
	ID      CommandID        `cbor:"1,keyasint,omitempty"`
	Session layout.SessionID `cbor:"2,keyasint"`
	Volume  layout.VolumeID  `cbor:"3,keyasint"`
	Epoch   layout.Epoch     `cbor:"4,keyasint"`
	LastSeq layout.Seq       `cbor:"5,keyasint,omitempty"`
	Abandon bool             `cbor:"6,keyasint,omitempty"`
}

// PlacedSegment is the leader's choice for one segment.
type PlacedSegment struct {
	Geometry    layout.Geometry    `cbor:"1,keyasint"`
	ShardLength layout.ShardOffset `cbor:"2,keyasint"`
	Devices     []layout.DeviceID  `cbor:"3,keyasint"` // k+m, by shard
}

// AllocateSegments records segments that the leader placed. Equality of
// repeats is judged by the client's part alone: a repeat gives the segments of
// the first one, whatever the leader chose this time.
type AllocateSegments struct {
	ID          CommandID          `cbor:"1,keyasint"`
	Session     layout.SessionID   `cbor:"2,keyasint"`
	Volume      layout.VolumeID    `cbor:"3,keyasint"`
	Epoch       layout.Epoch       `cbor:"4,keyasint"`
	Map         bool               `cbor:"5,keyasint,omitempty"`
	Count       uint32             `cbor:"6,keyasint"`           // asked for; Placed has as many or fewer
	ShardLength layout.ShardOffset `cbor:"7,keyasint,omitempty"` // asked for, 0: the service chooses
	Placed      []PlacedSegment    `cbor:"8,keyasint,omitempty"` // the leader's part
}

// OpenSegments records that all shards of the segments were created.
type OpenSegments struct {
	ID       CommandID          `cbor:"1,keyasint,omitempty"`
	Segments []layout.SegmentID `cbor:"2,keyasint"`
}

// DropSegments gives back allocated segments whose shards could not be created.
type DropSegments struct {
	ID       CommandID          `cbor:"1,keyasint,omitempty"`
	Segments []layout.SegmentID `cbor:"2,keyasint"`
}

// SealSegments ends segments of the current epoch. All of them or none.
type SealSegments struct {
	ID     CommandID       `cbor:"1,keyasint,omitempty"`
	Volume layout.VolumeID `cbor:"2,keyasint"`
	Epoch  layout.Epoch    `cbor:"3,keyasint"`
	Seals  []Seal          `cbor:"4,keyasint"`
}

// CloseEpoch ends a recovery in one entry: the cut, and a seal for each segment
// that lower epochs left unsealed. The first one committed decides. With
// Undecided set it carries no seals and records only why recovery stands.
type CloseEpoch struct {
	ID        CommandID       `cbor:"1,keyasint,omitempty"`
	Volume    layout.VolumeID `cbor:"2,keyasint"`
	Epoch     layout.Epoch    `cbor:"3,keyasint"`
	Cut       layout.Seq      `cbor:"4,keyasint,omitempty"`
	Seals     []Seal          `cbor:"5,keyasint,omitempty"`
	Undecided string          `cbor:"6,keyasint,omitempty"`
	// AcceptLoss says that people gave up what can't be decided, so that the log
	// may end at the cut, which is AcceptAfter or later. It is put on record.
	AcceptLoss  bool       `cbor:"7,keyasint,omitempty"`
	AcceptAfter layout.Seq `cbor:"8,keyasint,omitempty"`
	AtUnix      uint64     `cbor:"9,keyasint,omitempty"` // the leader's clock, for display only
}

// RecordRoot records a map checkpoint.
type RecordRoot struct {
	ID         CommandID          `cbor:"1,keyasint,omitempty"`
	Volume     layout.VolumeID    `cbor:"2,keyasint"`
	Epoch      layout.Epoch       `cbor:"3,keyasint"`
	Root       Root               `cbor:"4,keyasint"`
	MapLists   []Seal             `cbor:"5,keyasint,omitempty"` // what each unsealed map segment holds up to this root
	Retired    []layout.SegmentID `cbor:"6,keyasint,omitempty"` // data segments that this root no longer names
	RetiredMap []layout.SegmentID `cbor:"7,keyasint,omitempty"`
	Flat       bool               `cbor:"8,keyasint,omitempty"` // the root names nothing of the branch's origin
}

// MarkFinalized records that all shards that could be reached took their seal.
type MarkFinalized struct {
	ID       CommandID          `cbor:"1,keyasint,omitempty"`
	Segments []layout.SegmentID `cbor:"2,keyasint"`
}

// ReplaceShard moves one shard of a finalized segment: compare and set of its
// placement. The new generation is Generation+1.
type ReplaceShard struct {
	ID         CommandID         `cbor:"1,keyasint,omitempty"`
	Segment    layout.SegmentID  `cbor:"2,keyasint"`
	Shard      layout.ShardIndex `cbor:"3,keyasint,omitempty"`
	Generation layout.Generation `cbor:"4,keyasint"` // expected now
	Device     layout.DeviceID   `cbor:"5,keyasint"` // the new place
}

// MarkDeleted records that all shards of the segments are gone; the segments
// leave the state.
type MarkDeleted struct {
	ID       CommandID          `cbor:"1,keyasint,omitempty"`
	Segments []layout.SegmentID `cbor:"2,keyasint"`
}

// ShardAt names a shard at the placement that the sender judged.
type ShardAt struct {
	Segment    layout.SegmentID  `cbor:"1,keyasint"`
	Shard      layout.ShardIndex `cbor:"2,keyasint,omitempty"`
	Generation layout.Generation `cbor:"3,keyasint"`
}

// MarkLost records shards of sealed segments that must be made again although
// their devices live: incomplete, corrupt, or not there. Shards that moved
// since, and segments that are gone, are passed over.
type MarkLost struct {
	ID     CommandID `cbor:"1,keyasint,omitempty"`
	Shards []ShardAt `cbor:"2,keyasint"`
}

// MarkSound takes MarkLost back for shards that were repaired in place.
type MarkSound struct {
	ID     CommandID `cbor:"1,keyasint,omitempty"`
	Shards []ShardAt `cbor:"2,keyasint"`
}

// DeviceChange numbers what ChangeDevices does. Numbers are frozen.
type DeviceChange uint8

// Changes of devices.
const (
	DrainDevice   DeviceChange = 1 // move its shards away; it takes no new ones
	UndrainDevice DeviceChange = 2 // take Drain back
	RemoveDevice  DeviceChange = 3 // it will never come back; its shards are lost
	GiveUpDevice  DeviceChange = 4 // it was gone for too long; its shards are lost unless it comes back
)

// ChangeDevices changes what devices may be used for. All of them or none.
type ChangeDevices struct {
	ID      CommandID         `cbor:"1,keyasint,omitempty"`
	Devices []layout.DeviceID `cbor:"2,keyasint"`
	Change  DeviceChange      `cbor:"3,keyasint"`
	// Registered is, with GiveUpDevice, the life of the server that was judged
	// (Server.Registered); the command is refused when it registered again since.
	Registered uint64 `cbor:"4,keyasint,omitempty"`
}

// RemoveServer forgets a server that is down, and its devices, which hold no
// shard any more.
type RemoveServer struct {
	ID     CommandID       `cbor:"1,keyasint,omitempty"`
	Server layout.ServerID `cbor:"2,keyasint"`
}

// RestoreCell follows a state that was read from a backup. What happened after the
// backup is not known any more, so no id or epoch of that time may come again.
type RestoreCell struct {
	ID CommandID `cbor:"1,keyasint,omitempty"`
}

// RecordMember records that a metadata server runs: the directory that it runs on,
// and how often that was opened. Life 0 forgets the server.
type RecordMember struct {
	ID     CommandID `cbor:"1,keyasint,omitempty"`
	Member Member    `cbor:"2,keyasint"`
}

// SnapshotItem is one volume of a CreateSnapshots. Epoch and Seq are the writer's
// answer to a barrier: all up to Seq is flushed. They count while there is one.
type SnapshotItem struct {
	Volume VolumeRef    `cbor:"1,keyasint"`
	Name   string       `cbor:"2,keyasint"`
	Epoch  layout.Epoch `cbor:"3,keyasint,omitempty"`
	Seq    layout.Seq   `cbor:"4,keyasint,omitempty"`
}

// CreateSnapshots freezes volumes as they are, all of them or none.
type CreateSnapshots struct {
	ID     CommandID      `cbor:"1,keyasint"`
	Items  []SnapshotItem `cbor:"2,keyasint"`
	Tag    bool           `cbor:"3,keyasint,omitempty"`
	AtUnix uint64         `cbor:"4,keyasint,omitempty"` // the leader's clock, for display only
}

// RemoveSnapshot removes a snapshot or a tag that is not held. While branches or
// readers stand on it, it is hidden only.
type RemoveSnapshot struct {
	ID     CommandID `cbor:"1,keyasint"`
	Volume VolumeRef `cbor:"2,keyasint"`
	Name   string    `cbor:"3,keyasint"`
}

// CloneVolume makes a volume that begins as a snapshot.
type CloneVolume struct {
	ID       CommandID `cbor:"1,keyasint"`
	Volume   VolumeRef `cbor:"2,keyasint"`
	Snapshot string    `cbor:"3,keyasint"`
	Tenant   string    `cbor:"4,keyasint,omitempty"`
	Name     string    `cbor:"5,keyasint"`
}

// RollbackVolume makes a volume what a snapshot of it is. Nobody may be writing it.
type RollbackVolume struct {
	ID       CommandID `cbor:"1,keyasint"`
	Volume   VolumeRef `cbor:"2,keyasint"`
	Snapshot string    `cbor:"3,keyasint"`
	AtUnix   uint64    `cbor:"4,keyasint,omitempty"` // the leader's clock, for display only
}

// PinSnapshot lets a session read a snapshot until UnpinSnapshot or its end. The
// snapshot is named by volume and name, or by its id.
type PinSnapshot struct {
	ID       CommandID         `cbor:"1,keyasint,omitempty"`
	Session  layout.SessionID  `cbor:"2,keyasint"`
	Volume   VolumeRef         `cbor:"3,keyasint"`
	Name     string            `cbor:"4,keyasint,omitempty"`
	Snapshot layout.SnapshotID `cbor:"5,keyasint,omitempty"`
}

// UnpinSnapshot takes PinSnapshot back.
type UnpinSnapshot struct {
	ID       CommandID         `cbor:"1,keyasint,omitempty"`
	Session  layout.SessionID  `cbor:"2,keyasint"`
	Snapshot layout.SnapshotID `cbor:"3,keyasint"`
}

// HoldTag keeps a tag from being removed, in the name of By; Release takes that back.
type HoldTag struct {
	ID      CommandID `cbor:"1,keyasint,omitempty"`
	Volume  VolumeRef `cbor:"2,keyasint"`
	Name    string    `cbor:"3,keyasint"`
	By      string    `cbor:"4,keyasint"`
	Release bool      `cbor:"5,keyasint,omitempty"`
}

// MarkTagReady records a tag's content digest and how many blocks are not zero.
type MarkTagReady struct {
	ID       CommandID         `cbor:"1,keyasint,omitempty"`
	Snapshot layout.SnapshotID `cbor:"2,keyasint"`
	Digest   []byte            `cbor:"3,keyasint"`
	Blocks   uint64            `cbor:"4,keyasint,omitempty"`
}

// FreeSegments goes on with a volume's retired segments, some at a time, after
// snapshots were removed.
type FreeSegments struct {
	ID     CommandID       `cbor:"1,keyasint,omitempty"`
	Volume layout.VolumeID `cbor:"2,keyasint"`
}
