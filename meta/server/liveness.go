package server

import (
	"sync"
	"time"

	"strake/meta/state"
)

// forever is the silence of a server that was never heard.
const forever = time.Duration(1<<63 - 1)

// liveness is the leader's soft state of chunk servers: when each was heard
// last, and what its devices said. It begins anew with each term. A server is up
// once this leader heard it: what was registered before may be an address where
// nobody is any more. It is gone after a silence that counts from the term's
// begin, so a new leader gives everybody the full time; in between it is neither.
type liveness struct {
	silence time.Duration

	mu        sync.Mutex
	begun     time.Time              // guarded by mu: the term
	lastHeard map[serverID]time.Time // guarded by mu: in this term
	said      map[deviceID]saying    // guarded by mu: the last heartbeat's figures
	refused   map[deviceID]refusal   // guarded by mu: older lives that still send heartbeats
}

// saying is what a server's heartbeat said of a device.
type saying struct {
	state.DeviceUpdate
	other uint64 // bytes on the disk beside what is stored and promised
}

// refusal is why a device's older life was turned away.
type refusal struct {
	at   time.Time
	text string
}

func newLiveness(silence time.Duration) *liveness {
	l := &liveness{silence: silence}
	l.begin()
	return l
}

func (l *liveness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = time.Now()
	l.lastHeard, l.said, l.refused = map[serverID]time.Time{}, map[deviceID]saying{}, map[deviceID]refusal{}
}

// report notes a sign of life, and what it said of devices.
func (l *liveness) report(id serverID, devices []saying) {
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

// awaited tells whether a server was not heard in this term yet, and the term is
// young enough that it still may be.
func (l *liveness) awaited(id serverID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, heard := l.lastHeard[id]
	return !heard && time.Since(l.begun) < l.silence
}

// present tells whether a server is not gone: it is up, or still awaited.
func (l *liveness) present(id serverID) bool { return l.up(id) || l.awaited(id) }

// refuse notes that an older life of a device was turned away, and tells
// whether that is news.
func (l *liveness) refuse(id deviceID, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.refused[id]
	l.refused[id] = refusal{time.Now(), text}
	return !known || old.text != text
}

// rival tells why an older life of a device was turned away lately; empty: none was.
func (l *liveness) rival(id deviceID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.refused[id]
	if !ok || time.Since(r.at) > keptRefusal {
		return ""
	}
	return r.text
}

// keptRefusal is for how long an older life's last heartbeat is told of.
const keptRefusal = time.Minute

// figures gives a device's newest figures.
func (l *liveness) figures(id deviceID) (saying, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.said[id]
	return d, ok
}

// changed lists devices whose figures moved much since they were recorded: by
// a twentieth of the device, or their state. One that serves limps when the leader
// judges so, whatever its server says.
func (l *liveness) changed(view *state.View, limps func(*state.Device) (bool, string), most int) []state.DeviceUpdate {
	var list []state.DeviceUpdate
	for _, d := range view.Devices() {
		said, ok := l.figures(d.ID)
		if !ok || d.State == state.DeviceDead {
			continue
		}
		if bad, _ := limps(&d); bad && said.State == state.DeviceUp {
			said.State = state.DeviceLimping
		}
		far := func(a, b uint64) bool { return max(a, b)-min(a, b) > d.Total/20 }
		if d.Reports(said.State) != d.State || said.Total != d.Total || far(said.Used, d.Used) || far(said.Reserved, d.Reserved) {
			list = append(list, said.DeviceUpdate)
		}
		if len(list) == most {
			break
		}
	}
	return list
}
