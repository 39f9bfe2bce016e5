package sim

import (
	"slices"
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/state"
)

const (
	sessionTTL    = 6 * time.Second
	serverSilence = 3 * time.Second
	controlEvery  = 200 * time.Millisecond
	chunkCall     = 2 * time.Second
	recoverCall   = time.Minute
	rebuildAfter  = 8 * time.Second
	deleteAfter   = 5 * time.Second
	cleanAfter    = 3 * time.Second
	cleanCall     = time.Minute
)

// begin starts a term: everybody gets the full time again.
func (m *metaService) begin() {
	limits := reconcile.DefaultLimits()
	limits.DownAfter, limits.UpAfter, limits.SessionTTL = serverSilence, serverSilence*2/3, sessionTTL
	limits.RecoverAfter, limits.CreateWithin, limits.RebuildAfter = 2*time.Second, 10*time.Second, rebuildAfter
	limits.DeleteAfter = deleteAfter
	limits.CleanAfter, limits.GarbageLeast = cleanAfter, 4*leastGarbage
	m.planner, m.began = reconcile.New(limits), m.s.now
	m.sessions, m.nextID = map[layout.SessionID][]simclient.Event{}, m.term<<32
	m.heard, m.figures = map[layout.ServerID]time.Duration{}, map[layout.DeviceID]state.DeviceUpdate{}
	m.downs, m.creating = map[layout.ServerID]bool{}, map[layout.SegmentID]bool{}
	m.barriers = map[uint64]barrier{}
	m.moves = moveBudget{volumes: map[layout.VolumeID]*bucket{}}
	for _, s := range m.view().Sessions() {
		m.sessions[s.ID] = nil
	}
	for _, s := range m.view().Servers() {
		m.heard[s.ID] = m.s.now
		m.downs[s.ID] = !s.Up
	}
	m.control(m.term)
}

func (m *metaService) clock() time.Duration { return m.s.now - m.began }

func (m *metaService) hear(id layout.ServerID) {
	m.heard[id] = m.s.now
	m.planner.Heard(id, m.clock())
}

// alive tells whether a server was heard lately.
func (m *metaService) alive(id layout.ServerID) bool {
	at, ok := m.heard[id]
	return ok && m.s.now-at < serverSilence
}

// happened takes what a command changed, on the leader.
func (m *metaService) happened(events []state.Event) {
	if m.planner == nil {
		return
	}
	for _, e := range events {
		switch e := e.(type) {
		case state.SessionOpened:
			m.sessions[e.Session] = nil
		case state.SessionEnded:
			delete(m.sessions, e.Session)
		case state.LeaseTaken:
			if e.Old != 0 {
				m.tell(e.Old, simclient.Event{Volume: e.Volume})
			}
		case state.ServerRegistered:
			m.hear(e.Server)
		case state.ServerWentDown:
			m.downs[e.Server] = true
		}
	}
}

// tell queues an event for a session, unless an equal one waits there.
func (m *metaService) tell(id layout.SessionID, e simclient.Event) {
	queue, ok := m.sessions[id]
	if !ok || slices.ContainsFunc(queue, func(q simclient.Event) bool {
		return q.Server == e.Server && q.Volume == e.Volume && q.Barrier == e.Barrier
	}) {
		return
	}
	m.nextID++
	e.ID = m.nextID
	m.sessions[id] = append(queue, e)
}

// keep renews a session and gives what it must be told.
func (m *metaService) keep(q *simclient.KeepSession) (any, error) {
	queue, ok := m.sessions[q.Session]
	if !ok {
		return nil, errs.New(errs.LeaseLost, "keep the session", "session %d has ended", q.Session)
	}
	m.planner.Kept(q.Session, m.clock())
	queue = slices.DeleteFunc(slices.Clone(queue), func(e simclient.Event) bool { return e.ID <= q.Seen })
	m.sessions[q.Session] = queue
	return &simclient.Kept{Events: queue}, nil
}

// control looks at the state now and then, and begins the planner's tasks.
func (m *metaService) control(term uint64) {
	if m.term != term || m.leader < 0 {
		return
	}
	m.replicas[m.leader].do(func() {
		if m.term != term || m.leader < 0 {
			return
		}
		m.tellOfDowns()
		for _, task := range m.planner.Plan(m.view(), m.clock()) {
			m.spawn(func(f *simclient.Fiber) {
				err := m.carryOut(f, task)
				if m.term == term && m.leader >= 0 {
					m.planner.Done(task, err == nil, m.clock())
				}
			})
		}
		m.s.after(controlEvery, func() { m.control(term) })
	})
}

