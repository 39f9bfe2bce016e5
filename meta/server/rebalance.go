package server

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// Rebalance implements pb.MetaServer.
func (s *Server) Rebalance(ctx context.Context, r *pb.RebalanceRequest) (*pb.RebalanceReply, error) {
	var err error
	switch r.GetChange() {
	case pb.RebalanceRequest_NONE:
	case pb.RebalanceRequest_START, pb.RebalanceRequest_STOP:
		err = s.do(ctx, state.Rebalance{ID: state.CommandID(r.GetCommand()), On: r.GetChange() == pb.RebalanceRequest_START})
		s.wake()
	default:
		err = errs.New(errs.InvalidArgument, "rebalance", "change %d is not known", r.GetChange())
	}
	if err != nil {
		return nil, err
	}
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	return s.rebalanceOut(view), nil
}

func (s *Server) rebalanceOut(view *state.View) *pb.RebalanceReply {
	out := &pb.RebalanceReply{Running: view.Cell().Rebalancing != 0, GoalPermille: reconcile.BalanceGoal}
	s.control.with(func(p *reconcile.Planner, _ time.Duration) {
		fills := p.Fills(view)
		b := reconcile.BalanceOf(fills)
		out.SpreadPermille, out.LeftBytes, out.Tasks = uint64(b.Spread), b.Bytes+p.Moving(), uint64(p.Moves())
		for _, f := range fills {
			out.Fills = append(out.Fills, &pb.DeviceFill{Device: uint64(f.Device), Server: uint64(f.Server), TotalBytes: f.Total, HeldBytes: uint64(f.Holds)})
		}
	})
	m := s.made
	m.mu.Lock()
	defer m.mu.Unlock()
	out.MovedShards, out.MovedBytes, out.BytesPerSecond = m.moved, m.movedBytes, m.rate(time.Now())
	if out.BytesPerSecond > 0 {
		out.EtaS = (out.LeftBytes + out.BytesPerSecond - 1) / out.BytesPerSecond
	}
	return out
}
