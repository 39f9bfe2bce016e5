package replica

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

const (
	connsPerPeer = 3               // idle connections kept to one other server
	abandonAfter = 2 * time.Second // how long Close waits for a server whose disk failed
	// One request to a follower is under way at a time: raft's pipelining is off. With it,
	// a follower that refused entries while two requests were under way left its
	// replication waiting, until the process ended, for somebody to take the second
	// answer: it got no entries, though heartbeats, and Close waited with it (raft 1.8.0:
	// pipelineDecode returns, and netPipeline.AppendEntries waits for decodeResponses).
	rpcsInFlight = 1
	maxBatch     = 256 // entries of one write or one request
)

// Timing holds raft's times and bounds; zero fields take the defaults.
type Timing struct {
	Heartbeat         time.Duration // 1 s: without a leader's word for so long, a follower stands for election
	Commit            time.Duration // 50 ms
	RPC               time.Duration // 10 s: for one request; grows with a snapshot's size
	Watchdog          time.Duration // 5 s: for one write of the log
	SnapshotInterval  time.Duration // 30 s: how often the log's length is looked at
	SnapshotThreshold uint64        // 65536 entries since the last snapshot make the next
	TrailingLogs      uint64        // 32768 entries stay behind a snapshot for slow followers
	LogFile           int           // 16 MiB: bytes of one file of the log
}

func (t Timing) withDefaults() Timing {
	or := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	or(&t.Heartbeat, time.Second)
	or(&t.Commit, 50*time.Millisecond)
	or(&t.RPC, 10*time.Second)
	or(&t.Watchdog, 5*time.Second)
	or(&t.SnapshotInterval, 30*time.Second)
	if t.SnapshotThreshold == 0 {
		t.SnapshotThreshold = 65536
	}
	if t.TrailingLogs == 0 {
		t.TrailingLogs = 32768
	}
	return t
}

func (t Timing) logFile() int {
	if t.LogFile == 0 {
		return logLength
	}
	return t.LogFile
}

func (t Timing) config(id raft.ServerID, log *slog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = id
	c.Logger = hclogOf(log)
	c.HeartbeatTimeout, c.ElectionTimeout = t.Heartbeat, t.Heartbeat
	c.LeaderLeaseTimeout = t.Heartbeat / 2
	c.CommitTimeout = t.Commit
	c.MaxAppendEntries = maxBatch
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs
	c.ShutdownOnRemove = true
	c.NoLegacyTelemetry = true
	return c
}
