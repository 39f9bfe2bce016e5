package read

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// state of a request.
type state uint8

const (
	unsent  state = iota // its shard is known to be down
	asked                // under way
	parked               // waits for a Refresh
	good                 // its bytes are right
	failed               // it gave nothing, or not all
	dropped              // canceled: not needed any more
)

// Op is one read: a step machine. It is not safe for concurrent use; each event
// gives the actions that follow, valid until the next event. The zero value is
// ready, and may be started again after Done or Fail.
type Op struct {
	cell     layout.CellID
	runs     []run
	requests []*Request // direct and degraded, by ID
	groups   []*group   // by ID
	segments []segment
	direct   int // how many of requests are direct; they come first
	left     int // of these, whose bytes are not yet right
	over     bool
	actions  []Action
}

// segment is what the read learned of a segment.
type segment struct {
	id      layout.SegmentID
	bad     layout.Mask // shards that failed as a whole
	kind    errs.Kind   // why, as a group's kind
	refresh refresh
}

type refresh uint8

const (
	notAsked refresh = iota
	asking
	fresh
)

// Start plans a read of pieces in a cell (0: not checked).
func (o *Op) Start(cell layout.CellID, pieces []Piece) []Action {
	o.cell, o.left, o.over = cell, 0, false
	o.runs, o.requests, o.segments, o.groups = o.runs[:0], o.requests[:0], o.segments[:0], o.groups[:0]
	o.begin()
	for i := range pieces {
		o.runs = cut(o.runs, &pieces[i])
	}
	sortRuns(o.runs)
	o.plan()
	o.direct, o.left = len(o.requests), len(o.requests)
	for _, r := range o.requests[:o.direct] {
		if !r.down() {
			o.ask(r)
		}
	}
	for i := 0; i < o.direct && !o.over; i++ {
		if r := o.requests[i]; r.down() {
			s := o.know(r.Segment)
			s.bad, s.kind = s.bad|r.runs[0].down, worse(s.kind, errs.Unavailable)
			o.replace(r, r.runs, errs.New(errs.Unavailable, "", "known to be down"))
		}
	}
	return o.end()
}

// Replied tells what a request came to.
func (o *Op) Replied(id int, v Verdict) []Action {
	o.begin()
	if r := o.requests[id]; !o.over && r.state == asked {
		o.settle(r, &v)
	}
	return o.end()
}

// Late tells that a request takes longer than it should. It stays under way.
func (o *Op) Late(id int) []Action {
	o.begin()
	switch r := o.requests[id]; {
	case o.over || r.state != asked:
	case r.group != nil:
		o.spare(r.group, r)
	case r.groups == 0:
		o.split(r, r.runs, nil)
		o.spareBorrowers(r)
	}
	return o.end()
}

// Refreshed tells that a segment's placement was asked for.
func (o *Op) Refreshed(id layout.SegmentID, err error) []Action {
	o.begin()
	if o.over {
		return o.end()
	}
	o.know(id).refresh = fresh
	for i := 0; i < len(o.requests) && !o.over; i++ { // fail may add requests
		r := o.requests[i]
		switch {
		case r.Segment != id || r.state != parked:
		case err != nil:
			o.fail(r, errs.As(err, errs.Unavailable, "find shard"))
		default:
			r.resent = true
			o.ask(r)
		}
	}
	return o.end()
}

// Decoded tells whether a group's bytes are in the buffer and right.
func (o *Op) Decoded(g *Group, err error) []Action {
	o.begin()
	if !o.over && g.group.state == decoding {
		o.decoded(g.group, err)
	}
	return o.end()
}

// Abort ends the read for a reason of the shell's: its context has ended, or a
// shard said that the deadline can't be met and no other may be asked.
func (o *Op) Abort(err error) []Action {
	o.begin()
	if !o.over {
		o.giveUp(err)
	}
	return o.end()
}

func (o *Op) begin() {
	clear(o.actions)
	o.actions = o.actions[:0]
}

// end finishes an event: Done comes when nothing is left.
func (o *Op) end() []Action {
	if !o.over && o.left == 0 {
		o.finish(Action{Kind: Done})
	}
	return o.actions
}

func (o *Op) do(a Action) { o.actions = append(o.actions, a) }

// finish cancels what is under way and gives the last action.
func (o *Op) finish(last Action) {
	o.over = true
	for _, r := range o.requests {
		o.drop(r)
	}
	o.do(last)
}

func (o *Op) giveUp(err error) { o.finish(Action{Kind: Fail, Err: err}) }

