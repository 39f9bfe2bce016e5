package state

import (
	"cmp"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
)

// ReservationID numbers reservations; it is never used again.
type ReservationID uint64

// Reservation is bandwidth and operations that are kept for a job: for its tenant's
// work in a class, and a time that the leader counts from the last renewal that it saw.
type Reservation struct {
	ID    ReservationID `cbor:"1,keyasint,omitempty"`
	Job   string        `cbor:"2,keyasint"`
	Class layout.Class  `cbor:"3,keyasint"`
	Bytes int64         `cbor:"4,keyasint,omitempty"` // a second, cell-wide
	Ops   int64         `cbor:"5,keyasint,omitempty"`
	TTLNs int64         `cbor:"6,keyasint"`
	// Renewed is the log index of the last renewal, or of the reservation itself.
	Renewed uint64 `cbor:"7,keyasint,omitempty"`
	Tenant  string `cbor:"8,keyasint,omitempty" since:"4"` // empty: the tenant "default"
}

// Rate is what is reserved.
func (r Reservation) Rate() qos.Rate { return qos.Rate{Bytes: r.Bytes, Ops: r.Ops} }

// Bounds of reservations.
const (
	MaxReservations = 1024
	MinTTL          = time.Second
	MaxTTL          = 366 * 24 * time.Hour
	MaxJob          = 128 // bytes
)

// Reserve keeps bandwidth for a job, or with Renew begins its time anew. An equal
// repeat for the same job is a success whatever the command id, an unequal one a
// conflict. Capacity is what the leader measured, less one server; the sum of all
// reservations, those of classes among them, may not exceed it.
type Reserve struct {
	ID            CommandID   `cbor:"1,keyasint,omitempty"`
	Reservation   Reservation `cbor:"2,keyasint"`
	CapacityBytes int64       `cbor:"3,keyasint,omitempty"` // the leader's part
	CapacityOps   int64       `cbor:"4,keyasint,omitempty"`
	// Joint: bytes and operations take the devices' time from each other (qos.Part),
	// and classes' reservations count. Older programs' commands, which counted jobs'
	// bytes and operations apart, are applied as they were.
	Joint bool `cbor:"5,keyasint,omitempty" since:"3"`
}

// RenewReservation begins a reservation's time anew; a TTL of 0 keeps the one it has.
type RenewReservation struct {
	ID    CommandID `cbor:"1,keyasint"`
	Job   string    `cbor:"2,keyasint"`
	TTLNs int64     `cbor:"3,keyasint,omitempty"`
}

// EndReservation gives a job's reservation back. With Renewed set it is its
// expiry: refused when it was renewed since.
type EndReservation struct {
	ID      CommandID `cbor:"1,keyasint,omitempty"`
	Job     string    `cbor:"2,keyasint"`
	Renewed uint64    `cbor:"3,keyasint,omitempty"`
}

// Type, CommandID and request: see Command.
func (c Reserve) Type() Type                    { return TypeReserve }
func (c RenewReservation) Type() Type           { return TypeRenewReservation }
func (c EndReservation) Type() Type             { return TypeEndReservation }
func (c Reserve) CommandID() CommandID          { return c.ID }
func (c RenewReservation) CommandID() CommandID { return c.ID }
func (c EndReservation) CommandID() CommandID   { return c.ID }
func (c Reserve) request() Command              { c.CapacityBytes, c.CapacityOps, c.Joint = 0, 0, false; return c }
func (c RenewReservation) request() Command     { return c }
func (c EndReservation) request() Command       { return c }

func (c Reserve) check() error {
	op, r := "reserve for job "+c.Reservation.Job, c.Reservation
	if err := checkJob(r.Job); err != nil {
		return err
	}
	params := qos.Params{Reservation: r.Rate()}
	if r.Tenant != "" {
		if err := layout.CheckName("tenant", r.Tenant); err != nil {
			return errs.As(err, errs.InvalidArgument, "%s", op)
		}
	}
	switch {
	case r.ID != 0 || r.Renewed != 0:
		return errs.New(errs.InvalidArgument, op, "number and time of the renewal are not for the caller to choose")
	case r.Class == layout.ClassDefault:
		return errs.New(errs.InvalidArgument, op, "no class").WithHint("--class inference")
	case params.Reservation.IsZero():
		return errs.New(errs.InvalidArgument, op, "neither bytes nor operations").WithHint("--bandwidth 1GiB or --iops 5000")
	}
	if err := params.Check(); err != nil {
		return errs.As(err, errs.InvalidArgument, "%s", op)
	}
	return checkTTL(op, r.TTLNs)
}

