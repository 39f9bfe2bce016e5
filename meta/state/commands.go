package state

import "slices"

// The parts of Command that are the same in every command.

func (c FormCell) Type() Type         { return TypeFormCell }
func (c RegisterServer) Type() Type   { return TypeRegisterServer }
func (c UpdateDevices) Type() Type    { return TypeUpdateDevices }
func (c SetServerState) Type() Type   { return TypeSetServerState }
func (c OpenSession) Type() Type      { return TypeOpenSession }
func (c CloseSession) Type() Type     { return TypeCloseSession }
func (c ExpireSession) Type() Type    { return TypeExpireSession }
func (c CreateVolume) Type() Type     { return TypeCreateVolume }
func (c ResizeVolume) Type() Type     { return TypeResizeVolume }
func (c RemoveVolume) Type() Type     { return TypeRemoveVolume }
func (c UndeleteVolume) Type() Type   { return TypeUndeleteVolume }
func (c PurgeVolume) Type() Type      { return TypePurgeVolume }
func (c AcquireLease) Type() Type     { return TypeAcquireLease }
func (c ReleaseLease) Type() Type     { return TypeReleaseLease }
func (c AllocateSegments) Type() Type { return TypeAllocateSegments }
func (c OpenSegments) Type() Type     { return TypeOpenSegments }
func (c DropSegments) Type() Type     { return TypeDropSegments }
func (c SealSegments) Type() Type     { return TypeSealSegments }
func (c CloseEpoch) Type() Type       { return TypeCloseEpoch }
func (c RecordRoot) Type() Type       { return TypeRecordRoot }
func (c MarkFinalized) Type() Type    { return TypeMarkFinalized }
func (c ReplaceShard) Type() Type     { return TypeReplaceShard }
func (c MarkDeleted) Type() Type      { return TypeMarkDeleted }
func (c MarkLost) Type() Type         { return TypeMarkLost }
func (c MarkSound) Type() Type        { return TypeMarkSound }
func (c ChangeDevices) Type() Type    { return TypeChangeDevices }
func (c RemoveServer) Type() Type     { return TypeRemoveServer }
func (c RestoreCell) Type() Type      { return TypeRestoreCell }
func (c RecordMember) Type() Type     { return TypeRecordMember }
func (c CreateSnapshots) Type() Type  { return TypeCreateSnapshots }
func (c RemoveSnapshot) Type() Type   { return TypeRemoveSnapshot }
func (c CloneVolume) Type() Type      { return TypeCloneVolume }
func (c RollbackVolume) Type() Type   { return TypeRollbackVolume }
func (c PinSnapshot) Type() Type      { return TypePinSnapshot }
func (c UnpinSnapshot) Type() Type    { return TypeUnpinSnapshot }
func (c HoldTag) Type() Type          { return TypeHoldTag }
func (c MarkTagReady) Type() Type     { return TypeMarkTagReady }
func (c FreeSegments) Type() Type     { return TypeFreeSegments }

