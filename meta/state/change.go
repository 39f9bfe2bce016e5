package state

import (
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

func (c ChangeDevices) check() error {
	if len(c.Devices) == 0 || len(c.Devices) > MaxSegmentList || c.Change < DrainDevice || c.Change > GiveUpDevice {
		return errs.New(errs.InvalidArgument, "change devices", "change %d of %d devices; 1 to %d devices are possible", c.Change, len(c.Devices), MaxSegmentList)
	}
	return nil
}

func (c ChangeDevices) apply(t *tables, r *Result) error {
	for _, id := range c.Devices {
		if err := c.allowed(t, id); err != nil {
			return err
		}
	}
	for _, id := range c.Devices {
		was, _ := t.devices.Get(id)
		d := *was
		c.change(&d, r)
		if d.State != was.State {
			r.emit(DeviceStateChanged{Device: id, Old: was.State, New: d.State})
		}
		t.putDevice(&d)
	}
	return nil
}

func (c ChangeDevices) allowed(t *tables, id layout.DeviceID) error {
	op := "change devices"
	d, ok := t.devices.Get(id)
	if !ok {
		return errs.New(errs.NotFound, op, "device %d is not known", id).WithHint("`strake server ls` lists them")
	}
	owner, _ := t.servers.Get(d.Server)
	switch {
	case c.Change == GiveUpDevice && owner.Registered != c.Registered:
		return errs.New(errs.Conflict, op, "server %d registered again at log index %d, after %d", owner.ID, owner.Registered, c.Registered).
			WithHint("judge its new life")
	case c.Change == GiveUpDevice && owner.Up && d.State != DeviceDown:
		return errs.New(errs.Conflict, op, "device %d is %v and its server is up", id, d.State)
	case c.Change != RemoveDevice && d.Wish == WishRemoved:
		return errs.New(errs.Conflict, op, "device %d was removed for ever", id).WithHint("add an empty device in its place")
	}
	return nil
}

// change carries one change out.
func (c ChangeDevices) change(d *Device, r *Result) {
	switch c.Change {
	case DrainDevice:
		if d.Wish != WishDrained {
			r.emit(DeviceDrained{d.ID})
		}
		d.Wish, d.State = WishDrained, d.drained()
	case UndrainDevice:
		if d.Wish = WishNone; d.State == DeviceDraining {
			d.State = DeviceUp
		}
	case RemoveDevice:
		if d.Wish != WishRemoved {
			r.emit(DeviceRemoved{d.ID})
		}
		d.Wish, d.State = WishRemoved, DeviceDead
	case GiveUpDevice:
		d.State = DeviceDead
	}
}

func (d *Device) drained() DeviceState {
	if d.State == DeviceUp || d.State == DeviceLimping {
		return DeviceDraining
	}
	return d.State
}

func (c RemoveServer) check() error { return nil }

func (c RemoveServer) apply(t *tables, r *Result) error {
	op := "remove server"
	s, ok := t.servers.Get(c.Server)
	if !ok {
		if c.Server != 0 && c.Server <= t.last.Server {
			r.Repeat = true
			return nil
		}
		return errs.New(errs.NotFound, op, "server %d is not known", c.Server).WithHint("`strake server ls` lists them")
	}
	if s.Up {
		return errs.New(errs.Busy, op, "server %d at %s is up", s.ID, s.ControlAddress).WithHint("drain it, stop it, then remove it")
	}
	for _, id := range s.Devices {
		if t.byDevice.owns(uint64(id)) {
			return errs.New(errs.Busy, op, "device %d of server %d holds shards", id, s.ID).
				WithHint("`strake server drain %d` moves them; `strake device replace %d` gives a device up", s.ID, id)
		}
	}
	for _, id := range slices.Clone(s.Devices) {
		d, _ := t.devices.Delete(id)
		t.deviceByUUID.Delete(string(d.UUID[:]))
	}
	t.servers.Delete(s.ID)
	t.serverByUUID.Delete(string(s.UUID[:]))
	r.emit(ServerForgotten{s.ID})
	return nil
}