// drop ends a request that is not needed any more.
func (o *Op) drop(r *Request) {
	switch r.state {
	case asked:
		o.do(Action{Kind: Cancel, Request: r})
		r.state = dropped
	case parked, unsent:
		r.state = dropped
	}
}

func (o *Op) ask(r *Request) {
	r.state = asked
	o.do(Action{Kind: Send, Request: r})
}

// settle takes a request's outcome in.
func (o *Op) settle(r *Request, v *Verdict) {
	if v.Err == nil && len(v.Bad) == 0 {
		r.state = good
		o.succeed(r, v)
		return
	}
	switch kind := errs.KindOf(v.Err); {
	case kind == errs.OK:
		o.corrupt(r, v)
	case hopeless(kind):
		r.state = failed
		o.giveUp(v.Err)
	case kind == errs.TooLarge && r.group != nil && len(r.group.runs) > 1:
		r.state = failed
		o.scatter(r.group, r.group.runs)
	case (kind == errs.NotHere || kind == errs.StaleGeneration) && !r.resent:
		o.park(r)
	default:
		o.fail(r, v.Err)
	}
}

// hopeless kinds are the reader's own fault: other shards would say the same.
func hopeless(k errs.Kind) bool {
	switch k {
	case errs.InvalidArgument, errs.StaleEpoch, errs.LeaseLost, errs.Unauthenticated, errs.PermissionDenied, errs.Version:
		return true
	}
	return false
}

// park makes a request wait for its segment's placement.
func (o *Op) park(r *Request) {
	s := o.know(r.Segment)
	switch s.refresh {
	case notAsked:
		s.refresh = asking
		r.state = parked
		o.do(Action{Kind: Refresh, Segment: r.Segment})
	case asking:
		r.state = parked
	case fresh: // it was sent before the refresh came
		r.resent = true
		o.ask(r)
	}
}

// succeed goes on after a good reply.
func (o *Op) succeed(r *Request, v *Verdict) {
	if r.group != nil {
		o.arrive(r.group, r, v)
		return
	}
	o.abandonAll(r)
	o.left--
	o.pay(r)
}

// corrupt goes on after a reply with wrong blocks: only these are decoded.
func (o *Op) corrupt(r *Request, v *Verdict) {
	bad := r.badRuns(v.Bad)
	o.do(Action{Kind: Report, Segment: r.Segment, Shard: r.Shard, Reason: errs.Corrupt, Offset: bad[0].offset})
	err := errs.New(errs.Corrupt, "", "%d blocks from %d on", len(v.Bad), bad[0].offset)
	r.state = failed
	switch {
	case r.group != nil:
		o.lose(r.group, r, err)
	default: // groups of a late request cover more than is bad
		o.abandonAll(r)
		o.replace(r, bad, err)
		o.recall(r, err)
	}
}

// fail goes on after a request that gave nothing.
func (o *Op) fail(r *Request, err error) {
	kind := errs.KindOf(err)
	o.do(Action{Kind: Report, Segment: r.Segment, Shard: r.Shard, Reason: kind, Offset: r.runs[0].offset})
	r.state = failed
	if kind != errs.Corrupt { // which need not hold for the whole shard
		s := o.know(r.Segment)
		s.bad, s.kind = s.bad.With(r.Shard), worse(s.kind, kind)
	}
	switch {
	case r.group != nil:
		o.lose(r.group, r, err)
	case r.groups > 0:
		o.ownerFailed(r, err)
	default:
		o.replace(r, r.runs, err)
		o.recall(r, err)
	}
}

// know gives what is known of a segment.
func (o *Op) know(id layout.SegmentID) *segment {
	for i := range o.segments {
		if o.segments[i].id == id {
			return &o.segments[i]
		}
	}
	o.segments = append(o.segments, segment{id: id})
	return &o.segments[len(o.segments)-1]
}

// badRuns cuts the request's runs down to the given blocks, neighbours joined.
func (r *Request) badRuns(blocks []int) (bad []run) {
	first, i := 0, 0
	for _, p := range r.runs {
		n := p.length / layout.BlockSize
		from := i
		for ; i < len(blocks) && blocks[i] < first+n; i++ {
			if i > from && blocks[i] == blocks[i-1]+1 {
				bad[len(bad)-1].length += layout.BlockSize
				continue
			}
			bad = append(bad, p.part((blocks[i]-first)*layout.BlockSize, layout.BlockSize))
		}
		first += n
	}
	return bad
}
