package reconcile

import "time"

// Limits are the thresholds and bounds of plans.
type Limits struct {
	DownAfter    time.Duration // silence after which a server is down
	UpAfter      time.Duration // steady heartbeats after which it is up again
	SessionTTL   time.Duration // silence after which a session is over
	CreateWithin time.Duration // an allocated segment that is not open by then goes back
	RecoverAfter time.Duration // how long a volume may lack a writer before a janitor recovers it
	PurgeAfter   time.Duration // how long a removed volume is kept
	RebuildAfter time.Duration // how long a server or device may be gone before its shards are made again
	DeleteAfter  time.Duration // how long a server or device may be gone before segments are deleted without it
	Backoff      time.Duration // after a first failure; doubles
	MaxBackoff   time.Duration

	Plan      int // tasks of one plan
	Scan      int // records read of each listing for one plan
	InFlight  int // tasks of one kind handed out and not done
	Rebuild   int // rebuilds and repairs handed out and not done, in the cell
	PerTarget int // of these, for one server
	Digests   int // tags whose digest is computed at once
	Cleans    int // volumes that janitors clean at once

	CleanAfter   time.Duration // how long a volume that holds garbage must lack a writer before a janitor cleans it
	GarbageLeast uint64        // bytes of garbage for which no janitor is sent
}

// most is how many tasks of a kind may be handed out and not done.
func (l *Limits) most(k kind) int {
	switch k {
	case kindRebuild:
		return l.Rebuild
	case kindClean:
		return l.Cleans
	case kindDigest:
		return l.Digests
	}
	return l.InFlight
}

// DefaultLimits suit a cell on one network.
func DefaultLimits() Limits {
	return Limits{
		DownAfter:    3 * time.Second,
		UpAfter:      2 * time.Second,
		SessionTTL:   15 * time.Second,
		CreateWithin: 30 * time.Second,
		RecoverAfter: 2 * time.Second,
		PurgeAfter:   24 * time.Hour,
		Backoff:      time.Second,
		MaxBackoff:   30 * time.Second, // recovery is tried again within 60 s
		Plan:         256,
		Scan:         1000,
		InFlight:     64,
		RebuildAfter: 10 * time.Minute,
		DeleteAfter:  30 * time.Second,
		Rebuild:      1024,
		PerTarget:    4,
		Digests:      4,
		Cleans:       4,
		CleanAfter:   10 * time.Second,
		GarbageLeast: 8 << 20,
	}
}
