package server

import (
	"fmt"
	"slices"
	"time"

	"strake/internal/layout"
	"strake/meta/limping"
	"strake/meta/state"
	"strake/proto/pb"
)

// maxDeviceReports bounds the devices that one report of a client may blame.
const maxDeviceReports = 64

// judged calls f with the judge of devices and the planner's clock, while this
// server leads.
func (c *control) judged(f func(j *limping.Judge, now time.Duration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.planner != nil {
		f(c.judge, c.tick())
	}
}

// limps tells whether a device is judged to limp, and why. As long as nobody has
// looked at it in this term, what is on record counts.
func (c *control) limps(d *state.Device) (limps bool, why string) {
	limps = d.State == state.DeviceLimping
	c.judged(func(j *limping.Judge, _ time.Duration) {
		if j.Knows(d.ID) {
			limps, why = j.Limps(d.ID)
		}
	})
	return limps, why
}

// judgeDevices looks at the evidence. A verdict is recorded with the devices'
// figures.
func (s *Server) judgeDevices() {
	view := s.machine.View()
	var devices []limping.Device
	for _, d := range view.Devices() {
		if said, ok := s.alive.figures(d.ID); d.State > state.DeviceLimping || ok && said.State > state.DeviceLimping || !s.alive.present(d.Server) {
			continue
		}
		devices = append(devices, limping.Device{ID: d.ID, Server: d.Server, Limps: d.State == state.DeviceLimping})
	}
	var verdicts []limping.Verdict
	s.control.judged(func(j *limping.Judge, now time.Duration) { verdicts = j.Look(devices, now) })
	for _, v := range verdicts {
		name := "device-sound"
		if v.Limps {
			name = "device-limps"
		}
		d, _ := view.Device(v.Device)
		s.log.Warn("device judged", "device", v.Device, "server", d.Server, "limps", v.Limps, "err", v.Why)
		s.journal.add(name, fmt.Sprintf("device %d of server %d: %s", v.Device, d.Server, v.Why))
	}
}

// measured takes in a heartbeat's measurements of a server's own devices.
func (s *Server) measured(srv *state.Server, r *pb.HeartbeatRequest) {
	s.control.judged(func(j *limping.Judge, now time.Duration) {
		for _, l := range r.GetLatencies()[:min(len(r.GetLatencies()), state.MaxServerDevices)] {
			if id := deviceID(l.GetDevice()); slices.Contains(srv.Devices, id) {
				j.Measured(id, limping.Measure{Read: time.Duration(l.GetReadNs()), Write: time.Duration(l.GetWriteNs()), Bytes: l.GetBytesPerS()}, now)
			}
		}
	})
}

// suspected lists a server's devices that are to be measured more often.
func (s *Server) suspected(srv *state.Server) (list []uint64) {
	s.control.judged(func(j *limping.Judge, _ time.Duration) {
		for _, id := range srv.Devices {
			if j.Suspected(id) {
				list = append(list, uint64(id))
			}
		}
	})
	return list
}

// blamed takes in a client's word on devices. One without a session is nobody.
func (s *Server) blamed(view *state.View, session sessionID, reports []*pb.DeviceReport) {
	if _, ok := view.Session(session); !ok {
		return
	}
	s.control.judged(func(j *limping.Judge, now time.Duration) {
		for _, r := range reports[:min(len(reports), maxDeviceReports)] {
			j.Say(uint64(session), layout.DeviceID(r.GetDevice()), limping.Word{
				Took: time.Duration(r.GetTookNs()), Others: time.Duration(r.GetOthersNs()), Sound: r.GetSound()}, now)
		}
	})
}
