package server

import (
	"context"
	"fmt"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// maxExplained bounds the segments that one explanation looks at.
const maxExplained = 1 << 17

// ExplainVolume implements pb.MetaServer.
func (s *Server) ExplainVolume(ctx context.Context, r *pb.ExplainVolumeRequest) (*pb.ExplainVolumeReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	v, err := view.Resolve(refIn(r.GetTenant(), r.GetName(), 0))
	if err != nil {
		return nil, err
	}
	e := &explanation{view: view, up: s.alive.up, v: &v, name: layout.VolumeName{Tenant: v.Tenant, Volume: v.Name}.String()}
	reply := &pb.ExplainVolumeReply{Volume: volumeOut(view, &v)}
	if w, ok := s.blocked.of(v.ID, time.Now()); ok {
		reply.Blocked = e.blocked(w)
	}
	e.recovery()
	e.segments()
	e.servers()
	e.writer()
	e.losses()
	reply.Findings, reply.Healthy = append(e.bad, e.good...), len(e.bad) == 0
	return reply, nil
}

// explanation gathers what is to be said of one volume.
type explanation struct {
	view      *state.View
	up        func(serverID) bool
	v         *state.Volume
	name      string
	bad, good []*pb.Finding
}

func (e *explanation) wrong(hint, format string, args ...any) {
	e.bad = append(e.bad, &pb.Finding{Bad: true, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *explanation) well(format string, args ...any) {
	e.good = append(e.good, &pb.Finding{Text: fmt.Sprintf(format, args...)})
}

// blocked says for whom the writer waits.
func (e *explanation) blocked(w blockedWriter) *pb.Blocked {
	out := &pb.Blocked{Server: uint64(w.server), Ms: uint64(w.wait.Milliseconds()), Reason: w.reason}
	if srv, ok := e.view.Server(w.server); ok {
		out.Address = srv.DataAddress
	}
	e.wrong("", "acknowledgement has been blocked %s", w.text(e.view))
	return out
}

// recovery says why the volume can't be decided, or that it can.
func (e *explanation) recovery() {
	switch {
	case e.v.Undecided != "":
		e.wrong("bring the named servers back, with their devices; to see what giving up the rest would lose: strake volume recover "+e.name,
			"it can't be recovered: %s", e.v.Undecided)
	case e.v.Holder == 0 && e.v.Unsealed > 0:
		e.wrong("the next `strake volume import` or reader recovers it at once, the cell does within a minute",
			"%d segments that its last writer left are not sealed yet", e.v.Unsealed)
	default:
		e.well("nothing of it waits to be recovered")
	}
}

// segments counts those that miss shards, and on which servers.
func (e *explanation) segments() {
	var degraded, risk, lost, looked int
	missing := map[serverID]int{}
	for after, more := layout.SegmentID(0), true; more && looked < maxExplained; {
		var page []state.Segment
		page, more = e.view.SegmentsOfVolume(e.v.ID, after, maxPage)
		for i := range page {
			after = page[i].ID
			looked++
			if !e.view.Needed(&page[i]) {
				continue
			}
			n := e.missing(&page[i], missing)
			switch m := int(page[i].Geometry.M); {
			case n > m:
				lost++
			case n == m && n > 0:
				risk++
			case n > 0:
				degraded++
			}
		}
	}
	if lost > 0 {
		e.wrong("bring the servers below back, with their devices", "%d segments have lost more shards than their parity covers", lost)
	}
	if risk > 0 {
		e.wrong("strake rebuild status", "%d segments can lose no more shard", risk)
	}
	if degraded > 0 {
		e.wrong("strake rebuild status", "%d segments miss a shard", degraded)
	}
	if lost+risk+degraded == 0 {
		e.well("all its segments have all their shards")
	}
	for _, srv := range e.view.Servers() {
		if n := missing[srv.ID]; n > 0 {
			e.wrong("", "%d of its shards are missing on chunk server %d at %s, which is %s", n, srv.ID, srv.DataAddress, e.stateOf(&srv))
		}
	}
}

// missing counts a segment's shards that can't be read, by server too.
func (e *explanation) missing(seg *state.Segment, by map[serverID]int) (n int) {
	for i, p := range seg.Placements {
		d, _ := e.view.Device(p.Device)
		gone := d.State == state.DeviceDown || d.State == state.DeviceDead || !e.serves(d.Server)
		if gone || seg.Lost.Has(layout.ShardIndex(i)) {
			n++
			by[d.Server]++
		}
	}
	return n
}

func (e *explanation) serves(id serverID) bool {
	srv, ok := e.view.Server(id)
	return ok && srv.Up && e.up(id)
}

func (e *explanation) stateOf(srv *state.Server) string {
	if srv.Up && e.up(srv.ID) {
		return "up"
	}
	return "down"
}

// servers says whether there are enough to write to.
func (e *explanation) servers() {
	up := 0
	for _, srv := range e.view.Servers() {
		if e.serves(srv.ID) {
			up++
		}
	}
	switch g := e.v.Geometry; {
	case up < int(g.M)+1:
		e.wrong("bring servers back or add some; writing goes on by itself then",
			"writes stand still: %d servers are up, and with m=%d at least %d are needed", up, g.M, g.M+1)
	case up < g.Shards():
		e.wrong("bring servers back or add some", "new segments are narrower than %v: %d servers are up", g, up)
	default:
		e.well("%d servers are up, enough for new segments of %v", up, g)
	}
}

// writer says who writes.
func (e *explanation) writer() {
	if holder, ok := e.view.Session(e.v.Holder); ok {
		e.well("it is written by %s, under epoch %d", holder.Owner, e.v.Epoch)
		return
	}
	e.well("nobody writes it")
}

// losses puts what people gave up in mind.
func (e *explanation) losses() {
	for _, l := range e.v.Losses {
		e.well("loss was accepted by %s on %s: the log ended at seq %d", l.By, time.Unix(int64(l.AtUnix), 0).UTC().Format(time.DateTime), l.Cut)
	}
}
