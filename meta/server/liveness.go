package server

import (
	"sync"
	"time"

	"strake/meta/state"
)

// liveness is the leader's soft state of chunk servers: when each was heard
// last, and what its devices said. It begins anew with each term; every server
// counts as heard then.
// forever is the silence of a server that was never heard.
const forever = time.Duration(1<<63 - 1)

type liveness struct {
	silence time.Duration

	mu        sync.Mutex
	lastHeard map[serverID]time.Time          // guarded by mu
	said      map[deviceID]state.DeviceUpdate // guarded by mu: the last heartbeat's figures
}

func newLiveness(silence time.Duration) *liveness {
	return &liveness{silence: silence, lastHeard: map[serverID]time.Time{}, said: map[deviceID]state.DeviceUpdate{}}
}

func (l *liveness) begin(servers []state.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHeard, l.said = map[serverID]time.Time{}, map[deviceID]state.DeviceUpdate{}
	for _, s := range servers {
		l.lastHeard[s.ID] = time.Now()
	}
}

// report notes a sign of life, and what it said of devices.
func (l *liveness) report(id serverID, devices []state.DeviceUpdate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHeard[id] = time.Now()
	for _, d := range devices {
		l.said[d.Device] = d
	}
}

// silent is how long a server has said nothing; one never heard in this term
// has been silent for ever.
func (l *liveness) silent(id serverID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.lastHeard[id]
	if !ok {
		return forever
	}
	return time.Since(at)
}

// up tells whether a server was heard lately.
func (l *liveness) up(id serverID) bool { return l.silent(id) < l.silence }

// figures gives a device's newest figures.
func (l *liveness) figures(id deviceID) (state.DeviceUpdate, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.said[id]
	return d, ok
}

// changed lists devices whose figures moved much since they were recorded: by
// a twentieth of the device, or their state.
func (l *liveness) changed(view *state.View, most int) []state.DeviceUpdate {
	var list []state.DeviceUpdate
	for _, d := range view.Devices() {
		said, ok := l.figures(d.ID)
		if !ok || d.State == state.DeviceDraining || d.State == state.DeviceDead {
			continue
		}
		far := func(a, b uint64) bool { return max(a, b)-min(a, b) > d.Total/20 }
		if said.State != d.State || said.Total != d.Total || far(said.Used, d.Used) || far(said.Reserved, d.Reserved) {
			list = append(list, said)
		}
		if len(list) == most {
			break
		}
	}
	return list
}
