package state

import (
	"strake/internal/layout"
)

// Result is what a command gave. Only the fields that belong to the command
// are set.
type Result struct {
	Err    error // nil or *errs.Error: nothing was changed
	Repeat bool  // an equal command was applied before; this is its result

	Cell     layout.CellID      // FormCell, RegisterServer, OpenSession
	Server   layout.ServerID    // RegisterServer
	Devices  []layout.DeviceID  // RegisterServer: in the command's order
	Session  layout.SessionID   // OpenSession
	Volume   layout.VolumeID    // every command on a volume
	Epoch    layout.Epoch       // AcquireLease
	Snapshot layout.SnapshotID  // PinSnapshot; RollbackVolume: what the volume was
	Segments []layout.SegmentID // AllocateSegments; RecordRoot: of both lists, those retired or gone
	Open     *OpenVolume        // AcquireLease: as of this command

	Events []Event
}

// OpenVolume is what somebody who opens a volume needs.
type OpenVolume struct {
	Volume    Volume     // with Root
	Cuts      []Cut      // those above Root.Covers
	Segments  []Segment  // unsealed, or data with stripes above Root.Covers; in id order
	Ancestors []Ancestor // whose stripes above Root.Covers come first, nearest first
	Clean     bool       // nothing to recover: no lower epoch left a segment unsealed
	LastSeq   layout.Seq // the cut of the last closed epoch; before a recovery: how far the log stands for sure
}

func refused(err error) Result { return Result{Err: err} }

func (r *Result) emit(e Event) { r.Events = append(r.Events, e) }

// Ancestor is a branch that a volume or snapshot stands on: its stripes up to
// Limit are part of the log.
type Ancestor struct {
	Volume   layout.VolumeID
	Limit    layout.Seq
	Segments []Segment // unsealed, or data with stripes above Root.Covers and at or below Limit; in id order
}
