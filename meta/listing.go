package meta

import (
	"context"
	"time"

	"strake/internal/discovery"
	"strake/internal/errs"
)

// knownPause is the wait between two looks whether the cell's id is known.
const knownPause = 200 * time.Millisecond

// list lists the server in etcd, where that is wanted. The name there gets the
// cell's id as soon as that is known.
func (s *Server) list(ctx context.Context) error {
	if s.cfg.Directory == "" {
		return nil
	}
	a, err := discovery.Parse(s.cfg.Directory)
	if err != nil {
		return err
	}
	if s.listing, err = discovery.Register(a, s.cfg.Advertise, s.cfg.Logger); err != nil {
		return err
	}
	s.wg.Go(func() {
		for ctx.Err() == nil {
			if id := s.machine.View().Cell().ID; id != 0 {
				s.listing.SetCell(uint64(id))
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(knownPause):
			}
		}
	})
	return nil
}

// findPeers learns from etcd who forms the cell, unless that was given. Error:
// Canceled.
func (s *Server) findPeers(ctx context.Context) error {
	if len(s.founders()) > 0 {
		return nil
	}
	list, err := s.listing.Founders(ctx, s.cfg.Bootstrap, s.waitFor)
	if err != nil {
		return errs.Wrap(err, "join the cell")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = list
	return nil
}

// founders are the servers that form the cell; none while etcd has not told.
func (s *Server) founders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers
}
