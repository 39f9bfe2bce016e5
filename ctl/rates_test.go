package ctl

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"strake/client"
)

// twoLooks are two seconds apart: inference waits on a device that training uses,
// one server is gone, one device is slow.
func twoLooks() (before, now *look) {
	ends := []time.Duration{time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}
	at := time.Unix(1000, 0)
	figures := func(id uint64, ops uint64, slow int) client.ServerFigures {
		service := make([]uint64, 4)
		service[slow] = ops
		return client.ServerFigures{Server: client.ServerInfo{ID: id, State: "up"}, BucketEnds: ends, RoundTrip: time.Millisecond,
			Devices: []client.DeviceFigures{{Device: id, Width: 4, Running: 2, Waiting: 3}},
			Classes: []client.ClassFigures{
				{Device: id, Class: 1, Reads: ops, ReadBytes: ops * 4096, Queue: []uint64{0, 0, 0, ops}, Service: service, DeviceTime: time.Duration(ops) * time.Millisecond},
				{Device: id, Class: 2, Writes: ops, WroteBytes: ops << 20, Queue: []uint64{0, ops, 0, 0}, Service: service, DeviceTime: time.Duration(ops) * 8 * time.Millisecond,
					Throttled: time.Duration(ops) * time.Millisecond},
			},
			Volumes: []client.VolumeFigures{{Volume: 7, Reads: ops, ReadBytes: ops * 4096, Times: service}},
			SLOs:    []client.SLOFigures{{Class: 1, Judged5m: 100, Late5m: 5, Judged1h: 1000, Late1h: 9}}}
	}
	names, volumes := map[uint32]string{1: "inference", 2: "training"}, map[uint64]string{7: "models"}
	gone := client.ServerFigures{Server: client.ServerInfo{ID: 4, State: "down"}, Err: errors.New("connection refused")}
	before = &look{at: at, names: names, volumes: volumes, servers: []client.ServerFigures{figures(1, 100, 1), figures(2, 0, 1), figures(3, 0, 2), gone}}
	now = &look{at: at.Add(2 * time.Second), names: names, volumes: volumes, servers: []client.ServerFigures{figures(1, 300, 1), figures(2, 200, 1), figures(3, 200, 2), gone}}
	return before, now
}

func TestRatesAreWhatCameBetweenTwoLooks(t *testing.T) {
	before, now := twoLooks()
	r := now.since(before)
	if len(r.Classes) != 2 || r.Classes[0].Class != "inference" || r.Classes[0].Ops != 300 || r.Classes[0].QueueP50 != 1e5 || r.Classes[1].WroteBytes != 300<<20 {
		t.Errorf("classes: %+v", r.Classes)
	}
	if c := r.Classes[1]; c.DeviceTime < 0.79 || c.DeviceTime > 0.81 || c.Throttled < 0.09 || c.Throttled > 0.11 {
		t.Errorf("training takes %g of the devices and is throttled %g of the time", c.DeviceTime, c.Throttled)
	}
	if len(r.Servers) != 4 || r.Servers[0].Ops != 200 || r.Servers[3].Error == "" {
		t.Errorf("servers: %+v", r.Servers)
	}
	if len(r.Volumes) != 1 || r.Volumes[0].Name != "models" || r.Volumes[0].Ops != 300 || r.Volumes[0].P50 != 1e3 || r.Volumes[0].P99 != 1e4 {
		t.Errorf("volumes: %+v", r.Volumes)
	}
	// A server that started again counts from 0.
	before.at, now.at = now.at, before.at
	back := before.since(now)
	if back.Servers[0].Ops != 100 {
		t.Errorf("after a restart: %g ops/s", back.Servers[0].Ops)
	}
	var text bytes.Buffer
	r.text(&text)
	for _, want := range []string{"inference", "models", "connection refused"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the view lacks %q:\n%s", want, text.String())
		}
	}
}

