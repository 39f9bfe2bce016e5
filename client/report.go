package client

import (
	"context"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// maxReports bounds the reports that wait; more are dropped, since whoever
	// reads a bad shard again reports it again.
	maxReports = 256
	// reportEvery is how long reports gather.
	reportEvery = time.Second
	// reportAgain is how long a report that was sent is not repeated, and
	// maxReported bounds those remembered.
	reportAgain = time.Minute
	maxReported = 4096
	// maxDeviceReports bounds the devices that wait to be told of.
	maxDeviceReports = 64
)

// reporter tells the metadata service of shards that were found bad, so that
// they get repaired, and of devices that limp. It is best effort and never holds up a read.
type reporter struct {
	mu      sync.Mutex
	waiting map[reportKey]*pb.ShardReport // guarded by mu
	devices map[uint64]*pb.DeviceReport   // guarded by mu: the latest word on each
	sent    map[reportKey]time.Time       // guarded by mu: when a report was first sent
	sending bool                          // guarded by mu: a goroutine is under way
	done    crew
}

type reportKey struct {
	shard layout.ShardKey
	kind  errs.Kind
}

// add notes a bad shard. The first one of a batch starts its sending.
func (r *reporter) add(c *Cell, s *segment, shard layout.ShardIndex, kind errs.Kind, at layout.ShardOffset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reportKey{layout.ShardKey{Segment: s.id, Shard: shard}, kind}
	if len(r.waiting) >= maxReports || time.Since(r.sent[key]) < reportAgain {
		return
	}
	if r.waiting == nil {
		r.waiting = map[reportKey]*pb.ShardReport{}
	}
	r.waiting[key] = &pb.ShardReport{Shard: shardRefPB(s, shard), Kind: uint32(kind), Offset: uint64(at)}
	r.start(c)
}

// addDevice notes a word on a device that limps, or does no more.
func (r *reporter) addDevice(c *Cell, d *pb.DeviceReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.devices[d.Device]; !again && len(r.devices) >= maxDeviceReports {
		return
	}
	if r.devices == nil {
		r.devices = map[uint64]*pb.DeviceReport{}
	}
	r.devices[d.Device] = d
	r.start(c)
}

// start has what waits sent. mu is held.
func (r *reporter) start(c *Cell) {
	if !r.sending {
		r.sending = r.done.start(func() { r.send(c) })
	}
}

// send waits for more reports and sends all of them.
func (r *reporter) send(c *Cell) {
	pause(c.life, reportEvery)
	request := &pb.ReportShardsRequest{Session: uint64(c.session.current())}
	request.Reports, request.Devices = r.take()
	ctx, cancel := context.WithTimeout(c.life, reportEvery)
	defer cancel()
	_ = c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ReportShards(ctx, request)
		return err
	})
}

// take gives the reports that wait and remembers them as sent.
func (r *reporter) take() (list []*pb.ShardReport, devices []*pb.DeviceReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sent) > maxReported || r.sent == nil {
		r.sent = map[reportKey]time.Time{}
	}
	for key, report := range r.waiting {
		list = append(list, report)
		r.sent[key] = time.Now()
	}
	for _, d := range r.devices {
		devices = append(devices, d)
	}
	r.waiting, r.devices, r.sending = nil, nil, false
	return list, devices
}
