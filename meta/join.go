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

// rejoin starts a server that has state, unless the others say that its directory
// is an old copy. It does not wait for those that say nothing: when a whole cell
// starts, nobody knows more than what is on disk.
func (s *Server) rejoin(ctx context.Context) {
	s.waitFor("the other metadata servers are asked whether this directory is an old copy")
	directory, life := s.replica.Life()
	others := append(slices.Clone(s.cfg.Peers), s.replica.Known()...)
	slices.Sort(others)
	for _, p := range s.askAll(ctx, slices.Compact(others)) {
		if p.GetKnownDirectory() == directory && p.GetKnownLife() >= life {
			s.fail(s.replica.Copied(p.GetKnownLife()))
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	s.setAsking(false)
	s.waitFor("no leader was heard of yet")
	if err := s.replica.Start(nil); err != nil && ctx.Err() == nil {
		s.fail(errs.Wrap(err, "go on from the log"))
	}
}

// askAll gives what those of the addresses say that answer.
func (s *Server) askAll(ctx context.Context, addresses []string) (said []*pb.PeekReply) {
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	replies := make(chan *pb.PeekReply, len(addresses))
	for _, addr := range addresses {
		go func() {
			if addr == s.cfg.Advertise {
				replies <- nil
				return
			}
			p, err := s.ping(ctx, addr)
			if err != nil {
				p = nil
			}
			replies <- p
		}()
	}
	for range addresses {
		if p := <-replies; p != nil {
			said = append(said, p)
		}
	}
	return said
}

func (s *Server) selfView() peerView {
	p := s.peek(nil)
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
	p, err := s.ping(ctx, addr)
	return viewOf(addr, p, err)
}

// ping asks a server what it is.
func (s *Server) ping(ctx context.Context, addr string) (*pb.PeekReply, error) {
	conn, err := s.pool.Get(addr)
	if err != nil {
		return nil, err
	}
	p, err := pb.NewMetaClient(conn).Peek(ctx, &pb.PeekRequest{Member: s.cfg.Advertise})
	return p, pb.FromStatus(err)
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