func checkJob(job string) error {
	if job == "" || len(job) > MaxJob {
		return errs.New(errs.InvalidArgument, "reserve", "a job's name of %d bytes, want 1 to %d", len(job), MaxJob)
	}
	for _, c := range []byte(job) {
		if c <= ' ' || c > '~' {
			return errs.New(errs.InvalidArgument, "reserve", "job %q: want printable characters without spaces", job)
		}
	}
	return nil
}

func checkTTL(op string, ns int64) error {
	if ttl := time.Duration(ns); ttl < MinTTL || ttl > MaxTTL {
		return errs.New(errs.InvalidArgument, op, "a time of %v, want %v to %v", ttl, MinTTL, MaxTTL)
	}
	return nil
}

func (c Reserve) apply(t *tables, r *Result) error {
	op, want := "reserve for job "+c.Reservation.Job, c.Reservation
	if repeat, err := c.repeats(t); repeat || err != nil {
		r.Repeat = repeat
		return err
	}
	if err := t.checkClass(op, want.Class); err != nil {
		return err
	}
	if len(t.reservations) >= MaxReservations {
		return errs.New(errs.Overloaded, op, "there are %d reservations", len(t.reservations)).WithHint("end those that are not used")
	}
	if err := c.admit(t, op); err != nil {
		return err
	}
	t.last.Reservation++
	want.ID, want.Renewed = t.last.Reservation, t.applied
	t.setReservations(append(slices.Clone(t.reservations), want))
	r.emit(ReservationMade{Job: want.Job})
	return nil
}

// repeats tells whether the job has exactly this reservation; with other figures it is
// a conflict.
func (c Reserve) repeats(t *tables) (bool, error) {
	was, ok := t.reservations.of(c.Reservation.Job)
	if !ok {
		return false, nil
	}
	want := c.Reservation
	want.ID, want.Renewed = was.ID, was.Renewed
	if was != want {
		return false, errs.New(errs.Conflict, "reserve for job "+want.Job, "it has %d bytes/s and %d ops/s in class %d of tenant %s for %v", was.Bytes, was.Ops, was.Class, cmp.Or(was.Tenant, layout.DefaultTenant), time.Duration(was.TTLNs)).
			WithHint("`strake reserve rm %s` ends that one; `strake reserve renew` begins its time anew", want.Job)
	}
	return true, nil
}

// admit refuses what does not fit beside what is reserved. Error: NoSpace.
func (c Reserve) admit(t *tables, op string) error {
	capacity, want := qos.Rate{Bytes: c.CapacityBytes, Ops: c.CapacityOps}, c.Reservation.Rate()
	if c.Joint {
		return admitted(op, want, capacity, t.reserved())
	}
	sum := t.reservations.sum()
	if want.Bytes > 0 && sum.Bytes+want.Bytes > capacity.Bytes || want.Ops > 0 && sum.Ops+want.Ops > capacity.Ops {
		return short(op, want, capacity, qos.Rate{Bytes: capacity.Bytes - sum.Bytes, Ops: capacity.Ops - sum.Ops})
	}
	return nil
}

// admitted refuses what does not fit beside what is reserved.
func admitted(op string, want, capacity, reserved qos.Rate) error {
	if qos.Short(want, capacity, reserved).IsZero() {
		return nil
	}
	return short(op, want, capacity, qos.Free(capacity, reserved))
}

func short(op string, want, capacity, free qos.Rate) error {
	return errs.New(errs.NoSpace, op, "%d bytes/s and %d ops/s are wanted, %d or %d are free of the cell's %d or %d less one server",
		want.Bytes, want.Ops, max(0, free.Bytes), max(0, free.Ops), capacity.Bytes, capacity.Ops).
		WithHint("`strake reserve create --dry-run` tells when more is expected")
}

func (c RenewReservation) check() error {
	if c.TTLNs != 0 {
		if err := checkTTL("renew reservation", c.TTLNs); err != nil {
			return err
		}
	}
	return checkJob(c.Job)
}

