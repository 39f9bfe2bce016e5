package state

import (
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

func (c RegisterServer) check() error {
	bad := func(format string, args ...any) *errs.Error {
		return errs.New(errs.InvalidArgument, "register server", format, args...)
	}
	if c.UUID == (layout.UUID{}) || len(c.Devices) > MaxServerDevices {
		return bad("uuid %v with %d devices", c.UUID, len(c.Devices)).
			WithHint("a server has a uuid and at most %d devices", MaxServerDevices)
	}
	for _, text := range []string{c.DataAddress, c.ControlAddress, c.Domain, c.Version} {
		if len(text) > MaxText {
			return bad("a text of %d bytes", len(text))
		}
	}
	seen := make(map[layout.UUID]bool, len(c.Devices))
	for _, d := range c.Devices {
		if d.UUID == (layout.UUID{}) || seen[d.UUID] {
			return bad("device uuid %v is zero or stands twice", d.UUID)
		}
		if d.Incarnation == 0 || len(d.Path) > MaxText || d.State > DeviceDead {
			return bad("device %v: incarnation %d, path of %d bytes, state %d", d.UUID, d.Incarnation, len(d.Path), d.State)
		}
		seen[d.UUID] = true
	}
	return nil
}

func (c RegisterServer) apply(t *tables, r *Result) error {
	if c.Cell != 0 && c.Cell != t.cell.ID {
		return errs.New(errs.WrongCell, "register server", "server %v belongs to cell %x, this is cell %x", c.UUID, uint64(c.Cell), uint64(t.cell.ID)).
			WithHint("point it at its own cell's metadata servers, or give it empty devices")
	}
	for _, d := range c.Devices {
		if err := t.checkReport(&c, d); err != nil {
			return err
		}
	}
	s, isNew := t.serverOf(c.UUID)
	wentUp := !s.Up
	s.DataAddress, s.ControlAddress, s.Domain, s.Version = c.DataAddress, c.ControlAddress, c.Domain, c.Version
	s.Up, s.Registered = true, t.applied
	old := s.Devices
	s.Devices = nil
	r.emit(ServerRegistered{Server: s.ID, New: isNew})
	if wentUp {
		r.emit(ServerWentUp{Server: s.ID})
	}
	for _, report := range c.Devices {
		s.Devices = append(s.Devices, t.registerDevice(s.ID, report, r))
	}
	t.leaveOut(s, old, r)
	t.putServer(s)
	r.Cell, r.Server, r.Devices = t.cell.ID, s.ID, slices.Clone(s.Devices)
	return nil
}

// serverOf gives a copy of the server with this uuid, a new one when there is none.
func (t *tables) serverOf(uuid layout.UUID) (s *Server, isNew bool) {
	if id, ok := t.serverByUUID.Get(string(uuid[:])); ok {
		was, _ := t.servers.Get(id)
		c := *was
		return &c, false
	}
	t.last.Server++
	return &Server{ID: t.last.Server, UUID: uuid}, true
}

// checkReport refuses a device whose store went back in time, one that another
// living server has, and a second process in the same incarnation: a process
// keeps its address for life, and whoever opens a device later raises its
// incarnation, so that one runs on a copy.
func (t *tables) checkReport(c *RegisterServer, d DeviceReport) error {
	id, known := t.deviceByUUID.Get(string(d.UUID[:]))
	if !known {
		return nil
	}
	was, _ := t.devices.Get(id)
	if d.Incarnation < was.Incarnation {
		return errs.New(errs.Conflict, "register server", "device %d (%v) reports incarnation %d after %d: its store went back in time", id, d.UUID, d.Incarnation, was.Incarnation).
			WithHint("it was restored from a copy; empty it and add it as a new device")
	}
	owner, _ := t.servers.Get(was.Server)
	if d.Incarnation == was.Incarnation && (owner.UUID != c.UUID || owner.DataAddress != c.DataAddress) {
		return errs.New(errs.Conflict, "register server", "device %d (%v) is in incarnation %d at %s already, not at %s", id, d.UUID, d.Incarnation, owner.DataAddress, c.DataAddress).
			WithHint("one of the two is a copied disk; stop both, keep the one that wrote last, and empty the other")
	}
	if owner.UUID != c.UUID && owner.Up && slices.Contains(owner.Devices, id) {
		return errs.New(errs.Busy, "register server", "device %d (%v) is in use by server %d at %s", id, d.UUID, owner.ID, owner.DataAddress).
			WithHint("stop that server first, or look for a copied disk")
	}
	return nil
}

func (t *tables) registerDevice(server layout.ServerID, report DeviceReport, r *Result) layout.DeviceID {
	id, known := t.deviceByUUID.Get(string(report.UUID[:]))
	d := Device{UUID: report.UUID, State: report.State}
	if known {
		was, _ := t.devices.Get(id)
		d = *was
		t.takeDevice(d.Server, server, id)
	} else {
		t.last.Device++
		d.ID = t.last.Device
	}
	d.Server, d.Path, d.Incarnation = server, report.Path, report.Incarnation
	d.Total, d.Used, d.Reserved = report.Total, report.Used, report.Reserved
	if state := d.wished(report.State); d.State != state {
		r.emit(DeviceStateChanged{Device: d.ID, Old: d.State, New: state})
		d.State = state
	}
	t.putDevice(&d)
	return d.ID
}

// wished is the state of a device that reports one, under the administrator's wish.
func (d *Device) wished(reported DeviceState) DeviceState {
	switch {
	case d.Wish == WishRemoved:
		return DeviceDead
	case d.Wish == WishDrained && (reported == DeviceUp || reported == DeviceLimping):
		return DeviceDraining
	}
	return reported
}

// takeDevice removes a device that moved from its old server's list.
func (t *tables) takeDevice(from, to layout.ServerID, id layout.DeviceID) {
	if from == to {
		return
	}
	was, _ := t.servers.Get(from)
	s := *was
	s.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d layout.DeviceID) bool { return d == id })
	t.putServer(&s)
}

