package server

import (
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/meta/replica"
	"strake/meta/state"
	"strake/proto/pb"
)

const (
	// memberEvery is how often the leader asks the metadata servers what they are,
	// memberTimeout how long one may take.
	memberEvery   = time.Second
	memberTimeout = time.Second
)

// recordMembers keeps on record which directory each metadata server runs on and how
// old that is, so that an old copy of it is known when it is put back. A cell of one
// server has nobody to tell.
func (s *Server) recordMembers(ctx context.Context) {
	ticker := time.NewTicker(memberEvery)
	defer ticker.Stop()
	told := map[string]bool{} // old copies that were logged
	for {
		if members := s.replica.Members(); len(members) > 1 {
			s.forgetMembers(ctx, members)
			for _, m := range members {
				s.recordMember(ctx, m.Address, told)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// forgetMembers takes those off the record that are members no more: what comes
// under their names later is another server.
func (s *Server) forgetMembers(ctx context.Context, members []replica.Member) {
	for _, known := range s.machine.View().Cell().Members {
		if !slices.ContainsFunc(members, func(m replica.Member) bool { return m.Address == known.Address }) {
			_ = s.do(ctx, state.RecordMember{Member: state.Member{Address: known.Address}}) // again in a second
		}
	}
}

func (s *Server) recordMember(ctx context.Context, addr string, told map[string]bool) {
	p, err := s.ping(ctx, addr)
	if err != nil || p.GetId() != addr || p.GetDirectory() == 0 {
		return // not there; again in a second
	}
	now := state.Member{Address: addr, Directory: p.GetDirectory(), Life: p.GetLife()}
	if record := s.machine.View().Cell(); record.Member(addr) == now {
		return
	}
	err = s.do(ctx, state.RecordMember{Member: now})
	if errs.KindOf(err) == errs.Conflict && !told[addr] {
		told[addr] = true
		s.log.Error("a metadata server runs on an old copy of its directory: remove it, empty the directory, add it again", "peer", addr, "err", err)
	}
}

// ping asks a metadata server what it is.
func (s *Server) ping(ctx context.Context, addr string) (*pb.PeekReply, error) {
	if self := s.opts.Peek(nil); self.GetId() == addr {
		return self, nil
	}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	conn, err := s.opts.Pool.Get(addr)
	if err != nil {
		return nil, err
	}
	p, err := pb.NewMetaClient(conn).Peek(ctx, &pb.PeekRequest{})
	return p, pb.FromStatus(err)
}