func (c FormCell) CommandID() CommandID         { return c.ID }
func (c RegisterServer) CommandID() CommandID   { return c.ID }
func (c UpdateDevices) CommandID() CommandID    { return c.ID }
func (c SetServerState) CommandID() CommandID   { return c.ID }
func (c OpenSession) CommandID() CommandID      { return c.ID }
func (c CloseSession) CommandID() CommandID     { return c.ID }
func (c ExpireSession) CommandID() CommandID    { return c.ID }
func (c CreateVolume) CommandID() CommandID     { return c.ID }
func (c ResizeVolume) CommandID() CommandID     { return c.ID }
func (c RemoveVolume) CommandID() CommandID     { return c.ID }
func (c UndeleteVolume) CommandID() CommandID   { return c.ID }
func (c PurgeVolume) CommandID() CommandID      { return c.ID }
func (c AcquireLease) CommandID() CommandID     { return c.ID }
func (c ReleaseLease) CommandID() CommandID     { return c.ID }
func (c AllocateSegments) CommandID() CommandID { return c.ID }
func (c OpenSegments) CommandID() CommandID     { return c.ID }
func (c DropSegments) CommandID() CommandID     { return c.ID }
func (c SealSegments) CommandID() CommandID     { return c.ID }
func (c CloseEpoch) CommandID() CommandID       { return c.ID }
func (c RecordRoot) CommandID() CommandID       { return c.ID }
func (c MarkFinalized) CommandID() CommandID    { return c.ID }
func (c ReplaceShard) CommandID() CommandID     { return c.ID }
func (c MarkDeleted) CommandID() CommandID      { return c.ID }
func (c MarkLost) CommandID() CommandID         { return c.ID }
func (c MarkSound) CommandID() CommandID        { return c.ID }
func (c ChangeDevices) CommandID() CommandID    { return c.ID }
func (c RemoveServer) CommandID() CommandID     { return c.ID }
func (c RestoreCell) CommandID() CommandID      { return c.ID }
func (c RecordMember) CommandID() CommandID     { return c.ID }
func (c CreateSnapshots) CommandID() CommandID  { return c.ID }
func (c RemoveSnapshot) CommandID() CommandID   { return c.ID }
func (c CloneVolume) CommandID() CommandID      { return c.ID }
func (c RollbackVolume) CommandID() CommandID   { return c.ID }
func (c PinSnapshot) CommandID() CommandID      { return c.ID }
func (c UnpinSnapshot) CommandID() CommandID    { return c.ID }
func (c HoldTag) CommandID() CommandID          { return c.ID }
func (c MarkTagReady) CommandID() CommandID     { return c.ID }
func (c FreeSegments) CommandID() CommandID     { return c.ID }

func (c FormCell) request() Command         { return c }
func (c RegisterServer) request() Command   { return c }
func (c UpdateDevices) request() Command    { return c }
func (c SetServerState) request() Command   { return c }
func (c OpenSession) request() Command      { return c }
func (c CloseSession) request() Command     { return c }
func (c ExpireSession) request() Command    { return c }
func (c CreateVolume) request() Command     { return c }
func (c ResizeVolume) request() Command     { return c }
func (c RemoveVolume) request() Command     { c.AtUnix = 0; return c }
func (c UndeleteVolume) request() Command   { return c }
func (c PurgeVolume) request() Command      { return c }
func (c AcquireLease) request() Command     { return c }
func (c ReleaseLease) request() Command     { return c }
func (c AllocateSegments) request() Command { c.Placed = nil; return c }
func (c OpenSegments) request() Command     { return c }
func (c DropSegments) request() Command     { return c }
func (c SealSegments) request() Command     { return c }
func (c CloseEpoch) request() Command       { c.AtUnix = 0; return c }
func (c RecordRoot) request() Command       { return c }
func (c MarkFinalized) request() Command    { return c }
func (c ReplaceShard) request() Command     { return c }
func (c MarkDeleted) request() Command      { return c }
func (c MarkLost) request() Command         { return c }
func (c MarkSound) request() Command        { return c }
func (c ChangeDevices) request() Command    { return c }
func (c RemoveServer) request() Command     { return c }
func (c RestoreCell) request() Command      { return c }
func (c RecordMember) request() Command     { return c }
func (c CreateSnapshots) request() Command  { return c.asked() }
func (c RemoveSnapshot) request() Command   { return c }
func (c CloneVolume) request() Command      { return c }
func (c RollbackVolume) request() Command   { c.AtUnix = 0; return c }
func (c PinSnapshot) request() Command      { return c }
func (c UnpinSnapshot) request() Command    { return c }
func (c HoldTag) request() Command          { return c }
func (c MarkTagReady) request() Command     { return c }
func (c FreeSegments) request() Command     { return c }

// asked leaves out what the leader learned from writers: a repeat may bring other
// barriers.
func (c CreateSnapshots) asked() Command {
	c.AtUnix, c.Items = 0, slices.Clone(c.Items)
	for i := range c.Items {
		c.Items[i].Epoch, c.Items[i].Seq = 0, 0
	}
	return c
}