// TestPartsOfTimeAreOfAllDevices: two tenants of a class add up, a device that the
// class does not use counts too, and a measurement of a device is no class's work.
func TestPartsOfTimeAreOfAllDevices(t *testing.T) {
	figures := func(seconds int) []client.ServerFigures {
		took := time.Duration(seconds) * 400 * time.Millisecond
		one := func(tenant uint64, class uint32) client.ClassFigures {
			return client.ClassFigures{Device: 1, Tenant: tenant, Class: class, Reads: uint64(seconds), DeviceTime: took, Throttled: took / 4, Gated: uint64(seconds), GateTime: took}
		}
		return []client.ServerFigures{{Server: client.ServerInfo{ID: 1, State: "up"}, Devices: []client.DeviceFigures{{Device: 1}, {Device: 2}},
			Classes: []client.ClassFigures{one(1, 2), one(7, 2), one(0, 0)}}}
	}
	at := time.Unix(1000, 0)
	before, now := &look{at: at, servers: figures(0)}, &look{at: at.Add(2 * time.Second), servers: figures(2)}
	r := now.since(before)
	if len(r.Classes) != 2 || r.Classes[0].Class != "calibrate" || len(r.perDevice) != 2 {
		t.Fatalf("%+v", r.Classes)
	}
	if c := r.Classes[1]; c.DeviceTime < 0.399 || c.DeviceTime > 0.401 || c.Throttled < 0.099 || c.Throttled > 0.101 {
		t.Errorf("two tenants that use 0.4 of one device of two each take %g of them and are throttled %g of the time", c.DeviceTime, c.Throttled)
	}
	if d := r.perDevice[0]; d.DeviceTime < 0.799 || d.DeviceTime > 0.801 || d.Ops != 2 {
		t.Errorf("of that device they take %g, with %g operations a second", d.DeviceTime, d.Ops)
	}
	e := explain(client.Class{Name: "training", Number: 2}, r)
	if !slices.ContainsFunc(e.Reasons, func(r reason) bool { return r.What == "gate" && strings.Contains(r.Text, "400000 us on average") }) {
		t.Errorf("nothing of the gate in %+v", e.Reasons)
	}
}

// TestAnExplanationNamesQueueDeviceAndServer, with figures.
func TestAnExplanationNamesQueueDeviceAndServer(t *testing.T) {
	before, now := twoLooks()
	e := explain(client.Class{Name: "inference", Number: 1}, now.since(before))
	var said []string
	for _, r := range e.Reasons {
		said = append(said, r.What+" "+r.Where+" "+r.Text)
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"server server 4 it does not answer", "queue  its work waits longer", "80% of the devices' time", "device server 3, device 3 it takes 10000 us"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q:\n%s", want, all)
		}
	}
	if e.Reasons[0].What != "server" {
		t.Errorf("the worst is not the first:\n%s", all)
	}
	training := explain(client.Class{Name: "training", Number: 2, Limit: client.Rate{Bytes: 1 << 30}}, now.since(before))
	if !strings.Contains(training.Reasons[1].Text, "held it back 10%") && !strings.Contains(training.Reasons[2].Text, "held it back 10%") {
		t.Errorf("%+v", training.Reasons)
	}
	idle := explain(client.Class{Name: "checkpoint", Number: 3}, now.since(before))
	if len(idle.Reasons) == 0 || idle.Class.Ops != 0 {
		t.Errorf("%+v", idle)
	}
}

// TestAnExplanationNamesLeasesAndWhomWritersWaitFor, before what is only slow.
func TestAnExplanationNamesLeasesAndWhomWritersWaitFor(t *testing.T) {
	before, now := twoLooks()
	e := explain(client.Class{Name: "training", Number: 2}, now.since(before))
	n := len(e.Reasons)
	e.leases([]client.Explanation{
		{Volume: client.VolumeInfo{Name: "calm", State: "open", Holder: "a"}},
		{Volume: client.VolumeInfo{Name: "stuck", State: "open", Holder: "job-1"}, Blocked: &client.BlockedOn{Server: 3, Address: "10.0.0.3:7410", Ms: 900_000, Reason: "no answer"}},
		{Volume: client.VolumeInfo{Name: "torn", State: "undecided", Undecided: "shard 4/1 on server 2"}},
		{Volume: client.VolumeInfo{Name: "moving", State: "recovering", Holder: "job-2"}},
	})
	if len(e.Reasons) != n+3 {
		t.Fatalf("%+v", e.Reasons)
	}
	if first := e.Reasons[0]; first.What != "server" || !strings.Contains(first.Text, "job-1 has waited for server 3 at 10.0.0.3:7410 for 900000 ms: no answer") {
		t.Errorf("first: %+v", first)
	}
	if second := e.Reasons[1]; second.What != "lease" || second.Where != "volume torn" || !strings.Contains(second.Text, "shard 4/1") {
		t.Errorf("second: %+v", second)
	}
	if !slices.ContainsFunc(e.Reasons, func(r reason) bool { return r.Where == "volume moving" && strings.Contains(r.Text, "job-2") }) {
		t.Errorf("nothing of the volume that is recovered: %+v", e.Reasons)
	}
}

func TestBurnIsLateOverAllowed(t *testing.T) {
	_, now := twoLooks()
	list := attainments([]client.Class{{Name: "inference", Number: 1, SLO: time.Millisecond}, {Name: "training", Number: 2}, {Name: "checkpoint", Number: 3, SLO: time.Second}}, now.servers)
	if len(list) != 2 || list[0].Judged5m != 300 || list[0].Burn5m < 4.99 || list[0].Burn5m > 5.01 || !list[0].Met || list[1].Kept1h != 1 {
		t.Errorf("%+v", list)
	}
	var text bytes.Buffer
	sloTable(&text, list)
	if !strings.Contains(text.String(), "95.000%") {
		t.Errorf("%s", text.String())
	}
}
