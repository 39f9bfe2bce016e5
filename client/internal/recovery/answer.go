package recovery

import (
	"slices"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// State is what a shard said as a whole.
type State uint8

const (
	// Silent: no answer, so not fenced either.
	Silent State = iota
	// Listed: fenced, store intact (right UUID, incarnation never went back):
	// a stripe that is not in the list was never had.
	Listed
	// CannotTell: fenced, but nothing follows from what it doesn't list: I/O
	// error, missing file, unreadable index, wiped or rolled back, 'not here'.
	CannotTell
)

// Stripe is what a shard says of one stripe that it lists.
type Stripe struct {
	Seq    layout.Seq
	Header *stripe.Header // nil: unreadable, cannot tell
	Doubt  bool           // the header can be read and the unit can't: cannot tell
	Reason string         // why it can't tell
}

// Shard is one shard's answer.
type Shard struct {
	Server  layout.ServerID
	Device  layout.DeviceID
	State   State
	Reason  string   // of Silent and CannotTell
	Stripes []Stripe // ascending by seq; also CannotTell shards may list some
}

// Segment is an unsealed data segment with its shards' answers.
type Segment struct {
	ID       layout.SegmentID
	Geometry layout.Geometry
	Shards   []Shard // k+m
}

// Sealed is a sealed data segment: how many stripes of which seqs, both ends included.
type Sealed struct {
	First, Last layout.Seq
	Count       uint32 // Last-First+1: all of them
}

// holds tells whether the segment holds a seq for sure.
func (s Sealed) holds(seq layout.Seq) bool {
	return s.First <= seq && seq <= s.Last && s.Last-s.First+1 == layout.Seq(s.Count)
}

// Input is all that a decision depends on.
type Input struct {
	LastCut  layout.Seq // the log stands up to here: a cut, the newest root, a live seal or a snapshot says so
	Covers   layout.Seq // what may lie in segments that are listed nowhere here; at most LastCut
	Sealed   []Sealed   // data segments that hold seqs above Covers, any order
	Flushed  layout.Seq // highest flushed seq known from elsewhere (sealed segments' headers), else 0
	Segments []Segment  // every unsealed data segment of older epochs, empty ones too
	// Accept is set when people give up whatever can't be decided above this seq.
	Accept *layout.Seq
}

// SilentServers gives the servers that some segment's shard has no answer of, ascending.
func (in Input) SilentServers() (list []layout.ServerID) {
	for _, s := range in.Segments {
		for _, shard := range s.Shards {
			if shard.State == Silent {
				list = append(list, shard.Server)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
