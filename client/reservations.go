package client

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/proto/pb"
)

// Reservation is bandwidth and operations that are kept for a job: for its tenant's
// work in a class.
type Reservation struct {
	ID     uint64        `json:"id"`
	Job    string        `json:"job"`
	Class  string        `json:"class"`
	Tenant string        `json:"tenant"` // "" is the tenant default
	Rate   Rate          `json:"rate"`
	TTL    time.Duration `json:"ttl_ns"`
	Left   time.Duration `json:"left_ns"` // until it ends unless it is renewed
	Served Rate          `json:"served"`  // what its tenant's work in the class gets now, cell-wide
}

// Admission says whether and why a reservation fits.
type Admission struct {
	Reservation Reservation   `json:"reservation"`
	Fits        bool          `json:"fits"`
	Capacity    Rate          `json:"capacity"` // measured, less the largest server
	Reserved    Rate          `json:"reserved"`
	Short       Rate          `json:"short"`
	Expected    time.Duration `json:"expected_ns"` // until enough ends, if nobody renews; 0: not by waiting
	// Devices tells, of a dry run alone, how the capacity was measured; Unmeasured
	// ones count for nothing.
	Devices    []DeviceCapacity `json:"devices,omitempty"`
	Unmeasured int              `json:"unmeasured,omitempty"`
}

// Capacity is what the cell can promise, and how each device was measured.
type Capacity struct {
	Total      Rate             `json:"total"` // less the largest server
	Devices    []DeviceCapacity `json:"devices"`
	Unmeasured int              `json:"unmeasured"`
}

// DeviceCapacity is what a device was measured to do.
type DeviceCapacity struct {
	Device uint64        `json:"device"`
	Rate   Rate          `json:"rate"`
	Age    time.Duration `json:"age_ns"`
	How    string        `json:"how"` // calibrated, scheduler or peak
}

func capacityFromPB(p *pb.DeviceCapacity) *DeviceCapacity {
	if p == nil {
		return nil
	}
	return &DeviceCapacity{p.GetDevice(), rateFromPB(p.GetRate()), time.Duration(p.GetAgeS()) * time.Second, p.GetHow()}
}

func capacitiesFromPB(list []*pb.DeviceCapacity) (out []DeviceCapacity) {
	for _, p := range list {
		out = append(out, *capacityFromPB(p))
	}
	return out
}

// Reserve keeps bandwidth for a job until its TTL is over; an equal repeat for the
// same job succeeds. With dry, nothing is kept and the answer says whether it would
// fit. Errors: ErrInvalidArgument, ErrNotFound for the class, ErrConflict when the
// job has other figures, ErrNoSpace telling what is free, short and expected.
func (c *Cell) Reserve(ctx context.Context, r Reservation, dry bool) (Admission, error) {
	op := "reserve for job " + r.Job
	if r.TTL < 0 {
		return Admission{}, errs.New(errs.InvalidArgument, op, "a time of %v, want more than nothing", r.TTL)
	}
	request := &pb.ReserveRequest{Command: newCommand(), DryRun: dry,
		Reservation: &pb.Reservation{Job: r.Job, Class: r.Class, Tenant: r.Tenant, Rate: rateToPB(r.Rate), TtlMs: uint64(r.TTL.Milliseconds())}}
	a, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.ReserveReply, error) { return m.Reserve(ctx, request) })
	return Admission{Reservation: reservationOf(a.GetReservation()), Fits: a.GetFits(), Capacity: rateFromPB(a.GetCapacity()),
		Reserved: rateFromPB(a.GetReserved()), Short: rateFromPB(a.GetShort()), Expected: time.Duration(a.GetExpectedMs()) * time.Millisecond,
		Devices: capacitiesFromPB(a.GetDevices()), Unmeasured: int(a.GetUnmeasured())}, err
}

// RenewReservation begins a reservation's time anew; a ttl of 0 keeps the one it
// has. Errors: ErrNotFound, ErrInvalidArgument.
func (c *Cell) RenewReservation(ctx context.Context, job string, ttl time.Duration) (Reservation, error) {
	if ttl < 0 {
		return Reservation{}, errs.New(errs.InvalidArgument, "renew reservation of job "+job, "a time of %v, want more than nothing", ttl)
	}
	request := &pb.RenewReservationRequest{Command: newCommand(), Job: job, TtlMs: uint64(ttl.Milliseconds())}
	r, err := call(ctx, c, "renew reservation of job "+job, func(ctx context.Context, m pb.MetaClient) (*pb.RenewReservationReply, error) {
		return m.RenewReservation(ctx, request)
	})
	return reservationOf(r.GetReservation()), err
}

// EndReservation gives a job's reservation back. Error: ErrNotFound.
func (c *Cell) EndReservation(ctx context.Context, job string) error {
	request := &pb.EndReservationRequest{Command: newCommand(), Job: job}
	_, err := call(ctx, c, "end reservation of job "+job, func(ctx context.Context, m pb.MetaClient) (*pb.EndReservationReply, error) {
		return m.EndReservation(ctx, request)
	})
	return err
}

// Reservations gives all reservations, or a job's, and what the cell can promise.
// Error: ErrNotFound for a job without one.
func (c *Cell) Reservations(ctx context.Context, job string) ([]Reservation, Capacity, error) {
	r, err := call(ctx, c, "list reservations", func(ctx context.Context, m pb.MetaClient) (*pb.ListReservationsReply, error) {
		return m.ListReservations(ctx, &pb.ListReservationsRequest{Job: job})
	})
	var list []Reservation
	for _, p := range r.GetReservations() {
		list = append(list, reservationOf(p))
	}
	return list, Capacity{Total: rateFromPB(r.GetCapacity()), Devices: capacitiesFromPB(r.GetDevices()), Unmeasured: int(r.GetUnmeasured())}, err
}

func reservationOf(p *pb.Reservation) Reservation {
	return Reservation{ID: p.GetId(), Job: p.GetJob(), Class: p.GetClass(), Tenant: p.GetTenant(), Rate: rateFromPB(p.GetRate()), TTL: time.Duration(p.GetTtlMs()) * time.Millisecond,
		Left: time.Duration(p.GetLeftMs()) * time.Millisecond, Served: rateFromPB(p.GetServed())}
}
