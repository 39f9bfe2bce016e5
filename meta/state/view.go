package state

import (
	"strake/internal/layout"
)

// View is the state at one moment; it never changes.
type View struct{ t *tables }

// Cell is the cell's identity; ID is 0 before FormCell.
type Cell struct {
	ID          layout.CellID
	ShardLength layout.ShardOffset
}

// Counts are cell-wide figures.
type Counts struct {
	Servers, ServersUp                   int
	Volumes                              int // removed ones not counted
	Segments                             int // dropped ones not counted
	TotalBytes, UsedBytes, ReservedBytes uint64
	UnsealedWithoutWriter                int // segments
}

// Health counts segments by the shards they miss.
type Health struct {
	Degraded int // at least one shard missing
	AtRisk   int // no shard more may be lost; also counted as degraded
	Lost     int // more than m shards missing; also counted as degraded
}

func (v *View) Applied() uint64 { return v.t.applied }
func (v *View) Cell() Cell      { return Cell{} }

func (v *View) Server(id layout.ServerID) (Server, bool)     { return Server{}, false }
func (v *View) ServerByUUID(uuid layout.UUID) (Server, bool) { return Server{}, false }
func (v *View) Servers() []Server                            { return nil } // in id order
func (v *View) Device(id layout.DeviceID) (Device, bool)     { return Device{}, false }
func (v *View) Devices() []Device                            { return nil } // in id order
func (v *View) Session(id layout.SessionID) (Session, bool)  { return Session{}, false }
func (v *View) Sessions() []Session                          { return nil }
func (v *View) Held(id layout.SessionID) []layout.VolumeID   { return nil } // volumes whose lease the session holds

func (v *View) Volume(id layout.VolumeID) (Volume, bool)        { return Volume{}, false }
func (v *View) VolumeByName(tenant, name string) (Volume, bool) { return Volume{}, false }

// Resolve finds the volume that a reference names; removed ones only by id.
func (v *View) Resolve(ref VolumeRef) (Volume, error) { return Volume{}, nil }

// Volumes gives a page of volumes in order of "tenant/name"; tenant "" means all.
func (v *View) Volumes(tenant, after string, most int) (page []Volume, more bool) { return nil, false }
func (v *View) RemovedVolumes(tenant, after string, most int) (page []Volume, more bool) {
	return nil, false
}

// Open gives what a reader of the volume needs.
func (v *View) Open(ref VolumeRef) (OpenVolume, error) { return OpenVolume{}, nil }

func (v *View) Segment(id layout.SegmentID) (Segment, bool) { return Segment{}, false }

// Pages of segments in id order, those above after, at most `most`.
func (v *View) SegmentsOfVolume(id layout.VolumeID, after layout.SegmentID, most int) ([]Segment, bool) {
	return nil, false
}
func (v *View) SegmentsOnDevice(id layout.DeviceID, after layout.SegmentID, most int) ([]Segment, bool) {
	return nil, false
}
func (v *View) Unsealed(id layout.VolumeID, after layout.SegmentID, most int) ([]Segment, bool) {
	return nil, false
}
func (v *View) Allocated(after layout.SegmentID, most int) ([]Segment, bool)   { return nil, false } // shards being created
func (v *View) Unfinalized(after layout.SegmentID, most int) ([]Segment, bool) { return nil, false } // sealed, not finalized
func (v *View) Deletable(after layout.SegmentID, most int) ([]Segment, bool)   { return nil, false }

// Unrecovered gives volumes without a holder that have unsealed segments or an open epoch.
func (v *View) Unrecovered(after layout.VolumeID, most int) ([]Volume, bool) { return nil, false }

func (v *View) Counts() Counts { return Counts{} }

// Health counts by the predicate; shards on devices that are down or dead count as missing too.
func (v *View) Health(up func(layout.ServerID) bool) Health { return Health{} }

// Check verifies the invariants I1.. of the package comment.
func (v *View) Check() error { return nil }
