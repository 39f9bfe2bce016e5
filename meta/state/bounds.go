package state

// Bounds of commands and of what a volume keeps. Each is checked by Decode or
// Apply, so nothing in the state grows without a named limit.
const (
	MaxCommandBytes  = 1 << 20 // an encoded command
	MaxServerDevices = 64      // devices of one server
	MaxText          = 256     // addresses, domain, path, owner, version: bytes each
	MaxUndecided     = 1024    // bytes of an undecided text
	MaxRootPage      = 256     // bytes of a root page
	MaxAllocate      = 64      // segments of one allocation
	MaxSegmentList   = 1024    // segments named in one command
	MaxUnsealed      = 1024    // unsealed segments of one volume
	MaxCuts          = 64      // cuts that a volume keeps
	MaxLosses        = 16      // accepted losses that a volume keeps on record
	MaxRecent        = 1 << 14 // commands remembered for repeats
	maxMembers       = 64      // metadata servers on record
	maxRestored      = 256     // restorations from a backup
	MaxGroup         = 64      // volumes of one group of snapshots
	MaxSnapshots     = 1 << 14 // snapshots of one volume
	MaxHolds         = 64      // holds of one tag
	MaxPins          = 4096    // snapshots that one session has open
	DigestBytes      = 32      // of a tag's digest
	MaxPage          = 1000    // entries of one page of a listing
)