// leaveOut keeps the devices that a registration no longer names, as down.
func (t *tables) leaveOut(s *Server, old []layout.DeviceID, r *Result) {
	for _, id := range old {
		d, _ := t.devices.Get(id)
		if d.Server != s.ID || slices.Contains(s.Devices, id) {
			continue
		}
		s.Devices = append(s.Devices, id)
		if d.State != DeviceDown && d.State != DeviceDead {
			r.emit(DeviceStateChanged{Device: id, Old: d.State, New: DeviceDown})
			c := *d
			c.State = DeviceDown
			t.putDevice(&c)
		}
	}
}

func (c UpdateDevices) check() error {
	if len(c.Devices) > MaxSegmentList {
		return errs.New(errs.TooLarge, "update devices", "%d devices, at most %d", len(c.Devices), MaxSegmentList)
	}
	for _, d := range c.Devices {
		if d.State > DeviceDead {
			return errs.New(errs.InvalidArgument, "update devices", "device %d: unknown state %d", d.Device, d.State)
		}
	}
	return nil
}

func (c UpdateDevices) apply(t *tables, r *Result) error {
	for _, u := range c.Devices {
		if _, ok := t.devices.Get(u.Device); !ok {
			return errs.New(errs.NotFound, "update devices", "device %d is not known", u.Device).WithHint("register its server first")
		}
	}
	for _, u := range c.Devices {
		was, _ := t.devices.Get(u.Device)
		d := *was
		d.Total, d.Used, d.Reserved = u.Total, u.Used, u.Reserved
		if state := d.Reports(u.State); d.State != state {
			r.emit(DeviceStateChanged{Device: d.ID, Old: d.State, New: state})
			d.State = state
		}
		t.putDevice(&d)
	}
	return nil
}

// Reports is the device's state after its server reports one while it serves: the
// administrator's wish stands above it, and a device that was given up comes back
// by registering only.
func (d *Device) Reports(reported DeviceState) DeviceState {
	if d.State == DeviceDead {
		return DeviceDead
	}
	return d.wished(reported)
}

func (c SetServerState) check() error { return nil }

func (c SetServerState) apply(t *tables, r *Result) error {
	was, ok := t.servers.Get(c.Server)
	if !ok {
		return errs.New(errs.NotFound, "set server state", "server %d is not known", c.Server)
	}
	if c.Registered != 0 && c.Registered != was.Registered {
		return errs.New(errs.Conflict, "set server state", "server %d registered again at log index %d, after %d", c.Server, was.Registered, c.Registered).
			WithHint("judge its new life")
	}
	r.Server = c.Server
	if was.Up == c.Up {
		return nil
	}
	s := *was
	s.Up = c.Up
	t.putServer(&s)
	if c.Up {
		r.emit(ServerWentUp{Server: s.ID})
	} else {
		r.emit(ServerWentDown{Server: s.ID})
	}
	return nil
}
