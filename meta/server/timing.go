package server

import (
	"time"

	"strake/internal/layout"
	"strake/meta/limping"
)

type (
	serverID  = layout.ServerID
	deviceID  = layout.DeviceID
	sessionID = layout.SessionID
	volumeID  = layout.VolumeID
)

const (
	maxRequest = 4 << 20  // bytes of one request
	maxReply   = 64 << 20 // bytes of one reply
	maxStreams = 4096     // calls under way on one connection
)

// Timing holds the times of sessions, failure detection and controllers; zero
// fields take the defaults.
type Timing struct {
	SessionTTL    time.Duration // 6 s
	ServerSilence time.Duration // 3 s without a heartbeat: the server is down
	Control       time.Duration // 1 s: how often the controllers look at the state
	ChunkCall     time.Duration // 2 s: for one call to a chunk server
	RecoverCall   time.Duration // 60 s: for the recovery of one volume by a janitor
	RecoverAfter  time.Duration // 2 s: how long a volume may lack a writer before a janitor recovers it
	CleanAfter    time.Duration // 10 s: how long a volume that holds garbage must lack a writer before a janitor cleans it
	RebuildAfter  time.Duration // 10 min: how long a server or device may be gone before its shards are made again
	DeleteAfter   time.Duration // 30 s: how long a server or device may be gone before segments are deleted without it
	RebuildCall   time.Duration // 30 min: for the rebuild of one shard
	PurgeAfter    time.Duration // 24 h: how long a removed volume can be brought back
	LimpingHold   time.Duration // 30 s: how long a device that limped must be quick before it is up again
}

func (t Timing) withDefaults() Timing {
	or := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	or(&t.SessionTTL, 6*time.Second)
	or(&t.ServerSilence, 3*time.Second)
	or(&t.Control, time.Second)
	or(&t.ChunkCall, 2*time.Second)
	or(&t.RecoverCall, time.Minute)
	or(&t.RecoverAfter, 2*time.Second)
	or(&t.CleanAfter, 10*time.Second)
	or(&t.RebuildAfter, 10*time.Minute)
	or(&t.DeleteAfter, 30*time.Second)
	or(&t.RebuildCall, 30*time.Minute)
	or(&t.PurgeAfter, 24*time.Hour)
	or(&t.LimpingHold, limping.DefaultLimits().Hold)
	return t
}
