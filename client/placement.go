package client

import (
	"context"
	"sync"
	"time"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

const (
	// maxPlacements bounds the placements kept in memory; past it, some go.
	maxPlacements = 1 << 17
	// firstTimeout bounds the question where a segment lies that was never asked
	// about: there is no other way to its shards, so it outlasts the election of a
	// leader after one that hung.
	firstTimeout = 30 * time.Second
	// locateTimeout bounds the question where a known one lies now: a read has
	// other shards to ask.
	locateTimeout = 2 * time.Second
	// askFirst and askMost bound the waits between two questions for the address
	// of one server.
	askFirst = 250 * time.Millisecond
	askMost  = 30 * time.Second
)

// place is where one shard lies.
type place struct {
	server     layout.ServerID
	device     layout.DeviceID
	generation layout.Generation
}

// segment is what a client knows of a segment. It is immutable; a new placement
// makes a new value.
type segment struct {
	id       layout.SegmentID
	volume   layout.VolumeID
	epoch    layout.Epoch
	geometry layout.Geometry
	length   layout.ShardOffset
	isMap    bool
	sealed   bool
	last     layout.Seq // of a sealed one
	shards   []place
}

// serverAddress is how a server is reached.
type serverAddress struct {
	data, control string
	up            bool
}

// placements caches where segments lie and how servers are reached. What it
// holds may be outdated; the chunk server then answers not-here, and refresh
// asks again. Safe for concurrent use.
type placements struct {
	meta *dial.Meta

	mu       sync.Mutex
	segments map[layout.SegmentID]*segment
	servers  map[layout.ServerID]serverAddress
	asked    map[layout.ServerID]*asking
}

// asking bounds how often a server's address is asked for.
type asking struct {
	next time.Time     // not before
	wait time.Duration // after the next time
}

func newPlacements(meta *dial.Meta) *placements {
	return &placements{meta: meta, segments: map[layout.SegmentID]*segment{},
		servers: map[layout.ServerID]serverAddress{}, asked: map[layout.ServerID]*asking{}}
}

// segment gives one segment, asking the metadata service when it is not cached.
func (p *placements) segment(ctx context.Context, id layout.SegmentID) (*segment, error) {
	if s := p.cached(id); s != nil {
		return s, nil
	}
	return p.ask(ctx, firstTimeout, id)
}

func (p *placements) cached(id layout.SegmentID) *segment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.segments[id]
}

// address tells how a server is reached; ok is false for one never heard of.
func (p *placements) address(id layout.ServerID) (serverAddress, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.servers[id]
	return a, ok
}

// refresh asks the metadata service where a segment lies now. Error: NotFound
// when it knows the segment no more.
func (p *placements) refresh(ctx context.Context, id layout.SegmentID) (*segment, error) {
	return p.ask(ctx, locateTimeout, id)
}

func (p *placements) ask(ctx context.Context, timeout time.Duration, id layout.SegmentID) (*segment, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var r *pb.GetSegmentsReply
	err := p.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.GetSegments(ctx, &pb.GetSegmentsRequest{Ids: []uint64{uint64(id)}})
		return err
	})
	if err != nil {
		return nil, errs.Wrap(err, "locate segment %d", id)
	}
	for _, s := range p.learn(r.Segments, r.Servers) {
		if s.id == id {
			return s, nil
		}
	}
	p.mu.Lock()
	delete(p.segments, id)
	p.mu.Unlock()
	return nil, errs.New(errs.NotFound, "", "segment %d does not exist any more", id)
}

// moved asks whether a server that can't be reached has another address now, by
// one of its segments. It asks once in a while only.
func (p *placements) moved(ctx context.Context, t target) bool {
	before, _ := p.address(t.server)
	if t.segment == 0 || !p.mayAsk(t.server) {
		return false
	}
	if _, err := p.refresh(ctx, t.segment); err != nil {
		return false
	}
	now, _ := p.address(t.server)
	if before.data == now.data && before.control == now.control {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, t.server)
	return true
}

func (p *placements) mayAsk(id layout.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.asked[id]
	if a == nil {
		a = &asking{}
		p.asked[id] = a
	}
	now := time.Now()
	if now.Before(a.next) {
		return false
	}
	a.wait = min(max(2*a.wait, askFirst), askMost)
	a.next = now.Add(a.wait)
	return true
}

// learn takes in what a reply of the metadata service says.
func (p *placements) learn(segments []*pb.Segment, servers []*pb.ServerAddress) []*segment {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range servers {
		p.servers[layout.ServerID(a.Server)] = serverAddress{a.DataAddress, a.ControlAddress, a.Up}
	}
	list := make([]*segment, len(segments))
	for i, s := range segments {
		list[i] = segmentFromPB(s)
		p.segments[list[i].id] = list[i]
	}
	for id := range p.segments {
		if len(p.segments) <= maxPlacements {
			break
		}
		delete(p.segments, id)
	}
	return list
}

func segmentFromPB(s *pb.Segment) *segment {
	out := &segment{
		id: layout.SegmentID(s.Id), volume: layout.VolumeID(s.Volume), epoch: layout.Epoch(s.Epoch),
		geometry: layout.Geometry{K: uint8(s.GetGeometry().GetK()), M: uint8(s.GetGeometry().GetM())},
		length:   layout.ShardOffset(s.ShardLength), isMap: s.Map, sealed: s.Seal != nil,
		last: layout.Seq(s.GetSeal().GetLastSeq()),
	}
	for _, p := range s.Placements {
		out.shards = append(out.shards, place{layout.ServerID(p.Server), layout.DeviceID(p.Device), layout.Generation(p.Generation)})
	}
	return out
}

// ref names one of the segment's shards as it is placed now.
func (s *segment) ref(i layout.ShardIndex) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: s.id, Shard: i}, Generation: s.shards[i].generation}
}
