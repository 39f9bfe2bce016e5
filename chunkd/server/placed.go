package server

import (
	"strake/chunkd/sched"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Sched gives a device's scheduler, which background work shares; nil when the
// device is none of this server's.
func (s *Server) Sched(device layout.DeviceID) sched.Scheduler {
	if d := s.devices.byID(device); d != nil {
		return d.Sched
	}
	return nil
}

// Made and Gone tell the server of shards that came to a device, or left it, by
// another way than its control service.
func (s *Server) Made(ref frame.ShardRef, device layout.DeviceID) {
	if d := s.devices.byID(device); d != nil {
		s.devices.created(ref, d)
	}
}

// Gone is Made's counterpart.
func (s *Server) Gone(ref frame.ShardRef, device layout.DeviceID) {
	if d := s.devices.byID(device); d != nil {
		s.devices.deleted(ref, d)
	}
}