func (c RenewReservation) apply(t *tables, r *Result) error {
	was, ok := t.reservations.of(c.Job)
	if !ok {
		return noReservation("renew reservation", c.Job)
	}
	was.Renewed, was.TTLNs = t.applied, cmp.Or(c.TTLNs, was.TTLNs)
	t.setReservations(append(t.reservations.without(c.Job), was))
	r.emit(ReservationRenewed{Job: c.Job})
	return nil
}

func (c EndReservation) check() error { return checkJob(c.Job) }

func (c EndReservation) apply(t *tables, r *Result) error {
	was, ok := t.reservations.of(c.Job)
	switch {
	case !ok:
		return noReservation("end reservation", c.Job)
	case c.Renewed != 0 && c.Renewed != was.Renewed:
		return errs.New(errs.Conflict, "end reservation", "job %s was renewed at log index %d, after %d", c.Job, was.Renewed, c.Renewed)
	}
	t.setReservations(t.reservations.without(c.Job))
	r.emit(ReservationEnded{Job: c.Job, Expired: c.Renewed != 0})
	return nil
}

func noReservation(op, job string) error {
	return errs.New(errs.NotFound, op, "job %s has no reservation", job).
		WithHint("it was ended or its time was over; `strake reserve ls` lists those that stand")
}

// reservationTable are the reservations by id. It is replaced, never changed in
// place: views share it.
type reservationTable []Reservation

func (list reservationTable) of(job string) (Reservation, bool) {
	i := slices.IndexFunc(list, func(r Reservation) bool { return r.Job == job })
	if i < 0 {
		return Reservation{}, false
	}
	return list[i], true
}

func (list reservationTable) without(job string) reservationTable {
	return slices.DeleteFunc(slices.Clone(list), func(r Reservation) bool { return r.Job == job })
}

// sum is what all of them hold.
func (list reservationTable) sum() (s qos.Rate) {
	for _, r := range list {
		s = s.Plus(r.Rate())
	}
	return s
}

// reserved is what jobs and classes hold.
func (t *tables) reserved() qos.Rate { return t.reservations.sum().Plus(t.classes.reserved()) }

func (t *tables) setReservations(list reservationTable) {
	slices.SortFunc(list, func(a, b Reservation) int { return cmp.Compare(a.ID, b.ID) })
	if len(list) == 0 {
		list = nil
	}
	t.reservations, t.qosChanged = list, t.applied
}

// check refuses a table that no commands make.
func (list reservationTable) check(t *tables) error {
	last, jobs := ReservationID(0), map[string]bool{}
	for _, r := range list {
		bare := r
		bare.ID, bare.Renewed = 0, 0
		if r.ID <= last || r.ID > t.last.Reservation || r.Renewed == 0 || r.Renewed > t.applied || jobs[r.Job] ||
			(Reserve{Reservation: bare}).check() != nil || t.checkClass("check", r.Class) != nil {
			return errs.New(errs.Internal, "check reservations", "I11: reservation %d of job %q after %d", r.ID, r.Job, last)
		}
		last, jobs[r.Job] = r.ID, true
	}
	if len(list) > MaxReservations {
		return errs.New(errs.Internal, "check reservations", "I11: %d reservations", len(list))
	}
	return nil
}

func checkQoS(t *tables) error {
	if err := t.classes.check(); err != nil {
		return err
	}
	return t.reservations.check(t)
}

// Reservations gives all reservations by id.
func (v *View) Reservations() []Reservation { return slices.Clone(v.t.reservations) }

// Reservation finds a job's. Error: NotFound.
func (v *View) Reservation(job string) (Reservation, error) {
	r, ok := v.t.reservations.of(job)
	if !ok {
		return r, noReservation("look up reservation", job)
	}
	return r, nil
}

// Reserved is what all reservations, of jobs and of classes, hold together.
func (v *View) Reserved() qos.Rate { return v.t.reserved() }

// CheckReserve is what Reserve refuses whatever the state. Errors: InvalidArgument.
func CheckReserve(c Reserve) error { return c.check() }

// Repeats tells whether a job has exactly this reservation already. Error: Conflict
// when it has other figures.
func (v *View) Repeats(c Reserve) (bool, error) { return c.repeats(v.t) }
