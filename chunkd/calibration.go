package chunkd

import (
	"context"
	"slices"
	"sync"
	"time"

	"strake/chunkd/calibrate"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/pb"
)

const (
	// calibrateMost bounds a calibration that somebody asked for, with what is under
	// way at its end it takes less than ten seconds; joinMost one at a start.
	calibrateMost = 8 * time.Second
	joinMost      = time.Second
)

// calibrations keeps what devices were measured to do on purpose, in this life of
// the process. Safe for concurrent use.
type calibrations struct {
	devices func() []measurable

	mu      sync.Mutex
	found   map[layout.DeviceID]calibrated // guarded by mu
	running map[layout.DeviceID]bool       // guarded by mu
}

// measurable is a device with its id.
type measurable struct {
	id layout.DeviceID
	calibrate.Device
}

// calibrated is a device's figure and when it was found.
type calibrated struct {
	rate qos.Rate
	at   time.Time
}

// trial makes a file to measure the device by.
func (d *device) trial(size int64, enough func() bool) (calibrate.File, error) {
	t, err := d.store.NewTrial(size, enough)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newCalibrations(devices func() []measurable) *calibrations {
	return &calibrations{devices: devices, found: map[layout.DeviceID]calibrated{}, running: map[layout.DeviceID]bool{}}
}

// of gives a device's figure; false: it was not calibrated.
func (c *calibrations) of(id layout.DeviceID) (calibrated, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.found[id]
	return f, ok
}

// Calibrate implements pb.ChunkServer: devices are measured beside each other.
func (c *calibrations) Calibrate(ctx context.Context, r *pb.CalibrateRequest) (*pb.CalibrateReply, error) {
	devices := c.devices()
	for _, id := range r.GetDevices() {
		if !slices.ContainsFunc(devices, func(d measurable) bool { return uint64(d.id) == id }) {
			return nil, errs.New(errs.NotHere, "calibrate", "device %d is not on this server", id)
		}
	}
	if len(r.GetDevices()) > 0 {
		devices = slices.DeleteFunc(devices, func(d measurable) bool { return !slices.Contains(r.GetDevices(), uint64(d.id)) })
	}
	most := time.Duration(r.GetMostMs()) * time.Millisecond
	if most <= 0 || most > calibrateMost {
		most = calibrateMost
	}
	reply := &pb.CalibrateReply{Devices: make([]*pb.Calibration, len(devices))}
	var wg sync.WaitGroup
	for i, d := range devices {
		wg.Go(func() { reply.Devices[i] = c.measure(ctx, d, most) })
	}
	wg.Wait()
	return reply, nil
}

// measure measures a device, unless somebody does so already.
func (c *calibrations) measure(ctx context.Context, d measurable, most time.Duration) *pb.Calibration {
	out := &pb.Calibration{Device: uint64(d.id)}
	r, err := calibrate.Result{}, error(nil)
	if c.begin(d.id) {
		r, err = calibrate.Run(ctx, d.Device, most)
		c.end(d.id, r, err)
	} else {
		err = errs.New(errs.Busy, "calibrate", "device %d is being measured", d.id).WithHint("ask again in a few seconds")
	}
	if err != nil {
		out.Kind, out.Message = uint32(errs.KindOf(err)), err.Error()
		return out
	}
	out.ReadBytesPerS, out.WriteBytesPerS, out.ReadOpsPerS, out.WriteOpsPerS = uint64(r.ReadBytes), uint64(r.WriteBytes), uint64(r.ReadOps), uint64(r.WriteOps)
	out.TookMs = uint64(r.Took.Milliseconds())
	return out
}

func (c *calibrations) begin(id layout.DeviceID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[id] {
		return false
	}
	c.running[id] = true
	return true
}

func (c *calibrations) end(id layout.DeviceID, r calibrate.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
	if err == nil {
		c.found[id] = calibrated{r.Rate(), time.Now()}
	}
}

// join measures all devices, in short, one after the other.
func (s *Server) join(ctx context.Context) {
	for _, d := range s.calibrations.devices() {
		if out := s.calibrations.measure(ctx, d, joinMost); out.Kind != 0 && ctx.Err() == nil {
			s.log.Warn("device not calibrated", "device", d.id, "err", out.Message)
		}
	}
}
