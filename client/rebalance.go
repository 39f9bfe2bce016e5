package client

import (
	"context"

	"strake/proto/pb"
)

// RebalanceChange is what is wanted of the rebalance.
type RebalanceChange int

// Changes of the rebalance; the zero value only asks.
const (
	StartRebalance RebalanceChange = iota + 1
	StopRebalance                  // moves under way end in good order
)

// RebalanceInfo is how even the cell's devices are, and how a rebalance goes. The
// counts are the leader's since it leads.
type RebalanceInfo struct {
	Running        bool         `json:"running"`
	SpreadPermille uint64       `json:"spread_permille"` // between the fullest device and the emptiest
	GoalPermille   uint64       `json:"goal_permille"`   // at which a rebalance is done
	LeftBytes      uint64       `json:"left_bytes"`      // that must move at least
	Tasks          uint64       `json:"tasks"`           // moves under way
	MovedShards    uint64       `json:"moved_shards"`
	MovedBytes     uint64       `json:"moved_bytes"`
	BytesPerSecond uint64       `json:"bytes_per_s"` // lately, rebuilds included
	ETASeconds     uint64       `json:"eta_s"`       // 0: nothing to do, or unknown
	Devices        []DeviceFill `json:"devices"`     // the fullest first
}

// DeviceFill is how full a device is once the moves under way are done.
type DeviceFill struct {
	Device     uint64 `json:"device"`
	Server     uint64 `json:"server"`
	TotalBytes uint64 `json:"total_bytes"`
	HeldBytes  uint64 `json:"held_bytes"`
}

// Rebalance begins or ends a rebalance, or with no change only tells how it stands.
// It ends by itself when devices are even; beginning one that runs changes nothing.
func (c *Cell) Rebalance(ctx context.Context, change RebalanceChange) (RebalanceInfo, error) {
	request := &pb.RebalanceRequest{Command: newCommand(), Change: pb.RebalanceRequest_Change(change)}
	r, err := call(ctx, c, "rebalance", func(ctx context.Context, m pb.MetaClient) (*pb.RebalanceReply, error) {
		return m.Rebalance(ctx, request)
	})
	if err != nil {
		return RebalanceInfo{}, err
	}
	info := RebalanceInfo{Running: r.Running, SpreadPermille: r.SpreadPermille, GoalPermille: r.GoalPermille, LeftBytes: r.LeftBytes, Tasks: r.Tasks,
		MovedShards: r.MovedShards, MovedBytes: r.MovedBytes, BytesPerSecond: r.BytesPerSecond, ETASeconds: r.EtaS, Devices: []DeviceFill{}}
	for _, f := range r.Fills {
		info.Devices = append(info.Devices, DeviceFill{f.Device, f.Server, f.TotalBytes, f.HeldBytes})
	}
	return info, nil
}