// tellOfDowns tells the writers of unsealed segments to move on from servers
// that went down.
func (m *metaService) tellOfDowns() {
	downs := m.downs
	m.downs = map[layout.ServerID]bool{}
	for _, id := range sortedIDs(downs) {
		srv, ok := m.view().Server(id)
		if !downs[id] || !ok || srv.Up {
			continue
		}
		for _, dev := range srv.Devices {
			page, _ := m.view().SegmentsOnDevice(dev, 0, 0)
			for i := range page {
				if v, _ := m.view().Volume(page[i].Volume); page[i].Unsealed() && v.Holder != 0 {
					m.tell(v.Holder, simclient.Event{Server: id})
				}
			}
		}
	}
}

func (m *metaService) carryOut(f *simclient.Fiber, task reconcile.Task) (err error) {
	switch t := task.(type) {
	case reconcile.MarkServer:
		m.s.note("mark server", uint64(t.Server), map[bool]uint64{true: 1}[t.Up])
		_, err = m.propose(f, state.SetServerState{Server: t.Server, Up: t.Up, Registered: t.Registered})
	case reconcile.ExpireSession:
		_, err = m.propose(f, state.ExpireSession{Session: t.Session})
	case reconcile.GiveBack:
		if m.creating[t.Segment] {
			return errs.New(errs.Busy, "give back", "segment %d is being created", t.Segment)
		}
		_, err = m.propose(f, state.DropSegments{Segments: []layout.SegmentID{t.Segment}})
	case reconcile.Recover:
		_, err = m.ask(f, t.Server, &recoverVolume{t.Volume}, recoverCall)
	case reconcile.Flatten:
		_, err = m.propose(f, state.FlattenVolume{Volume: state.VolumeRef{ID: t.Volume}})
	case reconcile.Clean:
		return m.clean(f, t)
	case reconcile.Rebuild:
		return m.rebuild(f, t)
	case reconcile.GiveUp:
		m.s.rare("a device given up")
		_, err = m.propose(f, state.ChangeDevices{Devices: []layout.DeviceID{t.Device}, Change: state.GiveUpDevice, Registered: t.Registered})
	case reconcile.Delete:
		return m.deleteSegment(f, t)
	case reconcile.Finalize:
		return m.finalizeSegment(f, t)
	case reconcile.Free:
		_, err = m.propose(f, state.FreeSegments{Volume: t.Volume})
	case reconcile.EndRebalance:
		if _, err = m.propose(f, state.Rebalance{Began: t.Began, Why: t.Why}); err == nil {
			m.s.rare("a rebalance that ended")
		}
	case reconcile.Purge:
		_, err = m.propose(f, state.PurgeVolume{Volume: t.Volume})
	}
	return err
}

// clean has a janitor clean a volume.
func (m *metaService) clean(f *simclient.Fiber, t reconcile.Clean) error {
	_, err := m.ask(f, t.Server, &cleanVolume{t.Volume}, cleanCall)
	return err
}

// ask calls a chunk server and waits for its answer, for a while.
func (m *metaService) ask(f *simclient.Fiber, id layout.ServerID, request any, limit time.Duration) (reply *simclient.ChunkReply, err error) {
	to := m.s.servers[id]
	if to == nil {
		return nil, errs.New(errs.Unavailable, "", "chunk server %d is not known", id)
	}
	over := false
	ok := f.Wait(func(done func()) {
		m.s.call(&m.replicas[m.leader].process, to, request, func(r *simclient.ChunkReply, e error) {
			if !over {
				over, reply, err = true, r, e
				done()
			}
		})
		m.s.after(limit, func() {
			if !over {
				over, err = true, errs.New(errs.Unavailable, "", "chunk server %d does not answer", id)
				done()
			}
		})
	})
	if !ok {
		return nil, errs.New(errs.Unavailable, "", "the term ended")
	}
	return reply, err
}

// askAll calls chunk servers at once and gives each one's error.
func (m *metaService) askAll(f *simclient.Fiber, requests map[layout.ServerID][]any) map[layout.ServerID]error {
	failed := map[layout.ServerID]error{}
	left := 0
	f.Wait(func(done func()) {
		for _, list := range requests {
			left += len(list)
		}
		for _, id := range sortedIDs(requests) {
			for _, q := range requests[id] {
				m.spawn(func(f *simclient.Fiber) {
					if _, err := m.ask(f, id, q, chunkCall); err != nil && failed[id] == nil {
						failed[id] = err
					}
					if left--; left == 0 {
						done()
					}
				})
			}
		}
		if left == 0 {
			done()
		}
	})
	return failed
}
