package janitor

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// firstScrub is how long after the start the first cycle begins.
	firstScrub = time.Minute
	// keptFindings bounds the findings that are remembered for people.
	keptFindings = 64
	// scrubRead is the most that is read at once.
	scrubRead = 1 << 20
	// putOff is how long a cycle waits, when it is through, before it looks again
	// at the shards that could not be read then; it doubles, putOffRounds times.
	putOff       = time.Second
	putOffRounds = 8
)

// scrub reads a device in cycles.
type scrub struct {
	janitor *Janitor
	dev     Device
	pace    pace
	kick    chan struct{} // a place for one: begin now

	mu       sync.Mutex // guards all below
	forced   bool       // the next cycle, or the one under way, goes as fast as it may
	deep     bool       // the same compares parity
	running  bool
	began    time.Time
	met      pb.ScrubDevice // figures
	findings []*pb.ScrubFinding
}

func newScrub(j *Janitor, d Device) *scrub {
	return &scrub{janitor: j, dev: d, kick: make(chan struct{}, 1)}
}

// run begins a cycle when the last one's time is over, or when it is asked to.
func (s *scrub) run() {
	ctx := s.janitor.ctx
	wait := firstScrub
	for {
		timer := (<-chan time.Time)(nil)
		if s.janitor.cfg.ScrubCycle > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-timer:
		}
		began := time.Now()
		s.cycle(ctx)
		wait = max(time.Second, s.janitor.cfg.ScrubCycle-time.Since(began))
	}
}

