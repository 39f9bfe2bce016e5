package chunkd

import (
	"testing"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/server"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/pb"
)

// classedServer is a server with a device on which inference has had work, so that
// its parameters can be seen.
func classedServer(t *testing.T) (*server.Server, func() qos.Params) {
	t.Helper()
	s := server.New(server.Config{Devices: []server.Device{{ID: 1}}})
	use := func() {
		if err := s.Sched(1).Do(t.Context(), sched.Tag{Class: layout.ClassInference, Bytes: 4096}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	use()
	return s, func() qos.Params { return s.Stats()[0].Flows[0].Params }
}

func uncalibrated(layout.DeviceID) (calibrated, bool) { return calibrated{}, false }

// TestClassesAreWhatTheLeaderSaidLast: changes and a device's part come by heartbeat
// replies, and what the leader does not say any more goes back to what is built in.
func TestClassesAreWhatTheLeaderSaidLast(t *testing.T) {
	s, params := classedServer(t)
	c := newClasses(s, uncalibrated)
	builtin := qos.Defaults(layout.ClassInference)
	changed := &pb.QosClass{Number: uint32(layout.ClassInference), Name: "inference", Weight: 77, Limit: &pb.Rate{Bytes: 1 << 30}}
	for _, step := range []struct {
		name  string
		reply *pb.HeartbeatReply
		want  qos.Params
	}{
		{"nothing said", &pb.HeartbeatReply{}, builtin},
		{"a class, its part of the limit not divided yet", &pb.HeartbeatReply{QosVersion: 5, Classes: []*pb.QosClass{changed}}, qos.Params{Weight: 77}},
		{"its part", &pb.HeartbeatReply{QosVersion: 5, Shares: []*pb.ClassShare{{Device: 1, Class: 1, Limit: &pb.Rate{Bytes: 1 << 20}, Reservation: &pb.Rate{Ops: 9}}}},
			qos.Params{Weight: 77, Limit: qos.Rate{Bytes: 1 << 20}, Reservation: qos.Rate{Ops: 9}}},
		{"no part any more", &pb.HeartbeatReply{QosVersion: 5}, qos.Params{Weight: 77}},
		{"no class any more", &pb.HeartbeatReply{QosVersion: 6}, builtin},
	} {
		if err := c.learn(step.reply); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := params(); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
		r := &pb.HeartbeatRequest{}
		if c.report(r, time.Now()); r.QosVersion != step.reply.QosVersion {
			t.Errorf("%s: the server says that it has version %d", step.name, r.QosVersion)
		}
	}
}

// TestDemandIsWhatWasServedAndWhatWaits, by second.
func TestDemandIsWhatWasServedAndWhatWaits(t *testing.T) {
	s, _ := classedServer(t)
	c, at := newClasses(s, uncalibrated), time.Unix(100, 0)
	c.report(&pb.HeartbeatRequest{}, at)
	for range 10 {
		if err := s.Sched(1).Do(t.Context(), sched.Tag{Class: layout.ClassInference, Bytes: 8192}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	r := &pb.HeartbeatRequest{}
	c.report(r, at.Add(2*time.Second))
	if len(r.Demands) != 1 || r.Demands[0].Class != 1 || r.Demands[0].Served.Ops != 5 || r.Demands[0].Wanted.Bytes != 40960 {
		t.Errorf("%v", r.Demands)
	}
	if len(r.Capacities) != 1 || r.Capacities[0].How != "peak" || r.Capacities[0].Rate.Bytes != 40960 {
		t.Errorf("%v", r.Capacities)
	}
}

// TestTenantsShareWhatTheirClassHas, and keep what their jobs reserved: together they
// never have more than the device's part.
func TestTenantsShareWhatTheirClassHas(t *testing.T) {
	s, _ := classedServer(t)
	c, at := newClasses(s, uncalibrated), time.Unix(100, 0)
	work := func(tenants ...layout.TenantID) {
		for _, tenant := range tenants {
			if err := s.Sched(1).Do(t.Context(), sched.Tag{Class: layout.ClassTraining, Tenant: tenant, Bytes: 4096}, func() {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	reserved := func() map[layout.TenantID]int64 {
		got := map[layout.TenantID]int64{}
		for _, f := range s.Stats()[0].Flows {
			if f.Class == layout.ClassTraining {
				got[f.Tenant] = f.Params.Reservation.Bytes
			}
		}
		return got
	}
	beat := func(shares ...*pb.ClassShare) *pb.HeartbeatRequest {
		r := &pb.HeartbeatRequest{}
		at = at.Add(time.Second)
		c.report(r, at)
		if err := c.learn(&pb.HeartbeatReply{Shares: shares}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	class := &pb.ClassShare{Device: 1, Class: 2, Reservation: &pb.Rate{Bytes: 1000}, Limit: &pb.Rate{Bytes: 1500}}
	job := &pb.ClassShare{Device: 1, Class: 2, Tenant: 8, Reservation: &pb.Rate{Bytes: 2000}}
	work(1)
	beat(class)
	work(1)
	if beat(class); reserved()[1] != 1000 {
		t.Errorf("one tenant alone: %v", reserved())
	}
	work(1, 8)
	if beat(class); reserved()[1] != 500 || reserved()[8] != 500 {
		t.Errorf("two tenants: %v", reserved())
	}
	work(1, 8)
	if beat(class, job); reserved()[1] != 500 || reserved()[8] != 2500 {
		t.Errorf("with a job's reservation: %v", reserved())
	}
	for _, f := range s.Stats()[0].Flows {
		if f.Tenant == 8 && f.Params.Limit.Bytes != 2500 {
			t.Errorf("a limit of %d below what was admitted", f.Params.Limit.Bytes)
		}
	}
	work(1, 8)
	told := beat(class, job)
	ops := map[uint32]int64{}
	for _, d := range told.Demands {
		if d.Class == 2 {
			ops[d.Tenant] = d.Served.Ops
		}
	}
	if len(ops) != 2 || ops[0] != 2 || ops[8] != 1 {
		t.Errorf("the leader is told of %v", ops)
	}
	work(1)
	if beat(class); reserved()[1] != 1000 || reserved()[8] != 1000 {
		t.Errorf("the job has ended, and the other tenant is alone: %v", reserved())
	}
	if beat(); reserved()[1] != 0 || reserved()[8] != 0 {
		t.Errorf("nothing is reserved any more: %v", reserved())
	}
}
