package state

// The versions of what this program writes: commands, and snapshots of the state.
const (
	CommandVersion  = commandVersion
	SnapshotVersion = snapshotVersion
)
