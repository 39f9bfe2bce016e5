package write

import (
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// Write is what a caller hands in: ranges in order, the later one wins where
// two overlap. Its payload is the Write ranges' blocks one after another; it
// stays with the shell, which keeps it until every stripe that holds a piece of
// it is flushed (Action Flushed).
type Write struct {
	ID     WriteID
	Ranges []stripe.Range // at least one; copied by Submit
	// Durable asks for FUA: the appends carry the Durable flag, and WriteDone
	// comes when the write is flushed, not when it is acknowledged. Borrowed
	// buffers go this way: after WriteDone nothing refers to them.
	Durable bool
	// Relocation marks the cleaner's writes; they get stripes of their own.
	Relocation bool
}

// Shard is one shard's placement in a granted segment. Incarnation is 0 while
// unknown; the first reply tells it then.
type Shard struct {
	Server      layout.ServerID
	Device      layout.DeviceID
	Generation  layout.Generation
	Incarnation layout.Incarnation
}

// Segment is a segment that the metadata service granted. Never changed after.
type Segment struct {
	ID       layout.SegmentID
	Geometry layout.Geometry
	Length   layout.ShardOffset // bytes per shard
	Shards   []Shard            // k+m
}

// Piece is a run of one write's payload blocks within a stripe's payload.
type Piece struct {
	Write  WriteID
	First  layout.BlockCount // of the write's payload
	Blocks layout.BlockCount
	At     layout.BlockCount // of the stripe's payload
}

// Stripe is one copy of a stripe: content and place. The core never changes it
// after it was handed out; a move makes another one (same Seq, next Copy) that
// shares Ranges and Pieces.
type Stripe struct {
	Copy Copy
	// Header is complete but for CRCs and Shard. The shell fills in CRCs while it
	// encodes, before it reports the first Appended of this copy: the core reads
	// them when the stripe is flushed, for the segment's seal.
	Header  *stripe.Header
	Segment *Segment
	Pieces  []Piece // in payload order; writes without payload have none
	Durable bool    // the appends carry frame.Durable

	shared bool // Ranges and Pieces belong to another copy too
}

func newStripe() *Stripe { return &Stripe{Header: new(stripe.Header)} }

// reset empties a stripe and keeps its slices.
func (s *Stripe) reset() *Stripe {
	h := s.Header
	*h = stripe.Header{Ranges: h.Ranges[:0], CRCs: h.CRCs[:0]}
	*s = Stripe{Header: h, Pieces: s.Pieces[:0]}
	return s
}

// Seq is the stripe's number.
func (s *Stripe) Seq() layout.Seq { return s.Header.Seq }

// Sync is one Sync request to one device, to be answered by Synced.
type Sync struct {
	ID          SyncID
	Server      layout.ServerID
	Device      layout.DeviceID
	Incarnation layout.Incarnation
	Shards      []frame.ShardRef // valid until Synced

	covers []mark // stores that a success makes durable
}

// mark is a shard and how many stores it had.
type mark struct {
	seg    *segment
	shard  layout.ShardIndex
	stored uint32
}

// Kind says what an Action asks for.
type Kind uint8

const (
	// Cut: a new stripe. Update the extent map as pending, encode, send the unit
	// to every shard of Shards (all participants). Each send is answered by one
	// Appended. Fields: Stripe, Shards.
	Cut Kind = 1 + iota
	// Move: a stripe goes again to another segment. Tell the extent map (From is
	// the place it leaves), encode for the new geometry (a unit may exceed 1 MiB),
	// send to Shards. Replies for older copies are still reported, and ignored.
	// Fields: Stripe, Shards, From.
	Move
	// Retry: send a copy again to Shards, which refused it as overloaded.
	// Fields: Stripe, Shards.
	Retry
	// SendSync: send Sync, report Synced. Field: Sync.
	SendSync
	// Allocate: call AllocateSegments, report Granted. Field: Allocation.
	Allocate
	// SealSegment: call SealSegments with Seal, report Sealed. Not before
	// stripes; the core asks again until it is done. Field: Seal.
	SealSegment
	// RequestMove: ask the metadata service's budget for a move by time-out,
	// report MoveGranted (refused, when it can't be asked). Field: Server.
	RequestMove
	// Acked: all stripes up to Seq are acknowledged. Field: Seq.
	Acked
	// Flushed: all stripes up to Seq are flushed: their payload buffers may go,
	// and the map's places of them are final. Field: Seq.
	Flushed
	// WriteDone: a write is done, or failed with Err. Exactly one for each
	// Submit that returned nil. Fields: Write, Err.
	WriteDone
	// FlushDone: a flush is done, or failed with Err. Fields: Flush, Err.
	FlushDone
	// Wait: the memory cap is reached: let no write in before Resume.
	Wait
	// Resume: writes may come again.
	Resume
	// Fail: the writer has ended with Err; every write and flush has had its
	// answer. Nothing follows, but a FlushDone for each later Flush. Field: Err.
	Fail
	// Released: all is flushed and sealed; call ReleaseLease with Seq as the last
	// seq, which also gives unused segments back. As after Fail, nothing follows. Field: Seq.
	Released
	// Checkpointed (MapWriter): all pages are flushed; call RecordRoot with Lists,
	// report Recorded. Field: Lists.
	Checkpointed
	// Aborted (MapWriter): a participant failed; begin the map checkpoint again
	// from its first page. Field: Err.
	Aborted
)

// Allocation asks for segments.
type Allocation struct {
	Request   RequestID
	Map       bool
	Cold      bool               // for relocations: may come from the reserve
	Count     int                // 1 to MaxSpare
	Ahead     int                // of these, so many are ahead of need: only where there is room to spare
	MinLength layout.ShardOffset // per shard, at least; 0: any
	Avoid     []layout.ServerID  // not on these, if that can be; what failed last first
	// Urgent: the cell is full, and what waits must go on: short, from the reserve.
	Urgent bool

	failures int
}

// Action is one thing for the shell to do. Which fields are set depends on Kind.
type Action struct {
	Kind       Kind
	Stripe     *Stripe
	Shards     layout.Mask
	From       layout.SegmentID
	Sync       *Sync
	Allocation *Allocation
	Seal       *stripe.Seal
	Lists      []stripe.Seal
	Server     layout.ServerID
	Seq        layout.Seq
	Write      WriteID
	Flush      FlushID
	Err        error
}

// Reply is a shard's answer to an append. Incarnation is 0 when the error came
// from the connection and not from the device.
type Reply struct {
	Seq         layout.Seq
	Copy        Copy
	Shard       layout.ShardIndex
	Incarnation layout.Incarnation
}
