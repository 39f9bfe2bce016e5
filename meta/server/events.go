package server

import (
	"log/slog"

	"strake/meta/state"
)

// logEvent makes a log line of what an operator would act on or look back for.
// The lines come from the leader.
func logEvent(log *slog.Logger, e state.Event) {
	switch e := e.(type) {
	case state.ServerRegistered:
		log.Info("chunk server registered", "server", e.Server, "new", e.New)
	case state.ServerWentUp:
		log.Info("chunk server up", "server", e.Server)
	case state.ServerWentDown:
		log.Warn("chunk server down", "server", e.Server)
	case state.DeviceStateChanged:
		log.Info("device changed", "device", e.Device, "old", e.Old.String(), "new", e.New.String())
	case state.ShardLost:
		log.Warn("shard lost", "segment", e.Shard.Segment, "shard", e.Shard.Shard)
	case state.ShardRepaired:
		log.Info("shard repaired", "segment", e.Shard.Segment, "shard", e.Shard.Shard)
	case state.VolumeCreated:
		log.Info("volume created", "volume", e.Volume)
	case state.VolumeRemoved:
		log.Info("volume removed", "volume", e.Volume)
	case state.VolumePurged:
		log.Info("volume purged", "volume", e.Volume)
	case state.VolumeCloned:
		log.Info("volume cloned", "volume", e.Volume, "snapshot", e.Snapshot)
	case state.VolumeRolledBack:
		log.Info("volume rolled back", "volume", e.Volume, "old", e.Old, "snapshot", e.Snapshot, "kept", e.Kept)
	case state.SnapshotCreated:
		log.Info("snapshot created", "snapshot", e.Snapshot, "volume", e.Volume, "seq", e.Seq)
	case state.SnapshotRemoved:
		log.Info("snapshot removed", "snapshot", e.Snapshot, "volume", e.Volume)
	case state.LeaseTaken:
		log.Info("lease taken", "volume", e.Volume, "epoch", e.Epoch, "session", e.Session)
	case state.LeaseExpired:
		log.Info("lease expired", "volume", e.Volume, "epoch", e.Epoch, "session", e.Session)
	case state.EpochClosed:
		log.Info("epoch closed", "volume", e.Volume, "epoch", e.Epoch, "seq", e.Cut)
	case state.LossAccepted:
		log.Warn("loss accepted", "volume", e.Volume, "epoch", e.Epoch, "seq", e.Cut, "peer", e.By)
	case state.RecoveryBlocked:
		log.Warn("recovery blocked", "volume", e.Volume, "epoch", e.Epoch, "err", e.Reason)
	}
}
