package server

import (
	"context"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
)

// classed is a scheduler that has parameters by tenant and class.
type classed interface {
	SetClass(class layout.Class, p mclock.Params) error
	SetFlow(k mclock.Key, p mclock.Params) error
	ResetFlow(k mclock.Key)
}

var _ classed = (*sched.QoS)(nil)

// SetClass gives a class its parameters on every device of the server, from now
// on. Devices that serve in the order of arrival have none, and ignore it.
// Errors: InvalidArgument.
func (s *Server) SetClass(class layout.Class, p mclock.Params) error {
	return s.eachClasses(func(c classed) error { return c.SetClass(class, p) })
}

// SetClasses tells which classes there are. Requests that name another, because it was
// removed or made up, or none, count as training's, which has its own limit: nobody
// gets rid of one by a number that has none. Until it is called any will do.
func (s *Server) SetClasses(list []layout.Class) {
	known := &[256]bool{}
	for _, class := range list {
		known[class] = true
	}
	s.known.Store(known)
}

// classOf is the class that a request's work is done in.
func (s *Server) classOf(class layout.Class) layout.Class {
	if known := s.known.Load(); known != nil && !known[class] {
		return layout.ClassTraining
	}
	return class
}

// SetDeviceClass gives a class its parameters on one device, from now on. Errors:
// InvalidArgument, NotHere.
func (s *Server) SetDeviceClass(id layout.DeviceID, class layout.Class, p mclock.Params) error {
	d := s.devices.byID(id)
	if d == nil {
		return errs.New(errs.NotHere, "set class", "device %d is not on this server", id)
	}
	if c, ok := d.Sched.(classed); ok {
		return errs.Wrap(c.SetClass(class, p), "device %d", id)
	}
	return nil
}

// SetFlow gives one tenant's work in a class parameters of its own on a device, such
// as its part of a reservation. Errors: InvalidArgument, Overloaded, NotHere.
func (s *Server) SetFlow(id layout.DeviceID, k mclock.Key, p mclock.Params) error {
	d := s.devices.byID(id)
	if d == nil {
		return errs.New(errs.NotHere, "set class", "device %d is not on this server", id)
	}
	if c, ok := d.Sched.(classed); ok {
		return errs.Wrap(c.SetFlow(k, p), "device %d", id)
	}
	return nil
}

// ResetFlow gives it its class's again.
func (s *Server) ResetFlow(id layout.DeviceID, k mclock.Key) {
	if d := s.devices.byID(id); d != nil {
		if c, ok := d.Sched.(classed); ok {
			c.ResetFlow(k)
		}
	}
}

func (s *Server) eachClasses(do func(c classed) error) error {
	for _, d := range s.devices.all {
		if c, ok := d.Sched.(classed); ok {
			if err := do(c); err != nil {
				return errs.Wrap(err, "device %d", d.ID)
			}
		}
	}
	return nil
}

// DeviceStats is what a device's scheduler has measured.
type DeviceStats struct {
	Device layout.DeviceID
	Path   string
	mclock.Stats
}

// Stats gives the figures of all devices: by tenant and class, with histograms of
// the time in the queue and at the device.
func (s *Server) Stats() []DeviceStats {
	var list []DeviceStats
	for _, d := range s.devices.all {
		list = append(list, DeviceStats{d.ID, d.Path, d.Sched.Stats()})
	}
	return list
}

// Background runs a piece of the server's own work (rebuild, scrub, cleaning) in
// the turn of a device, as the class of that name: it gets what others leave. n
// is what the piece transfers, at most BackgroundQuantum. Errors: the scheduler's,
// NotHere.
func (s *Server) Background(ctx context.Context, id layout.DeviceID, write bool, n int, work func()) error {
	d := s.devices.byID(id)
	if d == nil {
		return errs.New(errs.NotHere, "background work", "device %d is not on this server", id)
	}
	tag := sched.Tag{Class: layout.ClassBackground, Tenant: layout.DefaultTenantID, Write: write, Bytes: n}
	return errs.Wrap(d.Sched.Do(ctx, tag, work), "background work")
}

// BackgroundQuantum is how much a piece of background work on a device should
// transfer now.
func (s *Server) BackgroundQuantum(id layout.DeviceID, write bool) int {
	if d := s.devices.byID(id); d != nil {
		return d.Sched.Quantum(write)
	}
	return sched.Quantum
}
