package replica

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stream lets raft's transport listen and dial. A server's address is the one
// that it advertises, a name that stays; it is resolved at each dial.
type stream struct {
	net.Listener
	id   string
	dial func(ctx context.Context, addr string) (net.Conn, error)
}

var _ raft.StreamLayer = (*stream)(nil)

// Dial implements raft.StreamLayer.
func (s *stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.dial(ctx, string(addr))
}

// Addr gives the advertised address.
func (s *stream) Addr() net.Addr { return advertised(s.id) }

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// transport is raft's network transport; it notes what followers answer.
type transport struct {
	*raft.NetworkTransport
	peers *peers
}

// AppendEntries implements raft.Transport. Heartbeats come this way.
func (t *transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	round, begun := t.peers.round(), time.Now()
	err := t.NetworkTransport.AppendEntries(id, target, args, resp)
	if err == nil {
		t.peers.answered(id, begun, round, args.Term, resp)
	}
	return err
}

// peers is what the leader knows of its followers by their answers.
type peers struct {
	mu    sync.Mutex
	now   uint64                 // guarded by mu: the number of the newest read round
	known map[raft.ServerID]peer // guarded by mu
}

type peer struct {
	last  uint64    // the last entry of its log
	at    time.Time // of its last answer; zero when there was none
	since time.Time // answers to requests that were sent earlier do not count
	round uint64    // the newest round that was begun before a request that it granted
	term  uint64    // of that request
}

func newPeers() *peers { return &peers{known: map[raft.ServerID]peer{}} }

// round is the number of the newest round.
func (p *peers) round() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// begin starts a new round.
func (p *peers) begin() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now++
	return p.now
}

// forget begins a server's record anew: the next server of this name may be
// another one, with an empty log.
func (p *peers) forget(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[id] = peer{since: time.Now()}
}

// answered notes an answer to a request of a term that was sent at begun, after
// round began.
func (p *peers) answered(id raft.ServerID, begun time.Time, round, term uint64, resp *raft.AppendEntriesResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[id]
	if begun.Before(k.since) {
		return
	}
	k.last, k.at = resp.LastLog, time.Now()
	if resp.Success && resp.Term == term && term >= k.term {
		k.round, k.term = max(round, k.round), term
	}
	p.known[id] = k
}

// of tells what is known of a server.
func (p *peers) of(id raft.ServerID) (peer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.known[id]
	return k, ok && !k.at.IsZero()
}

// confirm tells whether a majority of the voters, the leader among them, granted
// a request of the term that was sent after round began.
func (p *peers) confirm(self raft.ServerID, members raft.Configuration, round, term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	voters, granted := 0, 0
	for _, s := range members.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		k := p.known[s.ID]
		if s.ID == self || k.term == term && k.round >= round {
			granted++
		}
	}
	return granted > voters/2
}
