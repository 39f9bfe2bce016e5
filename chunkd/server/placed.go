package server

import "strake/internal/layout"

// Made and Gone tell the server of shards that came to a device, or left it, by
// another way than its control service.
func (s *Server) Made(key layout.ShardKey, device layout.DeviceID) {
	if d := s.devices.byID(device); d != nil {
		s.devices.created(key, d)
	}
}

// Gone is Made's counterpart.
func (s *Server) Gone(key layout.ShardKey, device layout.DeviceID) {
	if d := s.devices.byID(device); d != nil {
		s.devices.deleted(key, d)
	}
}
