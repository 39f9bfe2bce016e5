package state

import (
	"math/bits"

	"strake/internal/errs"
	"strake/internal/layout"
)

func (c CreateVolume) check() error {
	op := "create volume " + c.Name
	if err := layout.CheckName("volume", c.Name); err != nil {
		return errs.As(err, errs.InvalidArgument, "create volume")
	}
	if c.Tenant != "" {
		if err := layout.CheckName("tenant", c.Tenant); err != nil {
			return errs.As(err, errs.InvalidArgument, "create volume")
		}
	}
	if err := checkSize(op, c.SizeBytes); err != nil {
		return err
	}
	g := c.Geometry
	switch {
	case g == layout.Geometry{} || g.Valid():
		return nil
	case g.M == 0:
		return errs.New(errs.InvalidArgument, op, "geometry %v has no parity: one lost device would lose data", g).
			WithHint("1+1 is the smallest geometry")
	}
	return errs.New(errs.InvalidArgument, op, "geometry %v", g).
		WithHint("k is 1 to %d, m is 1 to %d", layout.MaxData, layout.MaxParity)
}

func checkSize(op string, n uint64) error {
	if n < layout.MinVolumeBytes || n > layout.MaxVolumeBytes || n%layout.BlockSize != 0 {
		return errs.New(errs.InvalidArgument, op, "size of %d bytes", n).
			WithHint("a size is a multiple of %d, from %d to %d bytes", layout.BlockSize, layout.MinVolumeBytes, uint64(layout.MaxVolumeBytes))
	}
	return nil
}

func (c CreateVolume) apply(t *tables, r *Result) error {
	if c.Tenant == "" {
		c.Tenant = layout.DefaultTenant
	}
	op := "create volume " + pathOf(c.Tenant, c.Name)
	if id, taken := t.names.Get(nameKey(c.Tenant, c.Name)); taken {
		return errs.New(errs.AlreadyExists, op, "the name belongs to volume %d", id).WithHint("choose another name")
	}
	if err := t.checkClass(op, c.Class); err != nil {
		return err
	}
	g, err := t.geometryFor(op, c.Geometry)
	if err != nil {
		return err
	}
	if err := t.checkCapacity(op, c.SizeBytes, g); err != nil {
		return err
	}
	t.last.Volume++
	v := &Volume{ID: t.last.Volume, Tenant: c.Tenant, Name: c.Name, SizeBytes: c.SizeBytes, Geometry: g, Class: c.Class, Closed: true}
	t.putVolume(v)
	r.Volume = v.ID
	r.emit(VolumeCreated{Volume: v.ID})
	return nil
}

// width is how many shards of a segment the cell can keep apart: by server, or
// by device in a cell of one server (a development cell).
func (t *tables) width() (n int, what string) {
	devices, servers := 0, 0
	t.servers.Scan(func(_ layout.ServerID, s *Server) bool {
		usable := 0
		for _, id := range s.Devices {
			if d, _ := t.devices.Get(id); d.State != DeviceDead {
				usable++
			}
		}
		if usable > 0 {
			servers++
		}
		devices += usable
		return true
	})
	if servers == 1 {
		return devices, "devices"
	}
	return servers, "servers"
}

// geometryFor fits a wanted geometry to the cell; zero takes the widest usual one.
func (t *tables) geometryFor(op string, want layout.Geometry) (layout.Geometry, error) {
	width, what := t.width()
	if want == (layout.Geometry{}) {
		for _, g := range []layout.Geometry{{K: 4, M: 2}, {K: 2, M: 2}, {K: 2, M: 1}, {K: 1, M: 1}} {
			if g.Shards() <= width {
				return g, nil
			}
		}
		want = layout.Geometry{K: 1, M: 1}
	}
	if want.Shards() > width {
		refused := errs.New(errs.InvalidArgument, op, "geometry %v needs %d %s, the cell has %d", want, want.Shards(), what, width)
		if want == (layout.Geometry{K: 1, M: 1}) {
			return want, refused.WithHint("it is the smallest geometry: add %s", what)
		}
		return want, refused.WithHint("choose a smaller geometry or add %s", what)
	}
	return want, nil
}

// checkCapacity refuses a volume that the whole cell, empty, could not hold.
func (t *tables) checkCapacity(op string, size uint64, g layout.Geometry) error {
	var total uint64
	t.devices.Scan(func(_ layout.DeviceID, d *Device) bool {
		if d.State != DeviceDead {
			total += d.Total
		}
		return true
	})
	// size * (k+m) > total * k, in 128 bits.
	needHi, needLo := bits.Mul64(size, uint64(g.Shards()))
	haveHi, haveLo := bits.Mul64(total, uint64(g.K))
	if needHi > haveHi || needHi == haveHi && needLo > haveLo {
		hi, lo := haveHi, haveLo
		most, _ := bits.Div64(hi, lo, uint64(g.Shards()))
		return errs.New(errs.NoSpace, op, "%s are beyond the cell: its devices have %s, which at %v hold %s",
			layout.SizeText(size), layout.SizeText(total), g, layout.SizeText(most)).
			WithHint("choose a smaller size or add devices")
	}
	return nil
}

func (c ResizeVolume) check() error {
	if err := c.Volume.check("resize volume"); err != nil {
		return err
	}
	return checkSize("resize volume", c.SizeBytes)
}

func (c ResizeVolume) apply(t *tables, r *Result) error {
	v, err := t.resolve("resize volume", c.Volume)
	if err != nil {
		return err
	}
	op := "resize volume " + v.path()
	if c.SizeBytes < v.SizeBytes {
		if !c.Shrink {
			return errs.New(errs.InvalidArgument, op, "%d bytes are less than its %d; what lies beyond would be lost", c.SizeBytes, v.SizeBytes).
				WithHint("say that shrinking is meant")
		}
		switch {
		case v.Holder == 0 || c.Session == v.Holder && c.Epoch != v.Epoch:
			return errs.New(errs.LeaseLost, op, "shrinking wants the volume's lease").WithHint("open the volume for writing, and discard what lies beyond first")
		case c.Session != v.Holder:
			return t.leaseHeld(op, v)
		}
	} else if err := t.checkCapacity(op, c.SizeBytes, v.Geometry); err != nil {
		return err
	}
	old := v.SizeBytes
	v.SizeBytes = c.SizeBytes
	t.putVolume(v)
	r.Volume = v.ID
	if old != v.SizeBytes {
		r.emit(VolumeResized{Volume: v.ID, Old: old, New: v.SizeBytes})
	}
	return nil
}
