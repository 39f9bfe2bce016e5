package writetest

import (
	"math/rand/v2"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Cell is servers, a metadata service and the messages under way.
type Cell struct {
	Rand     *rand.Rand
	Servers  []*Server // one device each
	Segments map[layout.SegmentID]*Segment
	Order    []layout.SegmentID // of creation
	Epoch    layout.Epoch       // of the volume, in the metadata service
	Away     bool               // the metadata service can't be reached
	Full     bool               // and answers allocations with NoSpace, but urgent ones
	Rows     int                // blocks per shard of new segments: 1 to Rows
	Faults   int                // of 1000 requests to servers fail for a reason of their own
	tasks    []task
}

// Segment is what the metadata service knows of one.
type Segment struct {
	write.Segment
	Epoch layout.Epoch
	Seal  *stripe.Seal
}

// Record is one stripe in one shard.
type Record struct {
	Header  *stripe.Header
	Durable bool
	Torn    bool // can't be read any more
}

// Server is a chunk server with one device.
type Server struct {
	ID     layout.ServerID
	Inc    layout.Incarnation
	Down   bool // refuses connections
	Hung   bool // what is sent to it stays under way
	Lost   bool // for ever
	Fence  layout.Epoch
	Shards map[layout.ShardKey]map[layout.Seq]*Record
}

type task struct {
	server *Server // that must not hang
	run    func()
}

// NewCell makes a cell of n servers.
func NewCell(r *rand.Rand, n int) *Cell {
	c := &Cell{Rand: r, Segments: map[layout.SegmentID]*Segment{}, Epoch: 1, Rows: 64}
	for i := range n {
		c.Servers = append(c.Servers, &Server{ID: layout.ServerID(i + 1), Inc: 1, Shards: map[layout.ShardKey]map[layout.Seq]*Record{}})
	}
	return c
}

// Server finds a server.
func (c *Cell) Server(id layout.ServerID) *Server { return c.Servers[id-1] }

func (c *Cell) send(s *Server, run func()) { c.tasks = append(c.tasks, task{s, run}) }

// Waiting counts the messages under way.
func (c *Cell) Waiting() int { return len(c.tasks) }

// Deliver runs one of the oldest messages that are not stuck at a hung server.
func (c *Cell) Deliver() bool {
	var can []int
	for i, t := range c.tasks {
		if t.server == nil || !t.server.Hung {
			can = append(can, i)
		}
	}
	if len(can) == 0 {
		return false
	}
	i := can[c.Rand.IntN(min(len(can), 12))]
	t := c.tasks[i]
	c.tasks = append(c.tasks[:i], c.tasks[i+1:]...)
	t.run()
	return true
}

// fault is a reason of its own, seldom.
func (c *Cell) fault() error {
	if c.Rand.IntN(1000) >= c.Faults {
		return nil
	}
	return []error{errs.NotHere, errs.StaleGeneration, errs.Sealed, errs.NoSpace, errs.Corrupt, errs.Deadline, errs.Unavailable, errs.IncarnationMoved}[c.Rand.IntN(8)]
}

// Append stores one participant's part of a stripe.
func (s *Server) Append(key layout.ShardKey, h *stripe.Header, durable bool) (layout.Incarnation, error) {
	if err := s.refuses(h.Epoch); err != nil {
		return 0, err
	}
	shard := s.Shards[key]
	if shard == nil {
		shard = map[layout.Seq]*Record{}
		s.Shards[key] = shard
	}
	if shard[h.Seq] == nil {
		shard[h.Seq] = &Record{Header: h}
	}
	shard[h.Seq].Durable = shard[h.Seq].Durable || durable
	return s.Inc, nil
}

// Sync makes shards durable, in the incarnation that is named.
func (s *Server) Sync(y *write.Sync, epoch layout.Epoch) error {
	if err := s.refuses(epoch); err != nil {
		return err
	}
	if y.Incarnation != s.Inc {
		return errs.IncarnationMoved
	}
	for _, ref := range y.Shards {
		for _, r := range s.Shards[ref.ShardKey] {
			r.Durable = true
		}
	}
	return nil
}

func (s *Server) refuses(epoch layout.Epoch) error {
	switch {
	case s.Lost || s.Down:
		return errs.New(errs.Unavailable, "", "connection refused")
	case epoch < s.Fence:
		return errs.New(errs.StaleEpoch, "", "fenced at %d", s.Fence)
	}
	return nil
}

// Crash restarts a server: what is not durable is lost, all or in part.
func (s *Server) Crash(r *rand.Rand) {
	all := r.IntN(2) == 0
	for _, key := range sortedKeys(s.Shards) {
		for _, seq := range sortedSeqs(s.Shards[key]) {
			if !s.Shards[key][seq].Durable && (all || r.IntN(2) == 0) {
				delete(s.Shards[key], seq)
			}
		}
	}
	s.Inc++
}

// Lose takes a server away for ever.
func (s *Server) Lose() { s.Lost, s.Shards = true, nil }

// Readable tells whether a stripe's copy can be decoded from what servers have.
func (c *Cell) Readable(seg *Segment, h *stripe.Header) bool {
	n := 0
	for i, sh := range seg.Shards {
		i := layout.ShardIndex(i)
		r := c.Server(sh.Server).Shards[layout.ShardKey{Segment: seg.ID, Shard: i}][h.Seq]
		if h.Participants().Has(i) && r != nil && !r.Torn {
			n++
		}
	}
	return n >= h.Shape.Data.Count()
}
