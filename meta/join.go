package meta

import (
	"context"
	"slices"
	"strings"
	"time"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/proto/pb"
)

const (
	// joinPause is the wait between two looks at the peers.
	joinPause = 200 * time.Millisecond
	// peekTimeout bounds one look at one peer.
	peekTimeout = 2 * time.Second
)

// join starts the replica once that is safe. It ends then, or with ctx.
func (s *Server) join(ctx context.Context) {
	if s.findPeers(ctx) != nil {
		return // ctx ended
	}
	for {
		step, why := decide(s.selfView(), s.lookAround(ctx))
		if step == stepAsk {
			step, why = s.ask(ctx, why)
		}
		s.waitFor(why)
		var err error
		switch step {
		case stepForm:
			err = s.replica.Start(s.founders())
		case stepJoin:
			err = s.replica.Start(nil)
		}
		if step != stepWait {
			if err != nil && ctx.Err() == nil {
				s.fail(errs.Wrap(err, "join the cell"))
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(joinPause):
		}
	}
}

func (s *Server) selfView() peerView {
	p := s.peek()
	return viewOf(s.cfg.Advertise, p, nil)
}

func viewOf(address string, p *pb.PeekReply, err error) peerView {
	if err != nil {
		return peerView{address: address, silent: err.Error()}
	}
	return peerView{
		address: address, id: p.GetId(), empty: p.GetEmpty(), wiped: p.GetWiped(),
		formed: p.GetFormed(), peers: p.GetPeers(),
	}
}

// lookAround asks all other peers at once what they are.
func (s *Server) lookAround(ctx context.Context) []peerView {
	others := slices.DeleteFunc(slices.Clone(s.founders()), func(a string) bool { return a == s.cfg.Advertise })
	views := make(chan peerView, len(others))
	for _, addr := range others {
		go func() { views <- s.look(ctx, addr) }()
	}
	var list []peerView
	for range others {
		list = append(list, <-views)
	}
	slices.SortFunc(list, func(a, b peerView) int { return strings.Compare(a.address, b.address) })
	return list
}

func (s *Server) look(ctx context.Context, addr string) peerView {
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	conn, err := s.pool.Get(addr)
	if err != nil {
		return viewOf(addr, nil, err)
	}
	p, err := pb.NewMetaClient(conn).Peek(ctx, &pb.PeekRequest{})
	return viewOf(addr, p, pb.FromStatus(err))
}

// ask asks the cell that exists whether it has this server as a new member: one
// without a vote, added after the state was lost.
func (s *Server) ask(ctx context.Context, why string) (step, string) {
	self := s.cfg.Advertise
	add := "; to let it join: strake meta add " + self
	addrs := slices.DeleteFunc(slices.Clone(s.founders()), func(a string) bool { return a == self })
	if len(addrs) == 0 {
		return stepWait, why + "; empty it to form a new cell"
	}
	meta, err := dial.NewMeta(strings.Join(addrs, ","), s.cfg.Policy)
	if err != nil {
		return stepWait, err.Error()
	}
	defer meta.Close()
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	var reply *pb.StatusReply
	err = meta.Do(ctx, func(ctx context.Context, c pb.MetaClient) (err error) {
		reply, err = c.Status(ctx, &pb.StatusRequest{})
		return err
	})
	if err != nil {
		return stepWait, why + "; the cell does not answer: " + err.Error()
	}
	for _, m := range reply.GetMembers() {
		switch {
		case m.GetAddress() != self:
		case m.GetVoter():
			return stepWait, why + ", but the cell counts on its vote; to let it join as new: strake meta rm " + self + ", then strake meta add " + self
		default:
			return stepJoin, "the cell added this server"
		}
	}
	return stepWait, why + add
}
