package read

import (
	"fmt"
	"slices"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// groupState: a group collects units, then is complete, then decoded; or is
// stuck for want of units, or abandoned because it is not needed any more.
type groupState uint8

const (
	collecting groupState = iota
	complete
	decoding
	decodedOK
	stuck
	abandoned
)

// group decodes runs of one lost shard whose stripes have the same data units,
// so that the same participants help. Its bounds are those of a request.
type group struct {
	id    int
	owner *Request // the direct request that failed or is late
	runs  []run
	state groupState
	need  int         // units
	asked layout.Mask // participants asked, failed ones too
	good  layout.Mask // participants whose units are right
	gone  layout.Mask // participants that failed
	why   []string    // reasons of the lost shard and of those that failed
	kind  errs.Kind   // Unavailable if anything may come back, else Corrupt

	peers   [layout.MaxShards]*Request
	headers []*stripe.Header // per run, from the first good participant
	public  Group
}

// Group is what the shell is to decode.
type Group struct {
	ID    int
	group *group
}

// String tells it in one line.
func (g *Group) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %d: shard %d/%d from", g.ID, g.group.owner.Segment, g.group.owner.Shard)
	for p := g.group.good; p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		fmt.Fprintf(&b, " %d", s)
	}
	b.WriteString(" into")
	for _, r := range g.group.runs {
		fmt.Fprintf(&b, " %d+%d", r.into, r.length)
	}
	return b.String()
}

// Geometry is the segment's.
func (g *Group) Geometry() layout.Geometry { return g.group.owner.Geometry }

// Peers are the requests whose bytes Decode wants.
func (g *Group) Peers() (peers [layout.MaxShards]*Request) {
	for p := g.group.good; p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		peers[s] = g.group.peers[s]
	}
	return peers
}

// replace decodes runs of a request that failed, or is not sent at all.
func (o *Op) replace(r *Request, runs []run, err error) {
	r.state = failed
	o.split(r, runs, err)
}

// split makes groups of runs; err is nil when their request is only late.
func (o *Op) split(r *Request, runs []run, err error) {
	first := len(o.groups)
	var g *group
	headers := 0
	for _, p := range runs {
		size := headerLen(&p)
		if g == nil || g.runs[0].shape.Data != p.shape.Data || headers+size > frame.MaxMeta {
			g = o.newGroup(r, p)
			if err != nil {
				g.blame(r.Shard, err)
			}
			headers = 4
		}
		g.runs = append(g.runs, p)
		headers += size
	}
	r.groups = len(o.groups) - first
	for i := first; i < len(o.groups) && !o.over; i++ {
		o.recruit(o.groups[i])
	}
}

// newGroup makes an empty group for runs like p.
func (o *Op) newGroup(owner *Request, p run) *group {
	g := &group{id: len(o.groups), owner: owner, need: p.shape.Data.Count(), kind: errs.Corrupt}
	g.public = Group{g.id, g}
	o.groups = append(o.groups, g)
	return g
}

// scatter gives each run of a group a group of its own: the stripe headers of
// all do not fit one reply.
func (o *Op) scatter(g *group) {
	o.abandon(g)
	g.owner.groups += len(g.runs) - 1
	first := len(o.groups)
	for _, p := range g.runs {
		one := o.newGroup(g.owner, p)
		one.runs, one.why, one.kind = append(one.runs, p), slices.Clone(g.why), g.kind
	}
	for i := first; i < first+len(g.runs) && !o.over; i++ {
		o.recruit(o.groups[i])
	}
}

// headerLen is the most that a run's stripe header is likely to take.
func headerLen(p *run) int {
	unit := int(p.shape.UnitBlocks())
	participants, blocks := p.geometry.Participants(p.shape).Count(), p.shape.Data.Count()*unit
	return (&stripe.Header{}).EncodedLen() + 16*blocks + 4*participants*unit
}

// recruit asks as many participants as are still needed: data shards first.
func (o *Op) recruit(g *group) {
	r := &g.runs[0]
	bad := o.know(r.segment).bad
	free := r.geometry.Participants(r.shape).Without(r.shard) &^ g.asked &^ bad
	for (g.asked &^ g.gone).Count() < g.need {
		s, ok := free.Nth(0)
		if !ok {
			o.starve(g)
			return
		}
		free = free.Without(s)
		o.enlist(g, s)
	}
}

// enlist asks one participant.
func (o *Op) enlist(g *group, s layout.ShardIndex) {
	g.asked = g.asked.With(s)
	r := o.newRequest(g.owner.Segment, g.owner.Geometry, s)
	r.group, r.Headers = g, true
	for _, p := range g.runs {
		r.add(p)
	}
	g.peers[s] = r
	o.ask(r)
}

