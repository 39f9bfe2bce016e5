package reconcile

import (
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// Task is one thing for the leader to do: one of the structs below, by value.
type Task interface{ key() key }

// key tells tasks apart: a kind and what it is about.
type key struct {
	kind kind
	id   uint64
}

type kind uint8

const (
	kindServer kind = iota
	kindSession
	kindGiveBack
	kindRecover
	kindDelete
	kindFinalize
	kindPurge
	kindGiveUp
	kindRebuild
	kindFree
	kindDigest
	kindBalance
	kindClean
	kindFlatten
	kinds
)

// MarkServer wants state.SetServerState, for the life of the server that was
// judged.
type MarkServer struct {
	Server     layout.ServerID
	Up         bool
	Registered uint64
	Silent     time.Duration // with Up false: for how long
}

// ExpireSession wants state.ExpireSession.
type ExpireSession struct {
	Session layout.SessionID
	Silent  time.Duration
}

// GiveBack wants state.DropSegments for a segment whose shards were not
// created in time: the leader that began it is gone, or stuck.
type GiveBack struct{ Segment layout.SegmentID }

// Recover wants a server's janitor to recover a volume that lost its writer.
type Recover struct {
	Volume layout.VolumeID
	Server layout.ServerID // whose janitor is asked; up by the state
	Reason string
}

// Delete wants the segment's shards deleted, then state.MarkDeleted. Shards
// are those that must confirm; shards on dead devices are gone as it is.
type Delete struct {
	Segment layout.SegmentID
	Shards  []Shard
}

// Finalize wants the seal brought to the shards, then state.MarkFinalized.
type Finalize struct {
	Segment layout.SegmentID
	Shards  []Shard
}

// Purge wants state.PurgeVolume.
type Purge struct{ Volume layout.VolumeID }

// Free wants state.FreeSegments.
type Free struct{ Volume layout.VolumeID }

// Digest wants a server's janitor to compute a tag's content digest.
type Digest struct {
	Snapshot layout.SnapshotID
	Server   layout.ServerID // whose janitor is asked; up by the state
}

// Clean wants a server's janitor to clean, or to flatten, a volume that nobody writes.
type Clean struct {
	Volume layout.VolumeID
	Server layout.ServerID // whose janitor is asked; up by the state
	Reason string
}

// Flatten wants state.FlattenVolume.
type Flatten struct{ Volume layout.VolumeID }

// GiveUp wants state.ChangeDevices with GiveUpDevice, for the life of the server
// that was judged.
type GiveUp struct {
	Device     layout.DeviceID
	Registered uint64
	Gone       time.Duration
}

// EndRebalance wants state.Rebalance, to end the one that began at a log index.
type EndRebalance struct {
	Began uint64
	Why   string
}

// Rebuild wants one shard of a finalized segment made again by a server: on
// another device, then state.ReplaceShard, then the old shard deleted; or, in
// place, its bytes put right, then state.MarkSound.
type Rebuild struct {
	Segment layout.SegmentID
	Shard   layout.ShardIndex
	Old     state.Placement // as the state has it
	InPlace bool
	Device  layout.DeviceID // where it will be; in place: where it is
	Server  layout.ServerID // that device's, who does the work
	Spare   int             // shards that the segment can lose now; below 0: it lacks some
	Move    bool            // nothing is lost, the device is being drained, or gives to emptier ones
	Balance bool            // the latter
	Bytes   int64           // with Balance: that the shard may hold
	// Sources are where bytes can be read: first shards that are whole, the old
	// copy among them where it is, then those marked lost, of which a part may
	// be good.
	Sources []Source
}

// Source is one shard that may be read.
type Source struct {
	Shard
	Doubtful bool // marked lost
}

// Shard is where one shard of a task lies.
type Shard struct {
	Index     layout.ShardIndex
	Server    layout.ServerID
	Placement state.Placement
}

func (t MarkServer) key() key    { return key{kindServer, uint64(t.Server)} }
func (t ExpireSession) key() key { return key{kindSession, uint64(t.Session)} }
func (t GiveBack) key() key      { return key{kindGiveBack, uint64(t.Segment)} }
func (t Recover) key() key       { return key{kindRecover, uint64(t.Volume)} }
func (t Delete) key() key        { return key{kindDelete, uint64(t.Segment)} }
func (t Finalize) key() key      { return key{kindFinalize, uint64(t.Segment)} }
func (t Purge) key() key         { return key{kindPurge, uint64(t.Volume)} }
func (t Free) key() key          { return key{kindFree, uint64(t.Volume)} }
func (t Digest) key() key        { return key{kindDigest, uint64(t.Snapshot)} }
func (t Clean) key() key         { return key{kindClean, uint64(t.Volume)} }
func (t Flatten) key() key       { return key{kindFlatten, uint64(t.Volume)} }
func (t GiveUp) key() key        { return key{kindGiveUp, uint64(t.Device)} }
func (t EndRebalance) key() key  { return key{kindBalance, t.Began} }
func (t Rebuild) key() key       { return key{kindRebuild, uint64(t.Segment)} }
