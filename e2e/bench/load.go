package bench

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// warmUp is the most time that is spent before a measurement, unmeasured.
	warmUp = 300 * time.Millisecond
	// compareEvery is how often a read has one whole block compared.
	compareEvery = 16
	// maxSample is how many written places a worker reads back.
	maxSample = 256
)

// job is a load on a volume, as the workers get it.
type job struct {
	Cell    string
	Volume  string
	Case    Case
	Size    int64 // bytes of the working set, from the volume's begin
	Seed    uint64
	Client  int // this worker's number
	Clients int
	Seconds float64
	Gen     uint64 // of the blocks that are read or written
	Profile string // path of a CPU profile of the run; empty: none
}

// load makes a job's load. One run at a time.
type load struct {
	job      job
	content  *content
	cell     *client.Cell
	borrowed bool // the cell is another load's
	counters func() client.TransportCounters
	volume   *client.Volume
	buffers  [][]byte // by slot
	written  []int64  // offsets of the last run's writes, a sample
}

// newLoad connects, and opens the volume unless that belongs to the time.
func newLoad(ctx context.Context, j job) (*load, error) {
	cfg, counters := client.Counted(client.Config{Addresses: j.Cell})
	cell, err := client.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return newLoadIn(ctx, j, cell, counters)
}

// newLoadIn is newLoad through a connection that is there.
func newLoadIn(ctx context.Context, j job, cell *client.Cell, counters func() client.TransportCounters) (l *load, err error) {
	l = &load{job: j, content: newContent(), cell: cell, counters: counters}
	for range j.Case.Depth {
		l.buffers = append(l.buffers, make([]byte, j.Case.Block))
	}
	if !j.Case.Cold {
		err = l.open(ctx)
	}
	return l, err
}

// shared makes a load that goes through this one's connections.
func (l *load) shared(ctx context.Context, j job) (*load, error) {
	other, err := newLoadIn(ctx, j, l.cell, l.counters)
	other.borrowed = true
	return other, err
}

func (l *load) open(ctx context.Context) (err error) {
	l.volume, err = l.cell.Open(ctx, l.job.Volume, client.OpenOptions{Write: l.job.Case.Write, Class: l.job.Case.Class})
	return err
}

func (l *load) close(ctx context.Context) error {
	var err error
	if l.volume != nil {
		err = l.volume.CloseContext(ctx)
	}
	if l.borrowed {
		return err
	}
	if closeErr := l.cell.Close(); err == nil {
		err = closeErr
	}
	return err
}

// warm runs the load for a moment without counting it.
func (l *load) warm(ctx context.Context) error {
	if l.volume == nil {
		return nil
	}
	seconds := min(l.job.Seconds/4, warmUp.Seconds())
	r := newRecorder(seconds)
	r.start()
	return l.slots(ctx, r, seconds)
}

// run runs the load and tells what it did.
func (l *load) run(ctx context.Context) (tally, error) {
	r := newRecorder(l.job.Seconds)
	l.written = l.written[:0]
	before := l.count()
	r.start()
	if l.volume == nil {
		if err := l.open(ctx); err != nil {
			return tally{}, err
		}
	}
	if err := l.slots(ctx, r, l.job.Seconds); err != nil {
		return tally{}, err
	}
	if l.job.Case.Settle {
		if err := l.volume.Flush(ctx); err != nil {
			return tally{}, err
		}
		r.last = time.Now()
	}
	after := l.count()
	t, err := r.tally()
	t.Copied, t.SystemCalls = after.copied-before.copied, after.calls-before.calls
	t.Allocations = after.allocations - before.allocations
	t.DegradedReads, t.HedgedReads = after.degraded-before.degraded, after.hedged-before.hedged
	t.Requests, t.ExtraRequests, t.ExtraBytes = after.requests-before.requests, after.extra-before.extra, after.extraBytes-before.extraBytes
	return t, err
}

// counts are the client's counters that a run's figures come from.
type counts struct {
	copied, calls, allocations, degraded, hedged uint64
	requests, extra, extraBytes                  uint64
}

func (l *load) count() counts {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t := l.counters()
	n := counts{copied: t.BytesCopied, calls: t.Reads + t.Writes, allocations: m.Mallocs}
	if l.volume != nil {
		stats := named(l.volume.Stats())
		n.degraded, n.hedged = stats["degraded_reads"], stats["hedged_reads"]
		n.requests, n.extra, n.extraBytes = stats["shard_requests"], stats["extra_requests"], stats["extra_bytes"]
		n.copied += stats["copied_bytes"]
	}
	return n
}

// named gives a handle's counters by their names in JSON, so that a counter that
// a client does not have yet reads as 0.
func named(stats client.VolumeStats) map[string]uint64 {
	b, err := json.Marshal(stats)
	out := map[string]uint64{}
	if err == nil {
		_ = json.Unmarshal(b, &out)
	}
	return out
}

// slots runs the queue depth's goroutines until the time is over.
func (l *load) slots(ctx context.Context, r *recorder, seconds float64) error {
	if l.job.Case.Clean {
		return l.clean(ctx, r, seconds)
	}
	group, ctx := errgroup.WithContext(ctx)
	due := newStarts(r.begin, seconds, l.job.Case.Rate)
	next := &atomic.Int64{}
	next.Store(l.firstOperation())
	for slot := range l.job.Case.Depth {
		s := l.slot(r, slot)
		s.next = next
		group.Go(func() error { return due.each(ctx, r, s.operate) })
	}
	return group.Wait()
}

// slot gives one slot of the queue depth, which draws places of its own.
func (l *load) slot(r *recorder, n int) *slotLoad {
	return &slotLoad{load: l, buf: l.buffers[n], recorder: r, next: &atomic.Int64{},
		random: rand.New(rand.NewPCG(l.job.Seed, uint64(l.job.Client)<<16|uint64(n)))}
}

