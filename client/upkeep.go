package client

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/proto/pb"
)

const (
	// maxScrubCalls bounds the chunk servers that are asked at once.
	maxScrubCalls = 32
	scrubTimeout  = 5 * time.Second
)

// RebuildInfo is what is lost and how its rebuild goes; the leader's figures since
// it leads. Bytes are of shards.
type RebuildInfo struct {
	LostShards     uint64   `json:"lost_shards"`
	LostBytes      uint64   `json:"lost_bytes"`
	MovingShards   uint64   `json:"moving_shards"` // on devices that are being drained
	MovingBytes    uint64   `json:"moving_bytes"`
	AtRisk         uint64   `json:"segments_at_risk"`  // can lose no more shard
	Lacking        uint64   `json:"segments_lacking"`  // fewer than k shards are at hand
	Homeless       uint64   `json:"segments_homeless"` // no device is left for a shard
	Running        uint64   `json:"running"`
	RebuiltShards  uint64   `json:"rebuilt_shards"`
	RebuiltBytes   uint64   `json:"rebuilt_bytes"`
	RepairedShards uint64   `json:"repaired_shards"` // in place
	Failed         uint64   `json:"failed"`
	BytesPerSecond uint64   `json:"bytes_per_s"`
	ETASeconds     uint64   `json:"eta_s"`            // 0: nothing to do, or unknown
	RebuildAfterMs uint64   `json:"rebuild_after_ms"` // how long a server may be gone before
	Waiting        []string `json:"waiting"`          // gone and not given up yet
	LastError      string   `json:"last_error,omitempty"`
}

// Rebuild tells how the rebuild of lost shards goes.
func (c *Cell) Rebuild(ctx context.Context) (RebuildInfo, error) {
	r, err := call(ctx, c, "ask for the rebuild's status", func(ctx context.Context, m pb.MetaClient) (*pb.RebuildStatusReply, error) {
		return m.RebuildStatus(ctx, &pb.RebuildStatusRequest{})
	})
	if err != nil {
		return RebuildInfo{}, err
	}
	return RebuildInfo{LostShards: r.LostShards, LostBytes: r.LostBytes, MovingShards: r.MovingShards, MovingBytes: r.MovingBytes,
		AtRisk: r.AtRisk, Lacking: r.Lacking, Homeless: r.Homeless, Running: r.Running, RebuiltShards: r.RebuiltShards,
		RebuiltBytes: r.RebuiltBytes, RepairedShards: r.RepairedShards, Failed: r.Failed, BytesPerSecond: r.BytesPerSecond,
		ETASeconds: r.EtaS, RebuildAfterMs: r.RebuildAfterMs, Waiting: append([]string{}, r.Waiting...), LastError: r.LastError}, nil
}

// DeviceChange is what an administrator wants of devices.
type DeviceChange int

// Changes of devices.
const (
	DrainDevices   DeviceChange = iota + 1 // move their shards elsewhere; they take no new ones
	UndrainDevices                         // take that back
	RemoveDevices                          // give them up for ever: their shards are made again elsewhere
)

// ChangeServer changes all devices of a server and gives their ids. Errors:
// ErrNotFound; ErrNoSpace, Frozen or Conflict when data would be endangered, with
// the volumes.
func (c *Cell) ChangeServer(ctx context.Context, server uint64, change DeviceChange) ([]uint64, error) {
	return c.changeDevices(ctx, &pb.ChangeDevicesRequest{Server: server}, change)
}

// ChangeDevice changes one device. Errors as ChangeServer's.
func (c *Cell) ChangeDevice(ctx context.Context, device uint64, change DeviceChange) error {
	_, err := c.changeDevices(ctx, &pb.ChangeDevicesRequest{Devices: []uint64{device}}, change)
	return err
}

func (c *Cell) changeDevices(ctx context.Context, r *pb.ChangeDevicesRequest, change DeviceChange) ([]uint64, error) {
	r.Command, r.Change = newCommand(), pb.ChangeDevicesRequest_Change(change)
	reply, err := call(ctx, c, "change devices", func(ctx context.Context, m pb.MetaClient) (*pb.ChangeDevicesReply, error) {
		return m.ChangeDevices(ctx, r)
	})
	return reply.GetDevices(), err
}