// start asks for a cycle now; one under way hurries up.
func (s *scrub) start(deep bool) {
	s.mu.Lock()
	s.forced, s.deep = true, s.deep || deep
	if s.running {
		s.pace.set(s.janitor.cfg.ScrubRate)
	}
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// cycle checks every finalized shard once, beginning anywhere, so that a server
// that restarts often gets everywhere in time. A shard that another task works on,
// or that the device was too busy for, is looked at again at the end.
func (s *scrub) cycle(ctx context.Context) {
	list := s.begin()
	if n := len(list); n > 0 {
		from := rand.IntN(n)
		list = slices.Concat(list[from:], list[:from])
	}
	wait := putOff
	for range putOffRounds {
		if list = s.round(ctx, list); len(list) == 0 || pause(ctx, wait) != nil {
			break
		}
		wait *= 2
	}
	if len(list) > 0 && ctx.Err() == nil {
		s.janitor.log.Warn("shards not scrubbed in this cycle: they could not be read", "device", s.dev.ID, "count", len(list))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if ctx.Err() == nil {
		s.met.Cycles++
	}
}

// round checks shards one after the other and gives those to be looked at again.
func (s *scrub) round(ctx context.Context, list []frame.ShardRef) (again []frame.ShardRef) {
	for _, ref := range list {
		if ctx.Err() != nil || s.dev.Store.Err() != nil {
			return nil
		}
		if !s.check(ctx, ref) {
			again = append(again, ref)
		}
	}
	return again
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// begin lists what the cycle will check and sets its pace.
func (s *scrub) begin() (list []frame.ShardRef) {
	var bytes int64
	s.dev.Store.Each(func(st store.Stat) bool {
		if st.State == store.StateFinalized {
			list = append(list, st.Ref)
			bytes += st.Stored
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.kick: // this is the cycle that was asked for
	default:
	}
	rate := s.janitor.cfg.ScrubRate
	if !s.forced {
		// Three quarters of the time, so that the cycle ends in it.
		rate = min(rate, max(1<<20, 4*bytes/3/max(1, int64(s.janitor.cfg.ScrubCycle/time.Second))))
	}
	s.pace.set(rate)
	s.running, s.began = true, time.Now()
	s.met.Deep, s.met.Shards, s.met.Bytes = s.deep, 0, 0
	s.met.TotalShards, s.met.TotalBytes = uint64(len(list)), uint64(bytes)
	s.forced, s.deep = false, false
	return list
}

// check reads one shard and reports what is wrong with it. It tells whether the
// cycle is through with it.
func (s *scrub) check(ctx context.Context, ref frame.ShardRef) (through bool) {
	end, err := s.janitor.begin(ref.ShardKey)
	if err != nil {
		return false // it is being worked on, or the server shuts down
	}
	defer end()
	n, at, err := s.verify(ctx, ref)
	if passing(err) || ctx.Err() != nil || s.dev.Store.Err() != nil {
		return false
	}
	s.mu.Lock()
	s.met.Shards++
	s.met.Bytes += uint64(n)
	deep := s.met.Deep
	s.mu.Unlock()
	switch kind := errs.KindOf(err); {
	case err == nil && deep:
		s.compare(ctx, ref)
	case kind == errs.OK, kind == errs.NotHere, kind == errs.StaleGeneration: // it has moved, or it is sound
	case kind == errs.Version: // a newer build wrote it: nothing to repair, and not for this one to judge
		s.janitor.log.Warn("shard not verified", "segment", ref.Segment, "shard", ref.Shard, "err", err)
	default:
		s.report(ctx, finding{shard: refOut(ref, s.dev.ID), at: at, kind: errs.Corrupt, text: err.Error()})
	}
	return true
}

// passing tells whether an error says nothing of the shard: the device was busy, or
// this server shuts down.
func passing(err error) bool {
	switch errs.KindOf(err) {
	case errs.Overloaded, errs.Deadline, errs.Canceled, errs.Closed, errs.Busy, errs.Unavailable:
		return true
	}
	return false
}

// verify holds every unit of a shard against its header.
func (s *scrub) verify(ctx context.Context, ref frame.ShardRef) (n int64, at layout.ShardOffset, err error) {
	return Verify(s.dev.Store, ref, func(at layout.ShardOffset, buf []byte) error {
		if err := s.pace.take(ctx, int64(len(buf))); err != nil {
			return err
		}
		return s.dev.read(ctx, ref, at, buf)
	})
}

// Verify holds every unit of a shard against its header. read reads the shard's
// bytes from an offset on. n is how many bytes were read, at where the first wrong
// one was found, or one that can't be read.
func Verify(st Store, ref frame.ShardRef, read func(at layout.ShardOffset, buf []byte) error) (n int64, at layout.ShardOffset, err error) {
	var buf []byte
	for next := layout.Seq(1); next != 0 && err == nil; {
		var page []byte
		if page, _, next, err = st.List(ref, next, listPage); err != nil {
			return n, 0, err
		}
		for len(page) > 0 && err == nil {
			h, size, bad := stripe.Decode(page)
			if bad != nil {
				return n, 0, bad
			}
			page = page[size:]
			n += int64(h.Shape.Unit)
			buf = slices.Grow(buf[:0], int(min(scrubRead, h.Shape.Unit)))
			at, err = verifyUnit(ref, h, buf, read)
		}
	}
	return n, at, err
}

// verifyUnit holds one unit against its header; room is where its bytes go.
func verifyUnit(ref frame.ShardRef, h *stripe.Header, room []byte, read func(at layout.ShardOffset, buf []byte) error) (at layout.ShardOffset, err error) {
	crcs := h.UnitCRCs(ref.Shard)
	for off := uint32(0); off < h.Shape.Unit; off += scrubRead {
		buf := room[:min(scrubRead, h.Shape.Unit-off)]
		at = h.Offset + layout.ShardOffset(off)
		if err := read(at, buf); err != nil {
			return at, err
		}
		for i := 0; i < len(buf); i += layout.BlockSize {
			if stripe.BlockCRC(buf[i:i+layout.BlockSize]) != crcs[(int(off)+i)/layout.BlockSize] {
				at += layout.ShardOffset(i)
				return at, errs.New(errs.Corrupt, "", "stripe %d: the block at %d has another checksum", h.Seq, at)
			}
		}
	}
	return at, nil
}

// finding is what is wrong with a shard.
type finding struct {
	shard *pb.ShardRef
	at    layout.ShardOffset
	kind  errs.Kind // Corrupt: the metadata service has it made again; Internal: nothing can
	text  string
}

func refOut(ref frame.ShardRef, device layout.DeviceID) *pb.ShardRef {
	return &pb.ShardRef{Segment: uint64(ref.Segment), Shard: uint32(ref.Shard), Generation: uint32(ref.Generation), Device: uint64(device)}
}

// report counts findings and tells the metadata service.
func (s *scrub) report(ctx context.Context, list ...finding) {
	var reports []*pb.ShardReport
	s.mu.Lock()
	for _, f := range list {
		s.janitor.log.Warn("scrub found a bad shard", "segment", f.shard.Segment, "shard", f.shard.Shard, "device", f.shard.Device, "err", f.text)
		s.met.Found++
		s.findings = append(s.findings, &pb.ScrubFinding{Shard: f.shard, Offset: uint64(f.at), Message: f.text})
		reports = append(reports, &pb.ShardReport{Shard: f.shard, Kind: uint32(f.kind), Offset: uint64(f.at), Detail: "scrub: " + f.text})
	}
	s.findings = s.findings[max(0, len(s.findings)-keptFindings):]
	s.mu.Unlock()
	if len(reports) > 0 {
		s.janitor.tell(ctx, reports)
	}
}

// tellTimeout bounds the report of a finding; the next cycle finds it again.
const tellTimeout = 30 * time.Second

func (j *Janitor) tell(ctx context.Context, reports []*pb.ShardReport) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	err := j.cfg.Meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ReportShards(ctx, &pb.ReportShardsRequest{Reports: reports})
		return err
	})
	if err != nil && ctx.Err() == nil {
		j.log.Warn("bad shards not reported", "err", err)
	}
}

// Scrub implements pb.ChunkServer.
func (j *Janitor) Scrub(_ context.Context, req *pb.ScrubRequest) (*pb.ScrubReply, error) {
	reply := &pb.ScrubReply{}
	for _, s := range j.scrubs {
		if req.Start {
			s.start(req.Deep)
		}
		reply.Devices = append(reply.Devices, s.status())
	}
	return reply, nil
}

func (s *scrub) status() *pb.ScrubDevice {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.met
	out := &pb.ScrubDevice{Device: uint64(s.dev.ID), Running: s.running || s.forced, Deep: m.Deep || s.deep, Shards: m.Shards, Bytes: m.Bytes,
		TotalShards: m.TotalShards, TotalBytes: m.TotalBytes, Cycles: m.Cycles, Found: m.Found, ParityCompared: m.ParityCompared,
		Findings: slices.Clone(s.findings)}
	if took := time.Since(s.began); s.running && m.Bytes > 0 && m.TotalBytes > m.Bytes {
		out.EtaS = uint64(took.Seconds() * float64(m.TotalBytes-m.Bytes) / float64(m.Bytes))
	}
	return out
}
