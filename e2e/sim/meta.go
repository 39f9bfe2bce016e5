package sim

import (
	"bytes"
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/state"
)

const metaServers = 3

// metaService is the metadata service: an ordered log that stands in for Raft,
// three states that apply it, and the leader's soft state.
type metaService struct {
	s        *Sim
	log      [][]byte
	replicas [metaServers]*replica
	leader   int // -1: none
	term     uint64
	waiting  []*proposal // not committed yet, in order
	fibers   simclient.Fibers

	// Of the term.
	planner  *reconcile.Planner
	began    time.Duration
	sessions map[layout.SessionID][]simclient.Event
	nextID   uint64
	heard    map[layout.ServerID]time.Duration
	figures  map[layout.DeviceID]state.DeviceUpdate
	downs    map[layout.ServerID]bool
	creating map[layout.SegmentID]bool
	moves    moveBudget
	barriers map[uint64]barrier
}

// replica is one metadata server: a state and how far it applied the log.
type replica struct {
	process
	m       *metaService
	number  int
	st      *state.State
	applied int
	behind  bool // an apply is on its way
}

// proposal is a command that waits to be committed.
type proposal struct {
	cmd  []byte
	done func(state.Result)
}

func newMetaService(s *Sim) *metaService {
	m := &metaService{s: s, leader: -1, fibers: simclient.Fibers{Pool: &s.bench.fibers}}
	for i := range m.replicas {
		m.replicas[i] = &replica{process: process{l: s.loop, at: node(i), up: true}, m: m, number: i, st: state.New()}
	}
	return m
}

// view is the leader's state. What unwinds after a term sees some server's.
func (m *metaService) view() *state.View { return m.replicas[max(m.leader, 0)].st.View() }

// newest is the state that has applied the most.
func (m *metaService) newest() *state.View {
	best := m.replicas[0]
	for _, r := range m.replicas {
		if r.applied > best.applied {
			best = r
		}
	}
	return best.st.View()
}

// elect makes a server the leader. What the old one had proposed is committed or
// lost, as the seed wills; nobody is told.
func (m *metaService) elect(number int) {
	m.stepDown()
	waiting := m.waiting
	m.waiting = nil
	for _, p := range waiting {
		if !m.s.chance(500) {
			break // the log has no gaps: what follows is lost too
		}
		m.log = append(m.log, p.cmd)
		m.s.rare("a command committed by a later leader, its reply lost")
	}
	r := m.replicas[number]
	r.catchUp(len(m.log))
	m.leader = number
	m.term++
	m.s.note("leader", uint64(number), m.term)
	m.begin()
}

// stepDown ends the leader's term.
func (m *metaService) stepDown() {
	if m.leader < 0 {
		return
	}
	m.leader = -1
	m.fibers.Kill()
}

// spawn runs work that ends with the term.
func (m *metaService) spawn(work func(f *simclient.Fiber)) {
	m.fibers.Go(work)
}

// propose carries a command out: it is committed a little later, unless the term
// ends before.
func (m *metaService) propose(f *simclient.Fiber, cmd state.Command) (r state.Result, err error) {
	term := m.term
	ok := f.Wait(func(done func()) {
		p := &proposal{cmd: state.Encode(cmd), done: func(got state.Result) {
			r = got
			done()
		}}
		m.waiting = append(m.waiting, p)
		m.s.after(m.s.between(100*time.Microsecond, 1500*time.Microsecond), func() { m.commit(term) })
	})
	if !ok {
		return r, errs.New(errs.Unavailable, "", "the term ended")
	}
	return r, r.Err
}

// commit commits the oldest proposal of the term.
func (m *metaService) commit(term uint64) {
	if m.term != term || m.leader < 0 || len(m.waiting) == 0 {
		return
	}
	p := m.waiting[0]
	m.waiting = m.waiting[1:]
	m.log = append(m.log, p.cmd)
	leader := m.replicas[m.leader]
	result := leader.catchUp(len(m.log))
	for _, r := range m.replicas {
		r.follow()
	}
	p.done(result)
}

// follow makes a follower apply the log, with lag.
func (r *replica) follow() {
	if r.behind || r.applied == len(r.m.log) {
		return
	}
	r.behind = true
	r.l.after(r.l.between(200*time.Microsecond, 40*time.Millisecond), func() {
		r.behind = false
		r.catchUp(len(r.m.log))
	})
}

// catchUp applies the log up to n and gives the last result.
func (r *replica) catchUp(n int) (last state.Result) {
	for r.applied < n {
		cmd, err := state.Decode(r.m.log[r.applied])
		if err != nil {
			r.m.s.fail("log entry %d can't be decoded: %v", r.applied+1, err)
			return last
		}
		r.applied++
		last = r.st.Apply(uint64(r.applied), cmd)
		if r.applied > r.m.s.seen {
			r.m.s.seen = r.applied
			r.m.s.committed(cmd, &last, r.st)
		}
		if r.number == r.m.leader {
			r.m.happened(last.Events)
		}
	}
	return last
}

// restart makes a metadata server go on from its own snapshot, and checks that
// it is the same state.
func (r *replica) restart() {
	var before, after bytes.Buffer
	if _, err := r.st.Snapshot().WriteTo(&before); err != nil {
		r.m.s.fail("snapshot: %v", err)
		return
	}
	st, err := state.Restore(bytes.NewReader(before.Bytes()))
	if err != nil {
		r.m.s.fail("restore of metadata server %d: %v", r.number, err)
		return
	}
	if _, err := st.Snapshot().WriteTo(&after); err != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
		r.m.s.fail("metadata server %d restored another state than it had (%v)", r.number, err)
		return
	}
	r.st = st
	r.m.s.note("metadata server restarts", uint64(r.number))
}

// agree checks that all metadata servers that applied the log have one state.
func (m *metaService) agree() {
	var first []byte
	for _, r := range m.replicas {
		r.catchUp(len(m.log))
		var b bytes.Buffer
		_, _ = r.st.Snapshot().WriteTo(&b)
		if first == nil {
			first = b.Bytes()
		}
		if !bytes.Equal(first, b.Bytes()) {
			m.s.fail("metadata server %d has another state than server 0 at log index %d", r.number, r.applied)
		}
		if err := r.st.View().Check(); err != nil {
			m.s.fail("metadata server %d: %v", r.number, err)
		}
	}
}