// starve: there are not enough participants. Late groups may still be saved by
// their owner.
func (o *Op) starve(g *group) {
	g.state = stuck
	for p := g.asked &^ g.gone; p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		o.drop(g.peers[s])
	}
	if g.owner.state == failed {
		o.giveUp(g.failure(o.know(g.runs[0].segment).bad))
	}
}

// failure names the segment, the shards and the reasons.
func (g *group) failure(bad layout.Mask) error {
	r := &g.runs[0]
	kind, why := g.kind, g.why
	for p := bad & r.geometry.Participants(r.shape) &^ g.gone &^ g.asked; p != 0; p &= p - 1 {
		if s, _ := p.Nth(0); s != r.shard {
			why = append(why, fmt.Sprintf("shard %d failed before", s))
			kind = errs.Unavailable
		}
	}
	left := r.geometry.Participants(r.shape).Count() - len(why)
	return errs.New(kind, fmt.Sprintf("read segment %d at %d", r.segment, r.offset), "%d of %d units are needed, %d can be had: %s",
		g.need, r.geometry.Participants(r.shape).Count(), left, strings.Join(why, "; "))
}

// blame notes why a shard is of no help.
func (g *group) blame(s layout.ShardIndex, err error) {
	if errs.KindOf(err) != errs.Corrupt {
		g.kind = errs.Unavailable
	}
	g.why = append(g.why, fmt.Sprintf("shard %d %v (%v)", s, errs.KindOf(err), err))
}

// spare asks one more participant when one is late.
func (o *Op) spare(g *group, late *Request) {
	if g.state != collecting {
		return
	}
	r := &g.runs[0]
	free := r.geometry.Participants(r.shape).Without(r.shard) &^ g.asked &^ o.know(r.segment).bad
	if s, ok := free.Nth(0); ok && late.state == asked {
		o.enlist(g, s)
	}
}

// lose goes on without a participant.
func (o *Op) lose(g *group, r *Request, err error) {
	g.gone = g.gone.With(r.Shard)
	g.blame(r.Shard, err)
	if g.state == collecting {
		o.recruit(g)
	}
}

// arrive takes in a participant's good unit.
func (o *Op) arrive(g *group, r *Request, v *Verdict) {
	if g.state != collecting {
		return
	}
	if err := g.agree(v.headers); err != nil {
		r.state = failed
		o.do(Action{Kind: Report, Segment: r.Segment, Shard: r.Shard, Reason: errs.Corrupt, Offset: r.runs[0].offset})
		o.lose(g, r, err)
		return
	}
	if g.good = g.good.With(r.Shard); g.good.Count() < g.need {
		return
	}
	g.state = complete
	for p := g.asked &^ g.good &^ g.gone; p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		o.drop(g.peers[s])
	}
	o.advance(g.owner)
}

// agree compares headers with those of the first good participant: all of one
// stripe are equal but for the shard.
func (g *group) agree(headers []*stripe.Header) error {
	if g.headers == nil {
		g.headers = headers
		return nil
	}
	for i, h := range headers {
		w := g.headers[i]
		if h.Epoch != w.Epoch || h.Seq != w.Seq || h.Blocks != w.Blocks || !slices.Equal(h.CRCs, w.CRCs) {
			return errs.New(errs.Corrupt, "", "the header at %d is of epoch %d, seq %d, another shard's of epoch %d, seq %d", h.Offset, h.Epoch, h.Seq, w.Epoch, w.Seq)
		}
	}
	return nil
}

// advance decodes what is complete. A request that is only late keeps its
// buffer until all its groups are complete; then it is canceled.
func (o *Op) advance(owner *Request) {
	if owner.state != failed {
		for _, g := range o.groups {
			if g.owner == owner && g.state != complete && g.state != abandoned {
				return
			}
		}
		o.drop(owner)
		owner.state = failed
	}
	for _, g := range o.groups {
		if g.owner == owner && g.state == complete {
			g.state = decoding
			o.do(Action{Kind: Decode, Group: &g.public})
		}
	}
}

// ownerFailed goes on without a late request: its groups alone count.
func (o *Op) ownerFailed(r *Request, err error) {
	for _, g := range o.groups {
		if g.owner != r || o.over {
			continue
		}
		g.blame(r.Shard, err)
		if g.state == stuck {
			o.giveUp(g.failure(o.know(r.Segment).bad))
		}
	}
	if !o.over {
		o.advance(r)
	}
}

// abandon stops a group whose owner answered after all.
func (o *Op) abandon(g *group) {
	g.state = abandoned
	for _, r := range g.peers {
		if r != nil {
			o.drop(r)
		}
	}
}

// decoded takes in the result of a Decode.
func (o *Op) decoded(g *group, err error) {
	if err != nil {
		o.giveUp(errs.As(err, errs.Corrupt, "read segment %d at %d", g.runs[0].segment, g.runs[0].offset))
		return
	}
	g.state = decodedOK
	if g.owner.groups--; g.owner.groups == 0 {
		o.left--
	}
}
