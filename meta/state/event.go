package state

import "strake/internal/layout"

// Event says what a command changed, for logs, metrics and the notification of
// sessions. Events come in the order in which they happened; a repeated
// command has none.
type Event interface{ event() }

// Events, named in the past tense.
type (
	CellFormed struct {
		Cell        layout.CellID
		ShardLength layout.ShardOffset
	}
	CellRestored     struct{ Gap Gap } // from a backup
	ServerRegistered struct {
		Server layout.ServerID
		New    bool
	}
	ServerWentUp       struct{ Server layout.ServerID }
	ServerWentDown     struct{ Server layout.ServerID } // sessions with open segments there move on
	DeviceStateChanged struct {
		Device   layout.DeviceID
		Old, New DeviceState
	}
	SessionOpened struct {
		Session layout.SessionID
		Owner   string
	}
	SessionEnded struct {
		Session layout.SessionID
		Expired bool
	}
	VolumeCreated struct{ Volume layout.VolumeID }
	VolumeResized struct {
		Volume   layout.VolumeID
		Old, New uint64
	}
	VolumeRemoved   struct{ Volume layout.VolumeID }
	VolumeUndeleted struct{ Volume layout.VolumeID }
	VolumePurged    struct{ Volume layout.VolumeID }
	VolumeGone      struct{ Volume layout.VolumeID } // its last segment was deleted
	VolumeCloned    struct {
		Volume   layout.VolumeID
		Snapshot layout.SnapshotID
	}
	VolumeRolledBack struct {
		Volume, Old    layout.VolumeID
		Snapshot, Kept layout.SnapshotID // what it is now, what it was
	}
	VolumeFlattened struct{ Volume layout.VolumeID } // it names nothing of its origin any more
	SnapshotCreated struct {
		Snapshot layout.SnapshotID
		Volume   layout.VolumeID
		Seq      layout.Seq
	}
	SnapshotRemoved struct {
		Snapshot layout.SnapshotID
		Volume   layout.VolumeID
	}
	SnapshotGone struct { // nothing stands on it any more
		Snapshot layout.SnapshotID
		Volume   layout.VolumeID
	}
	TagHeld struct {
		Snapshot layout.SnapshotID
		By       string
		Released bool
	}
	TagReady   struct{ Snapshot layout.SnapshotID }
	LeaseTaken struct {
		Volume  layout.VolumeID
		Epoch   layout.Epoch
		Session layout.SessionID
		Old     layout.SessionID // whom to tell that the lease is lost; 0: nobody held it
	}
	LeaseReleased struct {
		Volume layout.VolumeID
		Epoch  layout.Epoch
	}
	LeaseExpired struct {
		Volume   layout.VolumeID
		Epoch    layout.Epoch
		Session  layout.SessionID
		Unsealed uint64 // segments that a janitor must recover
	}
	SegmentAllocated struct {
		Segment layout.SegmentID
		Volume  layout.VolumeID
	}
	SegmentOpened  struct{ Segment layout.SegmentID }
	SegmentDropped struct{ Segment layout.SegmentID }
	SegmentSealed  struct {
		Segment     layout.SegmentID
		First, Last layout.Seq
		Count       uint32
	}
	SegmentFinalized struct{ Segment layout.SegmentID }
	SegmentRetired   struct{ Segment layout.SegmentID }
	SegmentDeleted   struct{ Segment layout.SegmentID }
	EpochClosed      struct {
		Volume layout.VolumeID
		Epoch  layout.Epoch
		Cut    layout.Seq
	}
	RecoveryBlocked struct {
		Volume layout.VolumeID
		Epoch  layout.Epoch
		Reason string
	}
	LossAccepted struct { // by people: what could not be decided is given up
		Volume layout.VolumeID
		Epoch  layout.Epoch
		Cut    layout.Seq
		By     string
	}
	RootRecorded struct {
		Volume layout.VolumeID
		Number layout.RootNumber
		Covers layout.Seq
	}
	ShardReplaced struct {
		Shard    layout.ShardKey
		Old, New Placement
	}
	ShardLost       struct{ Shard layout.ShardKey } // its device lives
	ShardRepaired   struct{ Shard layout.ShardKey } // in place
	RebalanceBegan  struct{}
	RebalanceEnded  struct{ Why string }             // empty: people ended it
	DeviceDrained   struct{ Device layout.DeviceID } // by wish; it is emptied from now on
	DeviceRemoved   struct{ Device layout.DeviceID } // by wish, for ever
	ServerForgotten struct{ Server layout.ServerID }
	ClassChanged    struct {
		Class layout.Class
		Name  string
	}
	ClassRemoved struct {
		Class layout.Class
		Name  string
	}
	ReservationMade    struct{ Job string }
	ReservationRenewed struct{ Job string }
	ReservationEnded   struct {
		Job     string
		Expired bool
	}
)

func (CellFormed) event()         {}
func (CellRestored) event()       {}
func (ServerRegistered) event()   {}
func (ServerWentUp) event()       {}
func (ServerWentDown) event()     {}
func (DeviceStateChanged) event() {}
func (SessionOpened) event()      {}
func (SessionEnded) event()       {}
func (VolumeCreated) event()      {}
func (VolumeResized) event()      {}
func (VolumeRemoved) event()      {}
func (VolumeUndeleted) event()    {}
func (VolumePurged) event()       {}
func (VolumeGone) event()         {}
func (LeaseTaken) event()         {}
func (LeaseReleased) event()      {}
func (LeaseExpired) event()       {}
func (SegmentAllocated) event()   {}
func (SegmentOpened) event()      {}
func (SegmentDropped) event()     {}
func (SegmentSealed) event()      {}
func (SegmentFinalized) event()   {}
func (SegmentRetired) event()     {}
func (SegmentDeleted) event()     {}
func (EpochClosed) event()        {}
func (RecoveryBlocked) event()    {}
func (LossAccepted) event()       {}
func (RootRecorded) event()       {}
func (ShardReplaced) event()      {}
func (ShardLost) event()          {}
func (ShardRepaired) event()      {}
func (RebalanceBegan) event()     {}
func (RebalanceEnded) event()     {}
func (DeviceDrained) event()      {}
func (DeviceRemoved) event()      {}
func (ServerForgotten) event()    {}
func (ClassChanged) event()       {}
func (ClassRemoved) event()       {}
func (ReservationMade) event()    {}
func (ReservationRenewed) event() {}
func (ReservationEnded) event()   {}
func (VolumeCloned) event()       {}
func (VolumeRolledBack) event()   {}
func (VolumeFlattened) event()    {}
func (SnapshotCreated) event()    {}
func (SnapshotRemoved) event()    {}
func (SnapshotGone) event()       {}
func (TagHeld) event()            {}
func (TagReady) event()           {}
