package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"strake/internal/errs"
	"strake/meta/state"
)

// knownToAll refuses a command that not every metadata server knows: one that is older
// could neither apply it nor go past it, and would end, for good, as soon as it is
// committed. The state's version tells what all know by now; beyond that each member is
// asked. Errors: Version, when one is older than the command; Unavailable, when one does
// not say.
func (s *Server) knownToAll(ctx context.Context, cmd state.Command) error {
	need := s.opts.Since(cmd)
	if need <= state.FirstCounted || need <= s.machine.View().Version() {
		return nil
	}
	op := "carry out a command of version " + fmt.Sprint(need)
	older, silent := s.membersBelow(ctx, need)
	switch {
	case len(older) > 0:
		return errs.New(errs.Version, op, "these metadata servers are older: %s", strings.Join(older, ", ")).
			WithHint("update all metadata servers first, then ask again")
	case len(silent) > 0:
		return errs.New(errs.Unavailable, op, "these metadata servers do not say which version they are of: %s", strings.Join(silent, ", ")).
			WithHint("bring them back, or take them out of the cell: strake meta rm")
	}
	return nil
}

// membersBelow asks all members at once what they read, and gives those that read less
// than a version, and those that did not answer.
func (s *Server) membersBelow(ctx context.Context, version uint32) (older, silent []string) {
	type answer struct {
		addr  string
		reads uint32
		err   error
	}
	members := s.replica.Members()
	answers := make(chan answer, len(members))
	for _, m := range members {
		go func() {
			p, err := s.ping(ctx, m.Address)
			answers <- answer{m.Address, p.GetReads(), err}
		}()
	}
	for range members {
		switch a := <-answers; {
		case a.err != nil:
			silent = append(silent, a.addr)
		case a.reads < version:
			older = append(older, fmt.Sprintf("%s (version %d)", a.addr, a.reads))
		}
	}
	slices.Sort(older)
	slices.Sort(silent)
	return older, silent
}

// joinable refuses a new member that is there and could not read the state.
func (s *Server) joinable(ctx context.Context, addr string) error {
	p, err := s.ping(ctx, addr)
	if err != nil {
		return nil // it may be started later
	}
	if need := s.machine.View().Version(); need > state.FirstCounted && p.GetReads() < need {
		return errs.New(errs.Version, "add member "+addr, "it reads version %d of the state, which is of version %d", p.GetReads(), need).
			WithHint("start a newer program there")
	}
	return nil
}
