package sim

import (
	"slices"
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// metaCall sends a request to a metadata server for a process.
func (s *Sim) metaCall(from *process, server int, request any, done func(any, error)) {
	life, at := from.life, s.meta.replicas[server]
	reply := func(r any, err error) {
		s.net.send(at.at, from.at, kindMeta, true, func() {
			if from.life == life {
				from.do(func() { done(r, err) })
			}
		})
	}
	s.net.send(from.at, at.at, kindMeta, false, func() {
		at.do(func() { s.meta.serve(server, request, reply) })
	})
}

// serve answers a request that came to a metadata server.
func (m *metaService) serve(server int, request any, reply func(any, error)) {
	if m.leader != server {
		reply(nil, simclient.NotLeader{Leader: m.leader})
		return
	}
	switch request.(type) {
	case *heartbeat, *simclient.KeepSession, *simclient.OpenVolume, *simclient.GetSegments, *simclient.RequestMove, *simclient.AnswerBarrier, *simclient.GetVolume, *checkShards:
		reply(m.handle(nil, request)) // nothing to wait for
		return
	}
	m.spawn(func(f *simclient.Fiber) {
		r, err := m.handle(f, request)
		if m.leader == server {
			reply(r, err)
		}
	})
}

// handle does one call of the API as the leader.
func (m *metaService) handle(f *simclient.Fiber, request any) (any, error) {
	done := &simclient.Kept{}
	switch q := request.(type) {
	case *simclient.OpenSession:
		r, err := m.propose(f, state.OpenSession{ID: state.CommandID(q.Command), Owner: q.Owner, Janitor: q.Janitor})
		return &simclient.Session{ID: r.Session, Cell: cellID, TTL: sessionTTL}, err
	case *simclient.KeepSession:
		return m.keep(q)
	case *simclient.CloseSession:
		_, err := m.propose(f, state.CloseSession{Session: q.Session})
		return done, err
	case *simclient.OpenVolume:
		o, err := m.view().Open(refTo(q.Volume, q.Name))
		if err != nil {
			return nil, err
		}
		return m.opened(&o), nil
	case *simclient.GetSegments:
		return m.located(q.IDs), nil
	case *simclient.AcquireLease:
		return m.acquire(f, q)
	case *simclient.ReleaseLease:
		_, err := m.propose(f, state.ReleaseLease{ID: state.CommandID(q.Command), Session: q.Session, Volume: q.Volume, Epoch: q.Epoch, LastSeq: q.LastSeq})
		return done, err
	case *simclient.AllocateSegments:
		return m.allocate(f, q)
	case *simclient.SealSegments:
		_, err := m.propose(f, state.SealSegments{ID: state.CommandID(q.Command), Volume: q.Volume, Epoch: q.Epoch, Seals: sealsIn(q.Seals)})
		return done, err
	case *simclient.CloseEpoch:
		_, err := m.propose(f, state.CloseEpoch{ID: state.CommandID(q.Command), Volume: q.Volume, Epoch: q.Epoch, Cut: q.Cut, Seals: sealsIn(q.Seals), Undecided: q.Undecided})
		return done, err
	case *simclient.RecordRoot:
		r, err := m.propose(f, state.RecordRoot{ID: state.CommandID(q.Command), Volume: q.Volume, Epoch: q.Epoch,
			Root: state.Root{Number: q.Root.Number, Covers: q.Root.Covers, Page: q.Root.Page,
				Live: q.Root.Live, Own: q.Root.Own, Pages: q.Root.Pages},
			MapLists: sealsIn(q.Lists), Retired: q.Retired, RetiredMap: q.RetiredMap, Flat: q.Flat})
		return &simclient.Recorded{Retired: r.Segments}, err
	case *simclient.RequestMove:
		return m.requestMove(q)
	case *registerServer:
		r, err := m.propose(f, q.cmd)
		if err != nil {
			return nil, err
		}
		return &registered{r.Server, r.Devices[0]}, nil
	case *heartbeat:
		return done, m.heartbeat(q)
	case *checkShards:
		return m.check(q)
	case *reportShards:
		return done, m.markReported(f, q.list)
	case *simclient.ReportShard:
		return done, m.markReported(f, []*pb.ShardReport{badShard(q.Ref, q.Device, q.Kind)})
	}
	return m.frozenCall(f, request)
}

// refTo names a volume by its id, or by its name.
func refTo(id layout.VolumeID, name string) state.VolumeRef {
	if id != 0 {
		return state.VolumeRef{ID: id}
	}
	return named(name)
}

func (m *metaService) acquire(f *simclient.Fiber, q *simclient.AcquireLease) (any, error) {
	r, err := m.propose(f, state.AcquireLease{ID: state.CommandID(q.Command), Session: q.Session, Volume: refTo(q.Volume, q.Name), Force: q.Force})
	if err != nil {
		return nil, err
	}
	return &simclient.Granted{Epoch: r.Epoch, Clean: r.Open.Clean, LastSeq: r.Open.LastSeq, Open: m.opened(r.Open)}, nil
}

func sealsIn(list []stripe.Seal) []state.Seal {
	out := make([]state.Seal, len(list))
	for i, s := range list {
		out[i] = state.SealOf(s)
	}
	return out
}

func (m *metaService) opened(o *state.OpenVolume) *simclient.Opened {
	v := &o.Volume
	out := &simclient.Opened{
		Volume: m.volumeInfo(v),
		Root:   simclient.Root{Number: v.Root.Number, Covers: v.Root.Covers, Page: v.Root.Page},
	}
	for _, c := range o.Cuts {
		out.Cuts = append(out.Cuts, simclient.Cut{Before: c.Before, Seq: c.Seq})
	}
	for i := range o.Segments {
		out.Segments = append(out.Segments, m.segment(&o.Segments[i]))
	}
	for i := range o.Ancestors {
		a := simclient.Ancestor{Volume: o.Ancestors[i].Volume, Limit: o.Ancestors[i].Limit}
		for j := range o.Ancestors[i].Segments {
			a.Segments = append(a.Segments, m.segment(&o.Ancestors[i].Segments[j]))
		}
		out.Ancestors = append(out.Ancestors, a)
	}
	return out
}

// segment gives a segment as clients see it. The list that a root attached to an
// unsealed map segment is not shown.
func (m *metaService) segment(g *state.Segment) *simclient.Segment {
	out := &simclient.Segment{ID: g.ID, Volume: g.Volume, Epoch: g.Epoch, Geometry: g.Geometry, Length: g.ShardLength, Map: g.Map}
	for _, p := range g.Placements {
		d, _ := m.view().Device(p.Device)
		out.Shards = append(out.Shards, simclient.Place{Server: d.Server, Device: p.Device, Generation: p.Generation})
	}
	if g.State == state.Sealed || g.State == state.Finalized {
		seal := g.Seal.Stripe()
		out.Seal = &seal
	}
	return out
}

func (m *metaService) located(ids []layout.SegmentID) *simclient.Segments {
	out := &simclient.Segments{}
	for _, id := range ids {
		if g, ok := m.view().Segment(id); ok {
			out.List = append(out.List, m.segment(&g))
		}
	}
	return out
}

// writes checks that a session writes a volume, under an epoch.
func (m *metaService) writes(volume layout.VolumeID, epoch layout.Epoch, session layout.SessionID) error {
	v, err := m.view().Resolve(state.VolumeRef{ID: volume})
	switch {
	case err != nil:
		return err
	case epoch != v.Epoch:
		return errs.New(errs.StaleEpoch, "", "volume %d is written under epoch %d, not %d", v.ID, v.Epoch, epoch)
	case session != v.Holder:
		return errs.New(errs.LeaseLost, "", "session %d does not hold volume %d", session, v.ID)
	}
	return nil
}

// requestMove grants a move by time-out from the budget; one off a server that
// is down costs nothing.
func (m *metaService) requestMove(q *simclient.RequestMove) (any, error) {
	if err := m.writes(q.Volume, q.Epoch, q.Session); err != nil {
		return nil, err
	}
	srv, _ := m.view().Server(q.Server)
	if !srv.Up || !m.alive(srv.ID) {
		return &simclient.Move{Granted: true}, nil
	}
	if retry := m.moves.take(m.s.now, q.Volume, m.openSegments()); retry > 0 {
		return &simclient.Move{Retry: retry}, nil
	}
	return &simclient.Move{Granted: true}, nil
}

func (m *metaService) openSegments() (n int) {
	page, _ := m.view().Volumes("", "", 0)
	for i := range page {
		n += int(page[i].Unsealed)
	}
	return n
}

func (m *metaService) heartbeat(q *heartbeat) error {
	srv, ok := m.view().Server(q.server)
	if !ok {
		return errs.New(errs.NotFound, "heartbeat", "server %d is not registered", q.server)
	}
	m.hear(srv.ID)
	for _, d := range q.devices {
		m.figures[d.Device] = d
		m.planner.Holds(d.Device, d.Used)
		if was, _ := m.view().Device(d.Device); was.State == state.DeviceDead {
			m.s.rare("a server that was given up is asked to register")
			return errs.New(errs.NotFound, "heartbeat", "device %d was given up: register", d.Device)
		}
	}
	return nil
}

// moveBudget grants moves by time-out: one a second for each volume, a twentieth
// of the open segments a minute for the cell. It begins full with each term.
type moveBudget struct {
	cell    bucket
	volumes map[layout.VolumeID]*bucket
}

type bucket struct {
	tokens float64
	at     time.Duration
	begun  bool
}

func (b *bucket) fill(now time.Duration, rate, most float64) {
	if !b.begun {
		b.tokens, b.begun = most, true
	}
	b.tokens = min(most, b.tokens+(now-b.at).Seconds()*rate)
	b.at = now
}

func (b *bucket) wait(rate float64) time.Duration {
	if b.tokens >= 1 {
		return 0
	}
	return time.Duration((1-b.tokens)/rate*float64(time.Second)) + 1
}

func (m *moveBudget) take(now time.Duration, volume layout.VolumeID, open int) time.Duration {
	perMinute := max(1, 0.05*float64(open))
	m.cell.fill(now, perMinute/60, perMinute)
	v := m.volumes[volume]
	if v == nil {
		v = &bucket{}
		m.volumes[volume] = v
	}
	v.fill(now, 1, 1)
	if wait := max(v.wait(1), m.cell.wait(perMinute/60)); wait > 0 {
		return wait
	}
	v.tokens--
	m.cell.tokens--
	return 0
}

func sortedIDs[K ~uint64, V any](m map[K]V) []K {
	ids := make([]K, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
