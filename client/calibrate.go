package client

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/proto/pb"
)

// calibrateTimeout bounds one server's calibration: the server takes ten seconds at
// most.
const calibrateTimeout = 15 * time.Second

// Calibration is what a device was measured to do a second.
type Calibration struct {
	Server     uint64 `json:"server"`
	Device     uint64 `json:"device"`
	ReadBytes  uint64 `json:"read_bytes_per_s"`  // in pieces of 256 KiB
	WriteBytes uint64 `json:"write_bytes_per_s"` // the same, durable at the end
	ReadOps    uint64 `json:"read_ops_per_s"`    // of 4 KiB
	WriteOps   uint64 `json:"write_ops_per_s"`   // of 4 KiB, durable at the end
	TookMs     uint64 `json:"took_ms"`
	Error      string `json:"error,omitempty"` // why it was not measured; the figures are 0 then
}

// Calibrate has a chunk server, 0: each one, measure its devices for at most so long,
// 0: eight seconds, which is also the most, and beside what they serve. Admission counts with what was found from the
// next heartbeat on. A device that could not be measured is in the list with an
// error. Errors: ErrNotFound; ErrUnavailable when none was measured.
func (c *Cell) Calibrate(ctx context.Context, server uint64, most time.Duration) ([]Calibration, error) {
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var asked []ServerInfo
	for _, s := range servers {
		if server == 0 || s.ID == server {
			asked = append(asked, s)
		}
	}
	if server != 0 && len(asked) == 0 {
		return nil, errs.New(errs.NotFound, "calibrate", "server %d is not known", server).WithHint("`strake server ls` lists them")
	}
	answers := make([][]Calibration, len(asked))
	var group errgroup.Group
	group.SetLimit(figuresAtOnce)
	for i, s := range asked {
		group.Go(func() error { answers[i] = c.calibrateOne(ctx, s, most); return nil })
	}
	_ = group.Wait() // each answer holds its own error
	var list []Calibration
	measured := false
	for _, d := range slices.Concat(answers...) {
		measured = measured || d.Error == ""
		list = append(list, d)
	}
	if len(list) > 0 && !measured {
		return nil, errs.New(errs.Unavailable, "calibrate", "no device was measured: %s", list[0].Error)
	}
	return list, ctx.Err()
}

func (c *Cell) calibrateOne(ctx context.Context, s ServerInfo, most time.Duration) (list []Calibration) {
	conn, err := c.meta.Pool().Get(s.Control)
	var r *pb.CalibrateReply
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, calibrateTimeout)
		defer cancel()
		r, err = pb.NewChunkClient(conn).Calibrate(ctx, &pb.CalibrateRequest{MostMs: uint32(min(max(0, most), calibrateTimeout).Milliseconds())})
	}
	if err != nil {
		return []Calibration{{Server: s.ID, Error: pb.FromStatus(err).Error()}}
	}
	for _, d := range r.Devices {
		list = append(list, Calibration{s.ID, d.Device, d.ReadBytesPerS, d.WriteBytesPerS, d.ReadOpsPerS, d.WriteOpsPerS, d.TookMs, d.Message})
	}
	return list
}