// RemoveServer forgets a chunk server that is down and holds no shard. Errors:
// ErrNotFound, Busy with what to do first.
func (c *Cell) RemoveServer(ctx context.Context, server uint64) error {
	_, err := call(ctx, c, "remove server", func(ctx context.Context, m pb.MetaClient) (*pb.RemoveServerReply, error) {
		return m.RemoveServer(ctx, &pb.RemoveServerRequest{Server: server})
	})
	return err
}

// ScrubInfo is how one device's scrub stands.
type ScrubInfo struct {
	Server         uint64         `json:"server"`
	Device         uint64         `json:"device"`
	Running        bool           `json:"running"`
	Deep           bool           `json:"deep"`
	Shards         uint64         `json:"shards"` // checked in this cycle
	Bytes          uint64         `json:"bytes"`
	TotalShards    uint64         `json:"total_shards"`
	TotalBytes     uint64         `json:"total_bytes"`
	Cycles         uint64         `json:"cycles"` // since the server's start
	Found          uint64         `json:"found"`  // the same: shards with wrong bytes
	ParityCompared uint64         `json:"parity_compared_bytes"`
	ETASeconds     uint64         `json:"eta_s"`
	Findings       []ScrubFinding `json:"findings"`        // the latest
	Error          string         `json:"error,omitempty"` // the server did not answer; only Server is set beside
}

// ScrubFinding is a shard in which wrong bytes were found.
type ScrubFinding struct {
	Segment uint64 `json:"segment"`
	Shard   uint32 `json:"shard"`
	Offset  uint64 `json:"offset"`
	Message string `json:"message"`
}

// Scrub tells how the scrubs of all devices stand, and with start begins a cycle
// on each; deep ones compare parity. A server that does not answer is in the list
// with an error. Error: when no server answers.
func (c *Cell) Scrub(ctx context.Context, start, deep bool) ([]ScrubInfo, error) {
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([][]ScrubInfo, len(servers))
	var group errgroup.Group
	group.SetLimit(maxScrubCalls)
	for i, s := range servers {
		group.Go(func() error { answers[i] = c.scrubOne(ctx, s, start, deep); return nil })
	}
	_ = group.Wait() // each answer holds its own error
	var list []ScrubInfo
	answered := len(servers) == 0
	for _, a := range answers {
		answered = answered || a == nil || a[0].Error == ""
		list = append(list, a...)
	}
	if !answered {
		return nil, errs.New(errs.Unavailable, "scrub", "no chunk server answers: %s", list[0].Error)
	}
	return list, nil
}

func (c *Cell) scrubOne(ctx context.Context, s ServerInfo, start, deep bool) (list []ScrubInfo) {
	conn, err := c.meta.Pool().Get(s.Control)
	var r *pb.ScrubReply
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
		defer cancel()
		r, err = pb.NewChunkClient(conn).Scrub(ctx, &pb.ScrubRequest{Start: start, Deep: deep})
	}
	if err != nil {
		return []ScrubInfo{{Server: s.ID, Findings: []ScrubFinding{}, Error: pb.FromStatus(err).Error()}}
	}
	for _, d := range r.Devices {
		info := ScrubInfo{Server: s.ID, Device: d.Device, Running: d.Running, Deep: d.Deep, Shards: d.Shards, Bytes: d.Bytes,
			TotalShards: d.TotalShards, TotalBytes: d.TotalBytes, Cycles: d.Cycles, Found: d.Found,
			ParityCompared: d.ParityCompared, ETASeconds: d.EtaS, Findings: []ScrubFinding{}}
		for _, f := range d.Findings {
			info.Findings = append(info.Findings, ScrubFinding{f.GetShard().GetSegment(), f.GetShard().GetShard(), f.Offset, f.Message})
		}
		list = append(list, info)
	}
	return list
}
