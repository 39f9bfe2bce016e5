package meta

import (
	"errors"
	"strings"
	"testing"

	"strake/internal/errs"
	"strake/proto/pb"
)

// able has a fake chunk server's heartbeats tell what its device was measured to do.
func (f *fakeChunk) able(bytes, ops int64) {
	f.mu.Lock()
	f.capacity = &pb.Rate{Bytes: bytes, Ops: ops}
	f.mu.Unlock()
	eventually(f.c.t, "the capacity is known", func() bool {
		for _, d := range must(f.c, pb.MetaClient.ListReservations, &pb.ListReservationsRequest{}).Devices {
			if d.Device == f.device && d.Rate.Bytes == bytes {
				return true
			}
		}
		return false
	})
}

func job(name string, bytes, ops int64, ttlMs uint64) *pb.Reservation {
	return &pb.Reservation{Job: name, Class: "training", Rate: &pb.Rate{Bytes: bytes, Ops: ops}, TtlMs: ttlMs}
}

// measuredCell is a cell of three devices of 1000 bytes and 100 operations a second,
// which can promise two of them, with 1200 bytes reserved for a job for a minute.
func measuredCell(t *testing.T) *apiClient {
	_, c, servers := chunks(t, 3)
	for _, s := range servers {
		s.able(1000, 100)
	}
	must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 1, Reservation: job("a", 1200, 0, 60_000)})
	return c
}

// TestARefusalSaysWhatIsFreeShortAndExpected, a dry run says the same, and neither
// counts a job's own reservation against it.
func TestARefusalSaysWhatIsFreeShortAndExpected(t *testing.T) {
	c := measuredCell(t)
	_, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 2, Reservation: job("b", 1000, 0, 60_000)})
	if !errors.Is(err, errs.NoSpace) || !strings.Contains(err.Error(), "800 or 80 are free") || !strings.Contains(errs.HintOf(err), "200 bytes/s and 0 ops/s are short; enough ends in") {
		t.Errorf("more than is free: %v; %s", err, errs.HintOf(err))
	}
	_, err = call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 3, Reservation: job("b", 2001, 0, 60_000)})
	if !errors.Is(err, errs.NoSpace) || !strings.Contains(errs.HintOf(err), "no reservation that ends") {
		t.Errorf("more than there is: %v; %s", err, errs.HintOf(err))
	}
	_, err = call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 4, Reservation: job("b", 700, 70, 60_000)})
	if !errors.Is(err, errs.NoSpace) {
		t.Errorf("bytes and operations that fit only without each other: %v", err)
	}
	dry := must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 5, DryRun: true, Reservation: job("b", 1000, 0, 60_000)})
	if dry.Fits || dry.Short.Bytes != 200 || dry.ExpectedMs == 0 || dry.ExpectedMs > 60_000 || len(dry.Devices) != 3 {
		t.Errorf("a dry run: %v", dry)
	}
	if own := must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 6, DryRun: true, Reservation: job("a", 1200, 0, 60_000)}); !own.Fits || own.Reserved.Bytes != 0 {
		t.Errorf("a dry run of what the job has: %v", own)
	}
	if _, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 7, DryRun: true, Reservation: job("a", 1201, 0, 60_000)}); !errors.Is(err, errs.Conflict) {
		t.Errorf("a dry run with other figures: %v", err)
	}
}

// TestWhatAClassKeepsIsAdmittedToo: it can't take what was promised to a job, and no
// job gets what it keeps.
func TestWhatAClassKeepsIsAdmittedToo(t *testing.T) {
	c := measuredCell(t)
	classes := must(c, pb.MetaClient.ListClasses, &pb.ListClassesRequest{}).Classes
	set := func(command uint64, bytes int64) error {
		classes[0].Reservation = &pb.Rate{Bytes: bytes}
		r, err := call(c, pb.MetaClient.SetClass, &pb.SetClassRequest{Command: command, Class: &pb.QosClass{Number: classes[0].Number, Name: classes[0].Name,
			Weight: classes[0].Weight, Reservation: &pb.Rate{Bytes: bytes}, Changed: classes[0].Changed}})
		if err == nil {
			classes[0] = r.Class
		}
		return err
	}
	if err := set(11, 801); !errors.Is(err, errs.NoSpace) || !strings.Contains(err.Error(), "reserve for class inference") {
		t.Errorf("a byte more than is free: %v", err)
	}
	if err := set(12, 700); err != nil {
		t.Errorf("less than is free: %v", err)
	}
	if err := set(13, 750); err != nil {
		t.Errorf("somewhat more than it has: %v", err)
	}
	if _, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 14, Reservation: job("b", 51, 0, 60_000)}); !errors.Is(err, errs.NoSpace) {
		t.Errorf("a job gets what the class keeps: %v", err)
	}
	if err := set(15, 0); err != nil {
		t.Fatal(err)
	}
	must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 16, Reservation: job("b", 51, 0, 60_000)})
}

