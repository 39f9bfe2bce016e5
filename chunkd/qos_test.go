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
