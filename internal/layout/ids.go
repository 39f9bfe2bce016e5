package layout

import "fmt"

// Identifiers are 64-bit, handed out by the metadata service, start at 1 and
// are never used again. Zero means "none".
type (
	// CellID names a cell; it is random, drawn when the cell forms.
	CellID uint64
	// VolumeID names a volume.
	VolumeID uint64
	// SegmentID names a segment, cell-wide; it grows with creation order.
	SegmentID uint64
	// ServerID names a chunk server.
	ServerID uint64
	// DeviceID names a device.
	DeviceID uint64
	// SessionID names a client's standing with the metadata service.
	SessionID uint64
	// TenantID names a tenant; 1 is the tenant "default".
	TenantID uint32
	// UUID is the 128-bit identity in a superblock: of a device or a server.
	UUID [16]byte
)

type (
	// Epoch orders the writers of a volume; it grows by one with each lease.
	Epoch uint64
	// Seq is a volume-wide stripe number without gaps, starting at 1.
	Seq uint64
	// Incarnation is one life of a device's store; strictly rising.
	Incarnation uint64
	// Generation is one placement of one shard, starting at 1.
	Generation uint32
	// SnapshotID names a snapshot of a volume, tags among them, in a cell.
	SnapshotID uint64
	// RootNumber numbers a volume's map checkpoints, starting at 1.
	RootNumber uint64
	// ShardIndex is a shard's position in its segment: 0..k-1 hold data, k..k+m-1 parity.
	ShardIndex uint8
	// TokenHandle is the 32-bit name of a verified token on one connection.
	TokenHandle uint32
)

// ShardKey names one shard of one segment.
type ShardKey struct {
	Segment SegmentID
	Shard   ShardIndex
}

// String gives "segment/shard".
func (k ShardKey) String() string { return fmt.Sprintf("%d/%d", k.Segment, k.Shard) }

// String gives the canonical 8-4-4-4-12 form.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// Class is a quality-of-service class. The first four are built in; an
// administrator's classes are numbered from 16.
type Class uint8

// Built-in classes.
const (
	ClassDefault    Class = 0 // the volume's default class
	ClassInference  Class = 1
	ClassTraining   Class = 2
	ClassCheckpoint Class = 3
	ClassBackground Class = 4
)

// String gives the class's name, or "class-N" for one that is not built in.
func (c Class) String() string {
	names := [...]string{"default", "inference", "training", "checkpoint", "background"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("class-%d", uint8(c))
}
