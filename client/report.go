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
)

// reporter tells the metadata service of shards that were found bad, so that
// they get repaired. It is best effort and never holds up a read.
type reporter struct {
	mu      sync.Mutex
	waiting map[reportKey]*pb.ShardReport // guarded by mu
	sending bool                          // guarded by mu: a goroutine is under way
	done    sync.WaitGroup
}

type reportKey struct {
	shard layout.ShardKey
	kind  errs.Kind
}

// add notes a bad shard. The first one of a batch starts its sending.
func (r *reporter) add(c *Cell, segment layout.SegmentID, shard layout.ShardIndex, kind errs.Kind, at layout.ShardOffset) {
	s := c.places.cached(segment)
	if s == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxReports {
		return
	}
	if r.waiting == nil {
		r.waiting = map[reportKey]*pb.ShardReport{}
	}
	key := reportKey{layout.ShardKey{Segment: segment, Shard: shard}, kind}
	r.waiting[key] = &pb.ShardReport{Shard: shardRefPB(s, shard), Kind: uint32(kind), Offset: uint64(at)}
	if !r.sending {
		r.sending = true
		r.done.Go(func() { r.send(c) })
	}
}

// send waits for more reports and sends all of them.
func (r *reporter) send(c *Cell) {
	pause(c.life, reportEvery)
	r.mu.Lock()
	request := &pb.ReportShardsRequest{Session: uint64(c.session.id)}
	for _, report := range r.waiting {
		request.Reports = append(request.Reports, report)
	}
	r.waiting, r.sending = nil, false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.life, reportEvery)
	defer cancel()
	_ = c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ReportShards(ctx, request)
		return err
	})
}
