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
// that restarts often gets everywhere in time.
func (s *scrub) cycle(ctx context.Context) {
	list := s.begin()
	if n := len(list); n > 0 {
		from := rand.IntN(n)
		list = slices.Concat(list[from:], list[:from])
	}
	for _, ref := range list {
		if ctx.Err() != nil || s.dev.Store.Err() != nil {
			break
		}
		s.check(ctx, ref)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if ctx.Err() == nil {
		s.met.Cycles++
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

// check reads one shard and reports what is wrong with it.
func (s *scrub) check(ctx context.Context, ref frame.ShardRef) {
	end, err := s.janitor.begin(ref.ShardKey)
	if err != nil {
		return // it is being worked on, or the server shuts down
	}
	defer end()
	n, at, err := s.verify(ctx, ref)
	s.mu.Lock()
	s.met.Shards++
	s.met.Bytes += uint64(n)
	deep := s.met.Deep
	s.mu.Unlock()
	switch kind := errs.KindOf(err); {
	case err == nil && deep:
		s.compare(ctx, ref)
	case ctx.Err() != nil, kind == errs.OK, kind == errs.NotHere, kind == errs.StaleGeneration, s.dev.Store.Err() != nil:
	default:
		s.report(ctx, ref, at, err)
	}
}

// verify holds every unit of a shard against its header. at is where the first
// wrong byte was found.
func (s *scrub) verify(ctx context.Context, ref frame.ShardRef) (n int64, at layout.ShardOffset, err error) {
	for next := layout.Seq(1); next != 0 && err == nil; {
		var page []byte
		if page, _, next, err = s.dev.Store.List(ref, next, listPage); err != nil {
			return n, 0, err
		}
		for len(page) > 0 && err == nil {
			h, size, bad := stripe.Decode(page)
			if bad != nil {
				return n, 0, bad
			}
			page = page[size:]
			at = h.Offset
			n += int64(h.Shape.Unit)
			err = s.verifyUnit(ctx, ref, h)
		}
	}
	return n, at, err
}

func (s *scrub) verifyUnit(ctx context.Context, ref frame.ShardRef, h *stripe.Header) error {
	crcs := h.UnitCRCs(ref.Shard)
	for off := uint32(0); off < h.Shape.Unit; off += scrubRead {
		n := min(scrubRead, h.Shape.Unit-off)
		if err := s.pace.take(ctx, int64(n)); err != nil {
			return err
		}
		buf := make([]byte, n)
		if err := s.dev.read(ctx, ref, h.Offset+layout.ShardOffset(off), buf); err != nil {
			return err
		}
		for i := 0; i < len(buf); i += layout.BlockSize {
			if stripe.BlockCRC(buf[i:i+layout.BlockSize]) != crcs[(int(off)+i)/layout.BlockSize] {
				return errs.New(errs.Corrupt, "", "stripe %d: the block at %d has another checksum", h.Seq, int64(h.Offset)+int64(off)+int64(i))
			}
		}
	}
	return nil
}

// report counts a finding and tells the metadata service, which has it repaired.
func (s *scrub) report(ctx context.Context, ref frame.ShardRef, at layout.ShardOffset, cause error) {
	s.janitor.log.Warn("scrub found a bad shard", "segment", ref.Segment, "shard", ref.Shard, "device", s.dev.ID, "err", cause)
	shard := &pb.ShardRef{Segment: uint64(ref.Segment), Shard: uint32(ref.Shard), Generation: uint32(ref.Generation), Device: uint64(s.dev.ID)}
	s.mu.Lock()
	s.met.Found++
	s.findings = append(s.findings, &pb.ScrubFinding{Shard: shard, Offset: uint64(at), Message: cause.Error()})
	s.findings = s.findings[max(0, len(s.findings)-keptFindings):]
	s.mu.Unlock()
	s.janitor.tell(ctx, []*pb.ShardReport{{Shard: shard, Kind: uint32(errs.Corrupt), Offset: uint64(at), Detail: "scrub: " + cause.Error()}})
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
