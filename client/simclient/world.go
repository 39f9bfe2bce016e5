package simclient

import (
	"strake/client/internal/recovery"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// World is what a client process reaches beyond itself. No callback runs before
// the call that took it has returned, and none after the process died.
type World interface {
	// Now is the process's monotonic clock.
	Now() time.Duration
	// After calls f once, some time later.
	After(d time.Duration, f func())
	// Draw gives a random number.
	Draw() uint64
	// MetaServers is how many metadata servers there are.
	MetaServers() int
	// Meta sends a request to a metadata server. done gets its answer, if one comes.
	Meta(server int, request any, done func(reply any, err error))
	// Chunk sends a request to a chunk server. done gets its answer, if one
	// comes; with an error of the connection the reply is nil.
	Chunk(server layout.ServerID, request any, done func(reply *ChunkReply, err error))
}

// Observer is told what a process claims, as it claims it.
type Observer interface {
	// Cut: a stripe got its seq; its blocks are the next ones that were submitted.
	Cut(v layout.VolumeID, e layout.Epoch, h *stripe.Header)
	// Acked and Flushed: all stripes up to seq are.
	Acked(v layout.VolumeID, e layout.Epoch, seq layout.Seq)
	Flushed(v layout.VolumeID, e layout.Epoch, seq layout.Seq)
	// Moved: a stripe has a new copy.
	Moved(v layout.VolumeID, e layout.Epoch, seq layout.Seq, to layout.SegmentID)
	// Ended: the writer takes nothing any more.
	Ended(v layout.VolumeID, e layout.Epoch, err error)
	// Decided: a recovery made its plan, or none.
	Decided(v layout.VolumeID, e layout.Epoch, d Decision, err error)
	// Rare counts an event that seldom happens.
	Rare(name string)
}

// Decision is what a recovery decided.
type Decision struct {
	Cut, Flushed layout.Seq
	Fallen       int        // stripes that some shard lists and that are cut off
	Incomplete   int        // stripes that stand though a participant may lack them
	Tail         int        // stripes to copy
	Standing     layout.Seq // known to stand and out of reach; 0: none
	Discards     bool       // a stripe without payload stands where m shards did not answer
	Left         bool       // a tail that was never sealed was among the segments
}

// Segment is what a client knows of a segment.
type Segment struct {
	ID       layout.SegmentID
	Volume   layout.VolumeID
	Epoch    layout.Epoch
	Geometry layout.Geometry
	Length   layout.ShardOffset
	Map      bool
	Seal     *stripe.Seal // nil: unsealed
	Shards   []Place
}

// Place is where one shard lies.
type Place struct {
	Server     layout.ServerID
	Device     layout.DeviceID
	Generation layout.Generation
}

// VolumeInfo is what the metadata service says of a volume.
type VolumeInfo struct {
	ID         layout.VolumeID
	Name       string
	Blocks     layout.BlockCount
	Geometry   layout.Geometry
	Epoch      layout.Epoch
	Holder     layout.SessionID
	Branch     bool        // it began as a snapshot, and may name what is its ancestors'
	Flattening bool        // it is to name nothing of them any more
	Held       layout.Held // by snapshots of it
}

// Requests to the metadata service, and their replies. Command ids make repeats harmless.
type (
	OpenSession struct {
		Command uint64
		Owner   string
		Janitor bool
	}
	Session struct {
		ID   layout.SessionID
		Cell layout.CellID
		TTL  time.Duration
	}
	KeepSession struct {
		Session layout.SessionID
		Seen    uint64
	}
	Kept  struct{ Events []Event }
	Event struct {
		ID     uint64
		Server layout.ServerID // went down; 0: the lease of Volume is lost,
		Volume layout.VolumeID
		// or, when it is not 0, somebody wants to know what is flushed of it.
		Barrier uint64
	}
	CloseSession struct{ Session layout.SessionID }
	// OpenVolume names a volume by its id, or by its name.
	OpenVolume struct {
		Volume layout.VolumeID
		Name   string
	}
	Opened struct {
		Volume    VolumeInfo
		Root      Root
		Cuts      []Cut
		Segments  []*Segment
		Ancestors []Ancestor // whose stripes above the root's covers come first
	}
	// Ancestor is a branch that a volume or snapshot stands on: its stripes up to
	// Limit are part of the log.
	Ancestor struct {
		Volume   layout.VolumeID
		Limit    layout.Seq
		Segments []*Segment
	}
	Root struct {
		Number layout.RootNumber
		Covers layout.Seq
		Page   []byte

		Live, Own, Pages uint64 // blocks: see package client
	}
	AcquireLease struct {
		Command uint64
		Session layout.SessionID
		Volume  layout.VolumeID
		Name    string // in place of an id
		Force   bool
	}
	Granted struct {
		Epoch   layout.Epoch
		Clean   bool
		LastSeq layout.Seq
		Open    *Opened
	}
	ReleaseLease struct {
		Command uint64
		Session layout.SessionID
		Volume  layout.VolumeID
		Epoch   layout.Epoch
		LastSeq layout.Seq
	}
	AllocateSegments struct {
		Command uint64
		Session layout.SessionID
		Volume  layout.VolumeID
		Epoch   layout.Epoch
		Map     bool
		Count   int
		Length  layout.ShardOffset
		Urgent  bool
		Clean   bool // for relocated blocks
		Avoid   []layout.ServerID
	}
	Segments     struct{ List []*Segment }
	SealSegments struct {
		Command uint64
		Volume  layout.VolumeID
		Epoch   layout.Epoch
		Seals   []stripe.Seal
	}
	CloseEpoch struct {
		Command   uint64
		Volume    layout.VolumeID
		Epoch     layout.Epoch
		Cut       layout.Seq
		Seals     []stripe.Seal
		Undecided string
	}
	RecordRoot struct {
		Command             uint64
		Volume              layout.VolumeID
		Epoch               layout.Epoch
		Root                Root
		Lists               []stripe.Seal
		Retired, RetiredMap []layout.SegmentID
		Flat                bool
	}
	// Recorded tells which segments of both lists are retired.
	Recorded    struct{ Retired []layout.SegmentID }
	RequestMove struct {
		Session layout.SessionID
		Volume  layout.VolumeID
		Epoch   layout.Epoch
		Server  layout.ServerID
	}
	Move struct {
		Granted bool
		Retry   time.Duration
	}
	GetSegments struct{ IDs []layout.SegmentID }
	// ReportShard tells of a shard that was found bad; nobody waits for an answer.
	ReportShard struct {
		Ref    frame.ShardRef
		Device layout.DeviceID
		Kind   errs.Kind
	}
)

// Cut says: of epochs older than Before, replay takes stripes up to Seq only.
type Cut = recovery.Cut

// NotLeader is the answer of a metadata server that sends the caller on.
type NotLeader struct{ Leader int } // -1: unknown

func (NotLeader) Error() string { return "this server does not lead" }

// Requests to a chunk server.
type (
	Append struct {
		Ref     frame.ShardRef
		Epoch   layout.Epoch
		Header  []byte
		Payload []byte
		Durable bool
	}
	Read struct {
		Ref      frame.ShardRef
		Epoch    layout.Epoch
		Ranges   []frame.ReadRange
		Recovery bool
		Headers  bool // in place of checksums
		Bare     bool // neither
	}
	Sync struct {
		Epoch       layout.Epoch
		Incarnation layout.Incarnation
		Device      layout.DeviceID
		Shards      []frame.ShardRef
	}
	List struct {
		Ref  frame.ShardRef
		From layout.Seq
		Most int
	}
	Ping  struct{}
	Fence struct {
		Epoch  layout.Epoch
		Shards []FenceShard
	}
	FenceShard struct {
		Ref    frame.ShardRef
		Device layout.DeviceID
	}
	// Fenced is one shard's answer to a Fence.
	Fenced struct {
		Ref     frame.ShardRef
		Err     error // it can't tell anything
		Stripes []FencedStripe
	}
	FencedStripe struct {
		Seq    layout.Seq
		Header []byte
		Kind   errs.Kind // not OK: it can't tell of this one
	}
)

// ChunkReply is a chunk server's answer.
type ChunkReply struct {
	Incarnation layout.Incarnation
	Generation  layout.Generation
	Meta        []byte // Read: checksums or headers
	Bytes       []byte // Read and List
	Next        layout.Seq
	Fenced      []Fenced
	Other       any // of requests that no client makes
}
