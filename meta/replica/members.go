package replica

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

const (
	// promoteLag is how many entries a new member may be behind to get a vote.
	promoteLag = 64
	// memberPoll is how often membership is looked at while waiting.
	memberPoll = 50 * time.Millisecond
)

// Member is one server of the group.
type Member struct {
	Address   string
	Leader    bool
	Voter     bool
	Reachable bool   // it answered lately; known by the leader only
	Lag       uint64 // entries behind the leader; known by the leader only
}

// Members lists the group in the order in which its servers joined.
func (r *Replica) Members() []Member {
	rf, err := r.started()
	if err != nil {
		return nil
	}
	leader := r.Leader()
	last := rf.LastIndex()
	var list []Member
	for _, s := range rf.GetConfiguration().Configuration().Servers {
		m := Member{Address: string(s.Address), Leader: string(s.Address) == leader, Voter: s.Suffrage == raft.Voter}
		if s.ID == r.id {
			m.Reachable = true
		} else if k, ok := r.peers.of(s.ID); ok {
			m.Reachable = time.Since(k.at) < 3*r.opts.Timing.Heartbeat
			m.Lag = last - min(last, k.last)
		}
		list = append(list, m)
	}
	return list
}

// AddMember adds a server without a vote and waits until it caught up and got
// one. When ctx ends first the server stays a member and gets its vote later.
// An equal repeat is a success.
func (r *Replica) AddMember(ctx context.Context, addr string) error {
	if _, err := r.leading(); err != nil {
		return err
	}
	if _, ok := r.member(addr); !ok {
		r.peers.forget(raft.ServerID(addr))
		err := r.await(func() raft.Future { return r.raft.AddNonvoter(raft.ServerID(addr), raft.ServerAddress(addr), 0, 0) })
		if err != nil {
			return r.typed(err, "add member "+addr)
		}
		r.log.Info("member added", "peer", addr)
	}
	for {
		if m, ok := r.member(addr); ok && m.Voter {
			return nil
		}
		select {
		case <-ctx.Done():
			return errs.New(errs.Unavailable, "add member "+addr, "it is a member, but has not caught up yet").
				WithHint("start it with: strake meta serve --listen %s; it gets its vote when it caught up", addr)
		case <-r.closed:
			return errs.New(errs.Unavailable, "add member "+addr, "this server is stopping")
		case <-time.After(memberPoll):
		}
		if _, err := r.leading(); err != nil {
			return err
		}
	}
}

// RemoveMember removes a server. Error: NotFound, Conflict for the last voter.
func (r *Replica) RemoveMember(_ context.Context, addr string) error {
	if _, err := r.leading(); err != nil {
		return err
	}
	m, ok := r.member(addr)
	if !ok {
		return errs.New(errs.NotFound, "remove member "+addr, "the cell has no such member").
			WithHint("`strake status` lists the metadata servers")
	}
	voters := 0
	for _, o := range r.Members() {
		if o.Voter {
			voters++
		}
	}
	if m.Voter && voters == 1 {
		return errs.New(errs.Conflict, "remove member "+addr, "it is the only one that has a vote").
			WithHint("add another member first")
	}
	if err := r.await(func() raft.Future { return r.raft.RemoveServer(raft.ServerID(addr), 0, 0) }); err != nil {
		return r.typed(err, "remove member "+addr)
	}
	r.log.Info("member removed", "peer", addr)
	return nil
}

func (r *Replica) member(addr string) (Member, bool) {
	for _, m := range r.Members() {
		if m.Address == addr {
			return m, true
		}
	}
	return Member{}, false
}

// promote gives caught-up members their vote while this server leads.
func (r *Replica) promote(ctx context.Context) {
	ticker := time.NewTicker(memberPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, m := range r.Members() {
			if m.Voter || !m.Reachable || m.Lag > promoteLag || ctx.Err() != nil {
				continue
			}
			id, addr := raft.ServerID(m.Address), raft.ServerAddress(m.Address)
			if err := r.await(func() raft.Future { return r.raft.AddVoter(id, addr, 0, 0) }); err != nil {
				r.log.Warn("member got no vote", "peer", m.Address, "err", err)
				continue
			}
			r.log.Info("member got its vote", "peer", m.Address)
		}
	}
}
