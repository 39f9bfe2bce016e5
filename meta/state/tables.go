package state

import (
	"github.com/tidwall/btree"

	"strake/internal/layout"
)

// tables are the whole state. Records behind pointers are never changed once
// they are in a table: a change puts a new record. So copying the trees, which
// is O(1), copies the state.
//
// The first block is the state proper and is what a snapshot holds. The second
// is derived from it by put and drop alone, and is built again by Restore.
type tables struct {
	applied uint64
	version uint32 // the highest of the commands that changed it, at least FirstCounted; see Version
	cell    Cell
	last    lastIDs

	classes      classTable
	reservations reservationTable
	qosChanged   uint64 // log index of the last change of either

	servers  *btree.Map[layout.ServerID, *Server]
	devices  *btree.Map[layout.DeviceID, *Device]
	sessions *btree.Map[layout.SessionID, *Session]
	volumes  *btree.Map[layout.VolumeID, *Volume]
	frozen   *btree.Map[layout.SnapshotID, *Frozen]
	segments *btree.Map[layout.SegmentID, string] // packed
	recent   *btree.Map[CommandID, *remembered]

	recentOrder  *btree.Map[uint64, CommandID] // by log index
	serverByUUID *btree.Map[string, layout.ServerID]
	deviceByUUID *btree.Map[string, layout.DeviceID]
	names        *btree.Map[string, layout.VolumeID]   // nameKey, volumes that are not removed
	removedNames *btree.Map[string, layout.VolumeID]   // removedKey, removed ones until purged
	frozenNames  *btree.Map[string, layout.SnapshotID] // frozenKey, those not removed
	byDigest     *btree.Map[string, layout.SnapshotID] // digestKey, those not removed
	shelf        shelf
	dropped      int // segments in state Dropped

	byVolume    index // volume: its segments
	byDevice    index // device: segments with a shard there
	unsealed    index // volume: its allocated and open segments
	replayed    index // volume: its sealed data segments with stripes above the root's covers
	held        index // session: volumes whose lease it holds
	allocated   index // all: segments whose shards are being created
	unfinalized index // all: sealed segments that are needed and not finalized
	deletable   index // all: segments that are dropped or no longer needed; of a volume that is Freeing perhaps not all
	retired     index // volume: its retired segments
	lost        index // all: finalized segments that are needed and have shards marked lost
	purged      index // all: volumes being deleted for ever
	orphaned    index // all: volumes without a holder that have unsealed segments
	freeing     index // all: volumes that are Freeing
	ofFamily    index // family: its snapshots that are not removed
	branches    index // snapshot: the volumes that began as it and may name what it names
	pinned      index // snapshot: sessions that read it
	undigested  index // all: tags without a digest
}

// all is the owner in an index that has only one.
const all = 0

// lastIDs are the highest ids handed out. An id is never used again.
type lastIDs struct {
	Server  layout.ServerID  `cbor:"1,keyasint,omitempty"`
	Device  layout.DeviceID  `cbor:"2,keyasint,omitempty"`
	Session layout.SessionID `cbor:"3,keyasint,omitempty"`
	Volume  layout.VolumeID  `cbor:"4,keyasint,omitempty"`
	Segment layout.SegmentID `cbor:"5,keyasint,omitempty"`

	Snapshot layout.SnapshotID `cbor:"6,keyasint,omitempty"`

	Reservation ReservationID `cbor:"20,keyasint,omitempty"`
	Class       layout.Class  `cbor:"21,keyasint,omitempty" since:"3"` // of those that were added; these come round again
}

func newTables() *tables {
	t := &tables{
		version:      FirstCounted,
		servers:      btree.NewMap[layout.ServerID, *Server](0),
		devices:      btree.NewMap[layout.DeviceID, *Device](0),
		sessions:     btree.NewMap[layout.SessionID, *Session](0),
		volumes:      btree.NewMap[layout.VolumeID, *Volume](0),
		frozen:       btree.NewMap[layout.SnapshotID, *Frozen](0),
		segments:     btree.NewMap[layout.SegmentID, string](0),
		recent:       btree.NewMap[CommandID, *remembered](0),
		recentOrder:  btree.NewMap[uint64, CommandID](0),
		serverByUUID: btree.NewMap[string, layout.ServerID](0),
		deviceByUUID: btree.NewMap[string, layout.DeviceID](0),
		names:        btree.NewMap[string, layout.VolumeID](0),
		removedNames: btree.NewMap[string, layout.VolumeID](0),
		frozenNames:  btree.NewMap[string, layout.SnapshotID](0),
		byDigest:     btree.NewMap[string, layout.SnapshotID](0),
		shelf:        newShelf(),
	}
	for _, x := range t.indexes() {
		*x = newIndex()
	}
	return t
}

func (t *tables) indexes() []*index {
	return []*index{&t.byVolume, &t.byDevice, &t.unsealed, &t.replayed, &t.held,
		&t.allocated, &t.unfinalized, &t.deletable, &t.lost, &t.purged, &t.orphaned,
		&t.retired, &t.freeing, &t.ofFamily, &t.branches, &t.pinned, &t.undigested}
}

// clone gives tables that no longer change with t. O(1).
func (t *tables) clone() *tables {
	c := *t
	c.servers, c.devices, c.sessions = t.servers.Copy(), t.devices.Copy(), t.sessions.Copy()
	c.volumes, c.segments = t.volumes.Copy(), t.segments.Copy()
	c.recent, c.recentOrder = t.recent.Copy(), t.recentOrder.Copy()
	c.serverByUUID, c.deviceByUUID = t.serverByUUID.Copy(), t.deviceByUUID.Copy()
	c.names, c.removedNames = t.names.Copy(), t.removedNames.Copy()
	c.frozen, c.frozenNames, c.byDigest, c.shelf = t.frozen.Copy(), t.frozenNames.Copy(), t.byDigest.Copy(), t.shelf.copy()
	for _, x := range c.indexes() {
		*x = x.copy()
	}
	return &c
}