// TestAReservationEndsByItself when its time is over; it is gone for whoever asks, and
// what it held is free.
func TestAReservationEndsByItself(t *testing.T) {
	c := measuredCell(t)
	must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 21, Reservation: job("short", 800, 0, 1000)})
	eventually(t, "it ends", func() bool {
		_, err := call(c, pb.MetaClient.ListReservations, &pb.ListReservationsRequest{Job: "short"})
		return errors.Is(err, errs.NotFound)
	})
	for name, err := range map[string]error{
		"renew": ask(call(c, pb.MetaClient.RenewReservation, &pb.RenewReservationRequest{Command: 22, Job: "short"})),
		"end":   ask(call(c, pb.MetaClient.EndReservation, &pb.EndReservationRequest{Command: 23, Job: "short"})),
	} {
		if !errors.Is(err, errs.NotFound) || !strings.Contains(errs.HintOf(err), "its time was over") {
			t.Errorf("%s what has expired: %v; %s", name, err, errs.HintOf(err))
		}
	}
	must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 24, Reservation: job("next", 800, 0, 60_000)})
	if left := must(c, pb.MetaClient.ListReservations, &pb.ListReservationsRequest{}); len(left.Reservations) != 2 {
		t.Errorf("%v", left.Reservations)
	}
}

// TestWhatCantBeMeantOfClassesIsRefused by the leader, before anything is written.
func TestWhatCantBeMeantOfClassesIsRefused(t *testing.T) {
	c := api(t, cell(t, 1)...)
	for name, class := range map[string]*pb.QosClass{
		"a number beyond 255":  {Number: 256, Name: "inference"},
		"a limit of one byte":  {Name: "slow", Limit: &pb.Rate{Bytes: 1}},
		"a reservation of -1":  {Name: "odd", Reservation: &pb.Rate{Ops: -1}},
		"a weight of one less": {Name: "odd", Weight: -1},
	} {
		_, err := call(c, pb.MetaClient.SetClass, &pb.SetClassRequest{Command: uint64(len(name)), Add: class.Number == 0, Class: class})
		if !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, r := range []*pb.Reservation{job("", 1, 0, 60_000), job("a b", 1, 0, 60_000), job(strings.Repeat("x", 129), 1, 0, 60_000), job("j", 1, 0, 1<<50)} {
		if _, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: uint64(100 + i), Reservation: r}); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("job %q for %d ms: %v", r.Job, r.TtlMs, err)
		}
	}
}

func ask[R any](_ R, err error) error { return err }

// TestAReservationIsForATenant: named or not, the default tenant is one; another
// tenant's is another reservation, and a name that can't be is refused.
func TestAReservationIsForATenant(t *testing.T) {
	c := measuredCell(t)
	of := func(tenant string) *pb.Reservation {
		r := job("a", 1200, 0, 60_000)
		r.Tenant = tenant
		return r
	}
	if again := must(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 31, Reservation: of("default")}); again.Reservation.Tenant != "default" {
		t.Errorf("a repeat that names the tenant: %v", again)
	}
	if _, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 32, Reservation: of("team")}); !errors.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "of tenant default") {
		t.Errorf("the same job for another tenant: %v", err)
	}
	if _, err := call(c, pb.MetaClient.Reserve, &pb.ReserveRequest{Command: 33, Reservation: of("Not/One")}); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("an impossible tenant: %v", err)
	}
}
