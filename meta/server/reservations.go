package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/qos"
	"strake/meta/state"
	"strake/proto/pb"
)

// Reserve implements pb.MetaServer.
func (s *Server) Reserve(ctx context.Context, r *pb.ReserveRequest) (*pb.ReserveReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	want := r.GetReservation()
	class, err := view.ClassByName(want.GetClass())
	if err != nil {
		return nil, err
	}
	ttl, err := ttlIn(want.GetTtlMs())
	if err != nil {
		return nil, err
	}
	capacity, devices, unmeasured := s.qos.capacity(view, s.alive.up)
	cmd := state.Reserve{ID: state.CommandID(r.GetCommand()), CapacityBytes: capacity.Bytes, CapacityOps: capacity.Ops,
		Reservation: state.Reservation{Job: want.GetJob(), Class: class.Number, Bytes: want.GetRate().GetBytes(), Ops: want.GetRate().GetOps(), TTLNs: int64(ttl)}}
	reply := s.admission(view, cmd.Reservation, capacity)
	if _, has := view.Reservation(want.GetJob()); r.GetDryRun() {
		if err := state.CheckReserve(cmd); err != nil {
			return nil, err
		}
		reply.Reservation, reply.Devices, reply.Unmeasured = want, devices, uint32(unmeasured)
		return reply, nil
	} else if has != nil && !reply.Fits && state.CheckReserve(cmd) == nil {
		return nil, shortOf(cmd.Reservation, reply, unmeasured)
	}
	if err := s.do(ctx, cmd); err != nil {
		return nil, err
	}
	view = s.machine.View()
	got, err := view.Reservation(want.GetJob())
	if err != nil {
		return nil, err
	}
	reply = s.admission(view, state.Reservation{}, capacity)
	reply.Reservation, reply.Fits = s.reservationOut(view, got), true
	return reply, nil
}

func ttlIn(ms uint64) (time.Duration, error) {
	if ms > uint64(state.MaxTTL.Milliseconds()) {
		return 0, errs.New(errs.InvalidArgument, "reserve", "a time of %d ms, want at most %v", ms, state.MaxTTL)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// admission compares what is wanted with what is free, and tells when enough will
// be, if nobody renews.
func (s *Server) admission(view *state.View, want state.Reservation, capacity qos.Rate) *pb.ReserveReply {
	reserved := view.Reserved()
	lacks := func(reserved qos.Rate) qos.Rate {
		lack := func(want, have int64) int64 {
			if want == 0 {
				return 0
			}
			return max(0, want-have)
		}
		return qos.Rate{Bytes: lack(want.Bytes, capacity.Bytes-reserved.Bytes), Ops: lack(want.Ops, capacity.Ops-reserved.Ops)}
	}
	short := lacks(reserved)
	reply := &pb.ReserveReply{Fits: short.IsZero(), Capacity: rateOut(capacity), Reserved: rateOut(reserved), Short: rateOut(short)}
	if reply.Fits {
		return reply
	}
	list := view.Reservations()
	left := map[state.ReservationID]time.Duration{}
	for _, r := range list {
		left[r.ID] = max(0, s.qos.left(r))
	}
	slices.SortFunc(list, func(a, b state.Reservation) int { return cmp.Compare(left[a.ID], left[b.ID]) })
	for _, r := range list {
		reserved.Bytes, reserved.Ops = reserved.Bytes-r.Bytes, reserved.Ops-r.Ops
		if lacks(reserved).IsZero() {
			reply.ExpectedMs = uint64(max(1, left[r.ID].Milliseconds()))
			break
		}
	}
	return reply
}

// shortOf says what is free, what is short, and when more is expected.
func shortOf(want state.Reservation, r *pb.ReserveReply, unmeasured int) error {
	free := func(capacity, reserved int64) int64 { return max(0, capacity-reserved) }
	err := errs.New(errs.NoSpace, "reserve for job "+want.Job, "%d bytes/s and %d ops/s are wanted, %d and %d are free: the cell was measured to do %d and %d less one server, of which %d and %d are reserved",
		want.Bytes, want.Ops, free(r.Capacity.Bytes, r.Reserved.Bytes), free(r.Capacity.Ops, r.Reserved.Ops), r.Capacity.Bytes, r.Capacity.Ops, r.Reserved.Bytes, r.Reserved.Ops)
	switch {
	case r.ExpectedMs > 0:
		return err.WithHint("%d bytes/s and %d ops/s are short; enough ends in %v unless it is renewed", r.Short.Bytes, r.Short.Ops, time.Duration(r.ExpectedMs)*time.Millisecond)
	case unmeasured > 0:
		return err.WithHint("%d devices were never measured and count for nothing until they have served some load (`strake reserve ls` tells): `strake server calibrate`, and ask again", unmeasured)
	}
	return err.WithHint("ask for less, or add servers: no reservation that ends makes room for that")
}

// RenewReservation implements pb.MetaServer.
func (s *Server) RenewReservation(ctx context.Context, r *pb.RenewReservationRequest) (*pb.RenewReservationReply, error) {
	ttl, err := ttlIn(r.GetTtlMs())
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, state.RenewReservation{ID: state.CommandID(r.GetCommand()), Job: r.GetJob(), TTLNs: int64(ttl)}); err != nil {
		return nil, err
	}
	view := s.machine.View()
	got, err := view.Reservation(r.GetJob())
	if err != nil {
		return nil, err
	}
	return &pb.RenewReservationReply{Reservation: s.reservationOut(view, got)}, nil
}

// EndReservation implements pb.MetaServer.
func (s *Server) EndReservation(ctx context.Context, r *pb.EndReservationRequest) (*pb.EndReservationReply, error) {
	return &pb.EndReservationReply{}, s.do(ctx, state.EndReservation{ID: state.CommandID(r.GetCommand()), Job: r.GetJob()})
}

// ListReservations implements pb.MetaServer.
func (s *Server) ListReservations(ctx context.Context, r *pb.ListReservationsRequest) (*pb.ListReservationsReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	capacity, devices, unmeasured := s.qos.capacity(view, s.alive.up)
	reply := &pb.ListReservationsReply{Capacity: rateOut(capacity), Devices: devices, Unmeasured: uint32(unmeasured)}
	if job := r.GetJob(); job != "" {
		one, err := view.Reservation(job)
		if err != nil {
			return nil, err
		}
		reply.Reservations = append(reply.Reservations, s.reservationOut(view, one))
		return reply, nil
	}
	for _, one := range view.Reservations() {
		reply.Reservations = append(reply.Reservations, s.reservationOut(view, one))
	}
	return reply, nil
}

func (s *Server) reservationOut(view *state.View, r state.Reservation) *pb.Reservation {
	class, _ := view.ClassByNumber(r.Class)
	return &pb.Reservation{Id: uint64(r.ID), Job: r.Job, Class: class.Name, Rate: &pb.Rate{Bytes: r.Bytes, Ops: r.Ops},
		TtlMs: uint64(time.Duration(r.TTLNs).Milliseconds()), LeftMs: uint64(max(0, s.qos.left(r).Milliseconds())), Served: rateOut(s.qos.servedOf(r.Class))}
}
