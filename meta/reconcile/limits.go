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
	Backoff      time.Duration // after a first failure; doubles
	MaxBackoff   time.Duration

	Plan     int // tasks of one plan
	Scan     int // records read of each listing for one plan
	InFlight int // tasks of one kind handed out and not done
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
	}
}
