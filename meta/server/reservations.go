package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
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
	cmd := state.Reserve{ID: state.CommandID(r.GetCommand()), CapacityBytes: capacity.Bytes, CapacityOps: capacity.Ops, Joint: true,
		Reservation: state.Reservation{Job: want.GetJob(), Class: class.Number, Bytes: want.GetRate().GetBytes(), Ops: want.GetRate().GetOps(), TTLNs: int64(ttl), Tenant: want.GetTenant()}}
	if cmd.Reservation.Tenant == layout.DefaultTenant {
		cmd.Reservation.Tenant = "" // one way to say it, so that repeats are equal
	}
	if err := state.CheckReserve(cmd); err != nil {
		return nil, err
	}
	repeat, err := view.Repeats(cmd)
	if err != nil {
		return nil, err
	}
	reply := s.admission(view, want.GetJob(), cmd.Reservation.Rate(), capacity)
	if r.GetDryRun() {
		reply.Reservation, reply.Devices, reply.Unmeasured = want, devices, uint32(unmeasured)
		reply.Fits = reply.Fits || repeat
		return reply, nil
	}
	if !repeat && !reply.Fits {
		return nil, shortOf("reserve for job "+want.GetJob(), cmd.Reservation.Rate(), reply, unmeasured)
	}
	if err := s.do(ctx, cmd); err != nil {
		return nil, err
	}
	view = s.machine.View()
	got, err := view.Reservation(want.GetJob())
	if err != nil {
		return nil, err
	}
	reply = s.admission(view, "", qos.Rate{}, capacity)
	reply.Reservation, reply.Fits = s.reservationOut(view, got), true
	return reply, nil
}

// keepForClass holds what a class is to keep against what is free, where that is more
// than it has, and fills in the capacity for the state's own look.
func (s *Server) keepForClass(ctx context.Context, c *state.SetClass) error {
	view, err := s.fresh(ctx)
	if err != nil {
		return err
	}
	want, had := c.Class.Reserved(), qos.Rate{}
	if was, err := view.ClassByName(c.Class.Name); err == nil {
		had = was.Reserved()
	}
	if want.Bytes <= had.Bytes && want.Ops <= had.Ops || c.Class.Class().Params.Check() != nil {
		return nil // the state has nothing to say, or refuses it
	}
	capacity, _, unmeasured := s.qos.capacity(view, s.alive.up)
	if reply := s.admissionBeside(view, "", want, capacity, less(view.Reserved(), had)); !reply.Fits {
		return shortOf("reserve for class "+c.Class.Name, want, reply, unmeasured)
	}
	c.CapacityBytes, c.CapacityOps = capacity.Bytes, capacity.Ops
	return nil
}

func ttlIn(ms uint64) (time.Duration, error) {
	if ms > uint64(state.MaxTTL.Milliseconds()) {
		return 0, errs.New(errs.InvalidArgument, "reserve", "a time of %d ms, want at most %v", ms, state.MaxTTL)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// admission compares what is wanted with what is free, and tells when enough will be,
// if nobody renews. What the job has already is not counted twice.
func (s *Server) admission(view *state.View, job string, want, capacity qos.Rate) *pb.ReserveReply {
	var own qos.Rate
	if has, err := view.Reservation(job); err == nil {
		own = has.Rate()
	}
	return s.admissionBeside(view, job, want, capacity, less(view.Reserved(), own))
}

// admissionBeside is admission beside what is reserved by others.
func (s *Server) admissionBeside(view *state.View, job string, want, capacity, reserved qos.Rate) *pb.ReserveReply {
	short := qos.Short(want, capacity, reserved)
	reply := &pb.ReserveReply{Fits: short.IsZero(), Capacity: rateOut(capacity), Reserved: rateOut(reserved), Short: rateOut(short)}
	if reply.Fits {
		return reply
	}
	list := slices.DeleteFunc(view.Reservations(), func(r state.Reservation) bool { return r.Job == job })
	left := map[state.ReservationID]time.Duration{}
	for _, r := range list {
		left[r.ID] = max(0, s.qos.left(r))
	}
	slices.SortFunc(list, func(a, b state.Reservation) int { return cmp.Compare(left[a.ID], left[b.ID]) })
	for _, r := range list {
		reserved = less(reserved, r.Rate())
		if qos.Short(want, capacity, reserved).IsZero() {
			reply.ExpectedMs = uint64(max(1, left[r.ID].Milliseconds()))
			break
		}
	}
	return reply
}

func less(a, b qos.Rate) qos.Rate { return qos.Rate{Bytes: a.Bytes - b.Bytes, Ops: a.Ops - b.Ops} }

// shortOf says what is free, what is short, and when more is expected.
func shortOf(op string, want qos.Rate, r *pb.ReserveReply, unmeasured int) error {
	free := qos.Free(rateIn(r.Capacity), rateIn(r.Reserved))
	err := errs.New(errs.NoSpace, op, "%d bytes/s and %d ops/s are wanted, %d or %d are free: the cell was measured to do %d or %d less one server, of which %d and %d are reserved",
		want.Bytes, want.Ops, free.Bytes, free.Ops, r.Capacity.Bytes, r.Capacity.Ops, r.Reserved.Bytes, r.Reserved.Ops)
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
		TtlMs: uint64(time.Duration(r.TTLNs).Milliseconds()), LeftMs: uint64(max(0, s.qos.left(r).Milliseconds())), Served: rateOut(s.qos.servedOf(r.Class, layout.TenantOf(r.Tenant))),
		Tenant: cmp.Or(r.Tenant, layout.DefaultTenant)}
}
