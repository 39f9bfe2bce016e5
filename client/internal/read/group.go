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
	gone  layout.Mask // participants that failed
	good  layout.Mask // once complete: participants whose units are decoded from
	why   []string    // reasons of the lost shard and of those that failed
	kind  errs.Kind   // Deadline if anybody only lacked time, else Unavailable if anything may come back, else Corrupt
	mixed bool        // a participant failed in some blocks, not in all

	loans []loan      // of shards that are asked by direct requests
	lent  layout.Mask // of asked: those whose loan stands
	proud bool        // borrows no more

	peers    [layout.MaxShards]*Request
	versions []version        // what right units say they are of; one, but for stale shards
	headers  []*stripe.Header // once complete: per run
	public   Group
}

// version is a stripe as some participants know it.
type version struct {
	headers []*stripe.Header // per run
	good    layout.Mask
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

// Peers are the requests whose bytes Decode wants; what Loans gives is in the
// caller's buffer.
func (g *Group) Peers() (peers [layout.MaxShards]*Request) {
	for p := g.group.good &^ g.group.lent; p != 0; p &= p - 1 {
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
	n := len(o.groups)
	if n < cap(o.groups) {
		o.groups = o.groups[:n+1]
	} else {
		o.groups = append(o.groups, nil)
	}
	if o.groups[n] == nil {
		o.groups[n] = &group{}
	}
	g := o.groups[n]
	*g = group{id: n, owner: owner, need: p.shape.Data.Count(), kind: errs.Corrupt,
		runs: g.runs[:0], why: g.why[:0], loans: g.loans[:0], versions: g.versions[:0]}
	g.public = Group{n, g}
	return g
}

// scatter gives each of a group's parts a group of its own.
func (o *Op) scatter(g *group, parts []run) {
	o.abandon(g)
	g.owner.groups += len(parts) - 1
	first := len(o.groups)
	for _, p := range parts {
		one := o.newGroup(g.owner, p)
		one.proud = g.proud
		one.runs = append(one.runs, p)
		if g.owner.state == failed {
			one.why, one.kind = append(one.why, g.why[0]), g.kind
		}
	}
	for i := first; i < first+len(parts) && !o.over; i++ {
		o.recruit(o.groups[i])
	}
}

// blocks gives a group's single blocks.
func (g *group) blocks() (parts []run) {
	for _, r := range g.runs {
		for at := 0; at < r.length; at += layout.BlockSize {
			parts = append(parts, r.part(at, layout.BlockSize))
		}
	}
	return parts
}

// headerLen is the most that a run's stripe header is likely to take.
func headerLen(p *run) int {
	unit := int(p.shape.UnitBlocks())
	participants, blocks := p.geometry.Participants(p.shape).Count(), p.shape.Data.Count()*unit
	return (&stripe.Header{}).EncodedLen() + 16*blocks + 4*participants*unit
}

// recruit asks as many participants as are still needed: data shards first, and
// before these those that the caller's own requests ask.
func (o *Op) recruit(g *group) {
	r := &g.runs[0]
	bad := o.know(r.segment).bad
	free := r.geometry.Participants(r.shape).Without(r.shard) &^ g.asked &^ bad
	o.borrow(g, free)
	free &^= g.lent
	for g.wants() > 0 {
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

// starve: there are not enough participants. If some are bad in some blocks
// only, each block may still find enough, and is tried alone. A group of a late
// request may be saved by its owner.
func (o *Op) starve(g *group) {
	if parts := g.blocks(); (g.mixed || len(g.versions) > 1) && len(parts) > 1 {
		o.scatter(g, parts)
		return
	}
	g.state = stuck
	o.dismiss(g, g.asked)
	if g.owner.state == failed {
		o.giveUp(g.failure(o.know(g.runs[0].segment)))
	}
}

// dismiss cancels participants that were asked in vain.
func (o *Op) dismiss(g *group, set layout.Mask) {
	for ; set != 0; set &= set - 1 {
		s, _ := set.Nth(0)
		if r := g.peers[s]; r != nil {
			o.drop(r)
		}
	}
}

// failure names the segment, the shards and the reasons.
func (g *group) failure(known *segment) error {
	r := &g.runs[0]
	kind, why := g.kind, g.why
	for p := known.bad & r.geometry.Participants(r.shape) &^ g.gone &^ g.asked; p != 0; p &= p - 1 {
		if s, _ := p.Nth(0); s != r.shard {
			why = append(why, fmt.Sprintf("shard %d failed before", s))
			kind = worse(kind, known.kind)
		}
	}
	for p := g.minority(); p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		why = append(why, fmt.Sprintf("shard %d has another stripe there", s))
	}
	left := r.geometry.Participants(r.shape).Count() - len(why)
	return errs.New(kind, fmt.Sprintf("read segment %d at %d", r.segment, r.offset), "%d of %d units are needed, %d can be had: %s",
		g.need, r.geometry.Participants(r.shape).Count(), left, strings.Join(why, "; "))
}

// blame notes why a shard is of no help.
func (g *group) blame(s layout.ShardIndex, err error) {
	g.kind = worse(g.kind, errs.KindOf(err))
	g.why = append(g.why, fmt.Sprintf("shard %d %v (%v)", s, errs.KindOf(err), err))
}

// worse gives the kind of a read that lacks shards for two reasons, the first of
// which is such a kind already: Deadline if one of them only lacked time, so that
// more of it would have helped; else Unavailable if it may come back; else Corrupt.
func worse(kind, other errs.Kind) errs.Kind {
	switch {
	case other == errs.Deadline:
		return errs.Deadline
	case other == errs.Corrupt || kind == errs.Deadline:
		return kind
	}
	return errs.Unavailable
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

// spareBorrowers asks one more for each group that waits for a late request's rows.
func (o *Op) spareBorrowers(late *Request) {
	for i := 0; i < len(o.groups) && !o.over; i++ {
		if g := o.groups[i]; g.borrows(late) {
			o.spare(g, late)
		}
	}
}

// lose goes on without a participant.
func (o *Op) lose(g *group, r *Request, err error) {
	g.gone = g.gone.With(r.Shard)
	g.mixed = g.mixed || errs.KindOf(err) == errs.Corrupt
	g.blame(r.Shard, err)
	if g.state == collecting {
		o.recruit(g)
	}
}

// arrive takes in a participant's good unit. The group is complete when enough
// participants agree on what the stripe is.
func (o *Op) arrive(g *group, r *Request, v *Verdict) {
	if g.state != collecting {
		return
	}
	at := g.versionOf(v.headers)
	at.good = at.good.With(r.Shard)
	o.weigh(g, at)
}

// weigh completes the group if enough participants agree on a version, those that
// lend counted in: what is decoded from these is checked all the same.
func (o *Op) weigh(g *group, at *version) {
	good := at.good | g.paid()
	if good.Count() < g.need {
		o.recruit(g) // if the last one disagrees with others
		return
	}
	g.state, g.good, g.headers = complete, at.good|firstOf(good&^at.good, g.need-at.good.Count()), at.headers
	for p := g.minority(); p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		o.do(Action{Kind: Report, Segment: g.owner.Segment, Shard: s, Reason: errs.Corrupt, Offset: g.runs[0].offset})
	}
	o.dismiss(g, g.asked)
	o.advance(g.owner)
}

// firstOf gives the first n members of a set.
func firstOf(m layout.Mask, n int) (first layout.Mask) {
	for ; n > 0; n-- {
		s, _ := m.Nth(0)
		first, m = first.With(s), m.Without(s)
	}
	return first
}

// versionOf finds or adds the version that headers belong to: all headers of one
// stripe are equal but for the shard.
func (g *group) versionOf(headers []*stripe.Header) *version {
	same := func(a, b *stripe.Header) bool {
		return a.Epoch == b.Epoch && a.Seq == b.Seq && a.Blocks == b.Blocks && slices.Equal(a.CRCs, b.CRCs)
	}
	for i := range g.versions {
		if slices.EqualFunc(g.versions[i].headers, headers, same) {
			return &g.versions[i]
		}
	}
	g.versions = append(g.versions, version{headers: headers})
	return &g.versions[len(g.versions)-1]
}

// most is the version that the most participants have.
func (g *group) most() *version {
	most := 0
	for i := range g.versions {
		if g.versions[i].good.Count() > g.versions[most].good.Count() {
			most = i
		}
	}
	return &g.versions[most]
}

// minority are the participants that disagree with the most.
func (g *group) minority() (m layout.Mask) {
	if len(g.versions) < 2 {
		return 0
	}
	most := g.most()
	for i := range g.versions {
		if at := &g.versions[i]; at != most {
			m |= at.good
		}
	}
	return m
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
			o.giveUp(g.failure(o.know(r.Segment)))
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

// abandonAll stops all groups of a direct request.
func (o *Op) abandonAll(owner *Request) {
	for _, g := range o.groups {
		if g.owner == owner {
			o.abandon(g)
		}
	}
}

// decoded takes in the result of a Decode.
func (o *Op) decoded(g *group, err error) {
	switch {
	case err != nil && g.good&g.lent != 0:
		o.doubt(g)
		return
	case err != nil:
		o.giveUp(errs.As(err, errs.Corrupt, "read segment %d at %d", g.runs[0].segment, g.runs[0].offset))
		return
	}
	g.state = decodedOK
	if g.owner.groups--; g.owner.groups == 0 {
		o.left--
		o.pay(g.owner)
	}
}