// firstOperation spreads the clients of a sequential read over the working set;
// a hot start begins at its begin everywhere.
func (l *load) firstOperation() int64 {
	if l.job.Case.Cold || l.job.Case.Write {
		return 0
	}
	return l.job.Size / l.job.Case.Block * int64(l.job.Client) / int64(max(1, l.job.Clients))
}

// slotLoad is one slot of the queue depth: one operation after the other.
type slotLoad struct {
	*load
	buf      []byte
	recorder *recorder
	next     *atomic.Int64
	random   *rand.Rand
	ops      int
}

// place draws the next operation's offset and length.
func (s *slotLoad) place() (off int64, p []byte) {
	c, n := s.job.Case, s.job.Case.Block
	if c.Smallest > 0 {
		n = c.Smallest + s.random.Int64N((c.Block-c.Smallest)/layout.BlockSize+1)*layout.BlockSize
	}
	if c.Random {
		step := min(c.Block, layout.BlockSize)
		if c.Smallest == 0 {
			step = c.Block
		}
		return s.random.Int64N((s.job.Size-n)/step+1) * step, s.buf[:n]
	}
	return (s.next.Add(1) - 1) % (s.job.Size / n) * n, s.buf[:n]
}

// operate does one operation, which counts from due, or from now when that is zero.
func (s *slotLoad) operate(ctx context.Context, due time.Time) error {
	off, p := s.place()
	s.ops++
	if s.job.Case.Write {
		return s.write(ctx, due, off, p)
	}
	began := orNow(due)
	if _, err := s.volume.ReadAtContext(ctx, p, off); err != nil {
		return err
	}
	s.recorder.add(began, len(p))
	if err := s.content.glance(p, off, s.job.Gen); err != nil || s.ops%compareEvery != 0 {
		return err
	}
	at := s.ops / compareEvery * layout.BlockSize % len(p)
	s.recorder.compared()
	return s.content.compare(p[at:], (off+int64(at))/layout.BlockSize, s.job.Gen)
}

func (s *slotLoad) write(ctx context.Context, due time.Time, off int64, p []byte) error {
	if len(p) == bodyBytes {
		s.whole(p, off)
	} else {
		s.content.fill(p, off, s.job.Gen)
	}
	began := orNow(due)
	if _, err := s.volume.WriteAtContext(ctx, p, off); err != nil {
		return err
	}
	if s.job.Case.Flush {
		if err := s.volume.Flush(ctx); err != nil {
			return err
		}
	}
	s.recorder.add(began, len(p))
	s.sample(off)
	return nil
}

// whole makes a buffer as long as the bodies: these are made once.
func (s *slotLoad) whole(p []byte, off int64) {
	if s.ops == 1 || off%bodyBytes != 0 {
		s.content.fill(p, off, s.job.Gen)
		return
	}
	s.content.stamp(p, off, s.job.Gen)
}

// sample keeps some of the places written, to be read back.
func (s *slotLoad) sample(off int64) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	if len(s.load.written) < maxSample {
		s.load.written = append(s.load.written, off)
	} else if n := s.random.Int64N(s.recorder.ops); n < maxSample {
		s.load.written[n] = off
	}
}

// check makes the last run's writes durable and reads a sample of them back. It
// gives the number of blocks compared.
func (l *load) check(ctx context.Context) (blocks int64, err error) {
	if !l.job.Case.Write {
		return 0, nil
	}
	if err := l.volume.Flush(ctx); err != nil {
		return 0, err
	}
	p := make([]byte, l.job.Case.Block)
	for _, off := range l.written[:min(len(l.written), int(maxSample*16*kib/l.job.Case.Block)+8)] {
		if _, err := l.volume.ReadAtContext(ctx, p, off); err != nil {
			return blocks, errs.Wrap(err, "read back what was written")
		}
		for at := 0; at < len(p); at += layout.BlockSize {
			if err := l.content.compare(p[at:], (off+int64(at))/layout.BlockSize, l.job.Gen); err != nil {
				return blocks, err
			}
			blocks++
		}
	}
	return blocks, nil
}

// fill writes the whole working set once, makes it durable, and reads it back:
// large writes pass the page cache by, and reads are measured with a warm one.
func fill(ctx context.Context, j job) (err error) {
	j.Case = Case{Block: bodyBytes, Depth: 4, Write: true}
	l, err := newLoad(ctx, j)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := l.close(ctx); err == nil {
			err = closeErr
		}
	}()
	under := make([]*client.Completion, 0, j.Case.Depth)
	for off := int64(0); off < j.Size; off += bodyBytes {
		p := l.buffers[0][:min(bodyBytes, j.Size-off)]
		l.content.fill(p, off, j.Gen)
		if len(under) == cap(under) {
			if err := under[0].Wait(ctx); err != nil {
				return err
			}
			under = append(under[:0], under[1:]...)
		}
		under = append(under, l.volume.WriteAsync(p, off))
	}
	for _, c := range under {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	if err := l.volume.Flush(ctx); err != nil {
		return err
	}
	return l.readBack(ctx)
}

// readBack reads the working set once and compares a block of each piece.
func (l *load) readBack(ctx context.Context) error {
	for off := int64(0); off < l.job.Size; off += bodyBytes {
		p := l.buffers[0][:min(bodyBytes, l.job.Size-off)]
		if _, err := l.volume.ReadAtContext(ctx, p, off); err != nil {
			return errs.Wrap(err, "read back what was written")
		}
		if err := l.content.compare(p, off/layout.BlockSize, l.job.Gen); err != nil {
			return err
		}
	}
	return nil
}
