package chunkd

import (
	"context"
	"sync"
	"time"

	"strake/chunkd/store"
	"strake/internal/vfs"
	"strake/proto/pb"
)

const (
	// probeEvery is how often a device is measured that nobody suspects of limping;
	// others are with each heartbeat.
	probeEvery = 2 * time.Second
	// probeBytes is what a probe writes and reads, and probeFile the file it does so
	// in, a block further each time.
	probeBytes = 4096
	probeFile  = 16 * probeBytes
	// overdue is after how long a probe under way counts as one that took so long.
	overdue = time.Second
)

// prober measures one device: how long a small durable write and a small read take,
// beside whatever the device does. The metadata leader compares that with other
// servers' devices.
type prober struct {
	device *device
	asked  chan struct{} // a place for one: measure now

	mu      sync.Mutex
	write   time.Duration // guarded by mu: of the last probe
	read    time.Duration // guarded by mu: the same
	begun   time.Time     // guarded by mu: of the probe under way; zero: none is
	news    bool          // guarded by mu: measured since it was last reported
	counted uint64        // guarded by mu: bytes moved when last reported
	at      time.Time     // guarded by mu: when that was
}

func newProber(d *device) *prober { return &prober{device: d, asked: make(chan struct{}, 1)} }

// run measures until ctx ends, or the device does.
func (p *prober) run(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var trial *store.Trial
	defer func() {
		if trial != nil {
			_ = trial.Close() // it has no name and holds nothing
		}
	}()
	b := vfs.AlignedBytes(probeBytes)
	for turn := int64(0); ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-p.device.store.Failed():
			return
		case <-ticker.C:
		case <-p.asked:
		}
		if trial == nil {
			var err error
			if trial, err = p.device.store.NewTrial(probeFile, func() bool { return false }); err != nil {
				continue // full: its latency is nobody's trouble then
			}
		}
		p.probe(trial, b, turn*probeBytes%probeFile)
	}
}

func (p *prober) probe(t *store.Trial, b []byte, at int64) {
	begun := time.Now()
	p.mu.Lock()
	p.begun = begun
	p.mu.Unlock()
	err := t.Write(b, at, true)
	wrote := time.Now()
	if err == nil {
		err = t.Read(b, at)
	}
	read := time.Since(wrote)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = time.Time{}
	if err == nil { // an error is told by the device
		p.write, p.read, p.news = wrote.Sub(begun), read, true
	}
}

// report gives what is new; nil: nothing.
func (p *prober) report(now time.Time) *pb.DeviceLatency {
	moved := p.device.store.Counters()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &pb.DeviceLatency{Device: uint64(p.device.store.Superblock().Device), ReadNs: uint64(p.read), WriteNs: uint64(p.write)}
	if hangs := now.Sub(p.begun); !p.begun.IsZero() && hangs > overdue {
		out.ReadNs, out.WriteNs = 0, uint64(hangs)
	} else if !p.news {
		return nil
	}
	p.news = false
	bytes := moved.DataBytes + moved.LogBytes + moved.ReadBytes
	if seconds := now.Sub(p.at).Seconds(); !p.at.IsZero() && seconds > 0 {
		out.BytesPerS = uint64(float64(bytes-p.counted) / seconds)
	}
	p.counted, p.at = bytes, now
	return out
}

// ask has the device measured now.
func (p *prober) ask() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}
