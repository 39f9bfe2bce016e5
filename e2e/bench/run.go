package bench

import (
	"context"
	"errors"
	"fmt"

	"strake/client"
	"strake/internal/errs"
)

const (
	// ceilingShare is a ceiling's time in terms of its case's.
	ceilingShare = 0.3
	// shortestCeiling in seconds, unless the case is shorter.
	shortestCeiling = 0.5
	maxClients      = 64
	maxRepeat       = 100
)

// Options say what to measure and how.
type Options struct {
	Binary  string // the strake command
	Cases   string // names and patterns, comma-separated, or all
	Seconds float64
	Repeat  int
	Clients int
	Size    int64 // bytes of the working set; multiple of 4 MiB
	Seed    uint64

	K, M    int    // 0: what the cell gives
	Chunkds int    // of a throwaway cell
	Metas   int    // metadata servers of it; 0: one
	Dir     string // where a throwaway cell's data goes; empty: the temporary directory
	Emulate string // its devices' shape; empty: as they are
	FIFO    bool   // its chunk servers have no quality of service

	Cell      string // a cell that is there; empty: a throwaway one
	Volume    string // a volume in it
	Overwrite bool   // the volume may exist and is overwritten

	Faults   bool   // throughput over time while a server is killed
	Profile  string // directory of CPU profiles of the clients; empty: none
	Version  string
	Command  string // for the result
	Progress func(Event)
}

// Event tells how far a bench is.
type Event struct {
	Case    string
	Run, Of int
	Figures *Figures // of a run that has ended; nil: it begins
}

// check refuses what can't be measured.
func (o Options) check() error {
	const op = "bench"
	switch {
	case o.Seconds <= 0 || o.Repeat < 1 || o.Repeat > maxRepeat:
		return errs.New(errs.InvalidArgument, op, "%g seconds, %d times", o.Seconds, o.Repeat).WithHint("--seconds 5 --repeat 5")
	case o.Clients < 1 || o.Clients > maxClients:
		return errs.New(errs.InvalidArgument, op, "%d clients", o.Clients).WithHint("1 to %d", maxClients)
	case o.Size < 16*mib || o.Size%bodyBytes != 0:
		return errs.New(errs.InvalidArgument, op, "a working set of %d bytes", o.Size).WithHint("--size: a multiple of 4MiB, at least 16MiB")
	case o.Cell != "" && o.Volume == "":
		return errs.New(errs.InvalidArgument, op, "no volume named in the cell").WithHint("--volume NAME: the bench writes to it")
	}
	return nil
}

// bench is one run of the bench.
type bench struct {
	Options
	plan      plan
	target    *target // nil: ceilings alone
	crew      *crew
	near, far *hand // the two processes of ceilings
	gen       uint64
	filled    map[string]bool // volumes whose working set is written
	created   []string        // volumes to remove from a cell that was there
	tag       string          // of the volume that all read; empty: none was made
	info      client.VolumeInfo
	series    []*series
	ceilings  []*series
	faults    []Fault
	gaps      []Gap
	notes     []string
}

// Run measures. Errors: InvalidArgument, Unavailable, Corrupt when a read gave
// wrong bytes.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &bench{Options: o, filled: map[string]bool{}, crew: newCrew(o.Binary)}
	defer b.crew.close()
	if b.plan, err = newPlan(o.Cases); err != nil {
		return nil, err
	}
	defer func() {
		if endErr := b.end(); err == nil && ctx.Err() == nil {
			err = endErr
		}
	}()
	meter := meter{}
	before, err := meter.read()
	if err != nil {
		return nil, err
	}
	if err := b.all(ctx); err != nil {
		return nil, err
	}
	return b.result(before, meter)
}

// end ends all processes and removes what was made.
func (b *bench) end() error {
	for _, h := range []*hand{b.near, b.far} {
		if h != nil {
			h.dismiss()
		}
	}
	if b.target == nil {
		return nil
	}
	var bad []error
	if b.tag != "" && b.target.own == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		bad = append(bad, b.target.cell.RemoveSnapshot(ctx, b.tag))
		cancel()
	}
	for _, name := range b.created {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		bad = append(bad, b.target.cell.RemoveVolume(ctx, name, true))
		cancel()
	}
	return errors.Join(append(bad, b.target.close())...)
}

// all runs the plan.
func (b *bench) all(ctx context.Context) (err error) {
	if b.plan.needsCell() || b.Faults {
		b.tell("start", nil)
		if b.target, err = newTarget(ctx, b.Options); err != nil {
			return err
		}
	}
	if b.near, err = b.crew.hire(); err != nil {
		return err
	}
	if b.far, err = b.crew.hire(); err != nil {
		return err
	}
	for _, c := range b.plan.healthy {
		if err := b.measure(ctx, c, ""); err != nil {
			return err
		}
	}
	for _, c := range b.plan.loose {
		for range b.Repeat {
			if _, err := b.ceiling(ctx, c); err != nil {
				return err
			}
		}
	}
	if b.Faults {
		if err := b.allFaults(ctx); err != nil {
			return err
		}
	}
	for _, name := range b.plan.gaps {
		if err := b.gap(ctx, name); err != nil {
			return err
		}
	}
	if err := b.limping(ctx); err != nil {
		return err
	}
	if err := b.degraded(ctx); err != nil {
		return err
	}
	return b.compute(ctx)
}

// limping runs the cases with one slow server.
func (b *bench) limping(ctx context.Context) error {
	if len(b.plan.limping) == 0 {
		return nil
	}
	if b.target.own == nil {
		b.notes = append(b.notes, "limping cases are left out: servers of a cell that is in use are not slowed down")
		return nil
	}
	if _, err := b.readVolume(ctx); err != nil {
		return err
	}
	if err := b.target.slow(ctx, limpLatency); err != nil {
		return err
	}
	for _, c := range b.plan.limping {
		if err := b.measure(ctx, c, limpingPrefix); err != nil {
			return err
		}
	}
	return b.target.sound(ctx)
}

// degraded runs the cases with one server stopped.
func (b *bench) degraded(ctx context.Context) error {
	if len(b.plan.degraded) == 0 {
		return nil
	}
	if b.target.own == nil {
		b.notes = append(b.notes, "degraded cases are left out: servers of a cell that is in use are not stopped")
		return nil
	}
	if b.plan.reads() {
		if _, err := b.readVolume(ctx); err != nil {
			return err
		}
	}
	if err := b.target.stopOne(ctx); err != nil {
		return err
	}
	for _, c := range b.plan.degraded {
		if err := b.measure(ctx, c, degradedPrefix); err != nil {
			return err
		}
	}
	return nil
}

// measure runs one case as often as asked for, each time beside its ceiling.
func (b *bench) measure(ctx context.Context, c Case, prefix string) error {
	s := &series{outcome: Outcome{Name: prefix + c.Name, BlockBytes: c.Block, QueueDepth: c.Depth, Clients: b.clientsOf(c), CeilingCase: ceilingPrefix + c.Name}}
	b.series = append(b.series, s)
	for i := range b.Repeat {
		b.tellRun(s.outcome.Name, i, nil)
		ceiling, err := b.ceiling(ctx, c)
		if err != nil {
			return err
		}
		disk, err := b.disk(ctx, c)
		if err != nil {
			return err
		}
		lone, err := b.lone(ctx, c, s.outcome.Name)
		if err != nil {
			return errs.Wrap(err, "case %s with one client", s.outcome.Name)
		}
		one, err := b.once(ctx, c, s.outcome.Name)
		if err != nil {
			return errs.Wrap(err, "case %s", s.outcome.Name)
		}
		one.RatioToOne = ratio(one.MiBPerS, lone)
		one.RatioToCeiling = ratio(one.MiBPerS, ceiling.MiBPerS)
		if disk != nil {
			one.RatioToDisk = ratio(one.MiBPerS, disk.MiBPerS)
		}
		s.samples = append(s.samples, one)
		b.tellRun(s.outcome.Name, i, &one.Figures)
	}
	return nil
}

// lone gives the rate of one client, for a case that several are asked for.
func (b *bench) lone(ctx context.Context, c Case, name string) (float64, error) {
	if c.Clients > 0 || b.Clients == 1 {
		return 0, nil
	}
	c.Clients = 1
	s, err := b.once(ctx, c, name)
	if err != nil {
		return 0, err
	}
	return s.MiBPerS, nil
}

func (b *bench) clientsOf(c Case) int {
	if c.Clients > 0 {
		return c.Clients
	}
	return b.Clients
}

// once runs a case once, with new worker processes.
func (b *bench) once(ctx context.Context, c Case, name string) (s *sample, err error) {
	jobs, done, err := b.jobs(ctx, c)
	if err != nil {
		return nil, err
	}
	t, err := b.crew.hireTeam(len(jobs))
	if err != nil {
		return nil, err
	}
	defer t.dismiss()
	if b.Profile != "" {
		jobs[0].Profile = fmt.Sprintf("%s/%s.client.pprof", b.Profile, name)
	}
	if _, err := t.all(ctx, func(i int) order { return order{Do: orderOpen, Job: jobs[i]} }); err != nil {
		return nil, err
	}
	if _, err := t.all(ctx, same(order{Do: orderWarm})); err != nil {
		return nil, err
	}
	if s, err = b.metered(ctx, c, t); err != nil {
		return nil, err
	}
	if _, err := t.all(ctx, same(order{Do: orderClose})); err != nil {
		return nil, err
	}
	return s, done(ctx)
}

// metered runs what the team has opened and reads the meters around it.
func (b *bench) metered(ctx context.Context, c Case, t team) (*sample, error) {
	meter := b.target.with(t.pids())
	meter.resetPeaks()
	begun := b.target.served(ctx)
	before, err := meter.read()
	if err != nil {
		return nil, err
	}
	reports, err := t.all(ctx, same(order{Do: orderRun, Seconds: b.Seconds}))
	if err != nil {
		return nil, err
	}
	after, err := meter.read()
	if err != nil {
		return nil, err
	}
	var tallies []*tally
	for _, r := range reports {
		tallies = append(tallies, r.Tally)
	}
	s, err := newSample(tallies)
	if err != nil {
		return nil, err
	}
	s.processors(after.used(before))
	s.memory(meter.peaks())
	s.OtherCoresBusy = after.othersBusy(before)
	checks, err := t.all(ctx, same(order{Do: orderCheck}))
	for _, r := range checks {
		s.Verified += float64(r.Blocks)
	}
	ended := b.target.served(ctx)
	if s.Device = ratio(float64(ended.read-begun.read), s.Bytes); c.Write {
		s.Device = ratio(float64(ended.written-begun.written), s.Bytes)
	}
	s.ChunkdAllocs, s.ChunkdCalls = ratio(float64(ended.allocations-begun.allocations), s.Ops), ratio(float64(ended.calls-begun.calls), s.Ops)
	s.ChunkdCopied = ratio(float64(ended.copied-begun.copied), s.Bytes)
	return s, err
}

// ceiling runs a case's ceiling once.
func (b *bench) ceiling(ctx context.Context, c Case) (*sample, error) {
	clients := b.clientsOf(c)
	seconds := max(min(b.Seconds, shortestCeiling), b.Seconds*ceilingShare)
	shape := ceilingOf(c, clients)
	served, err := b.far.do(ctx, order{Do: orderServe, Ceiling: &shape})
	if err != nil {
		return nil, err
	}
	s, err := b.alone(ctx, b.near, map[string][]int{roleClient: {b.near.pid()}, roleChunkd: {b.far.pid()}},
		order{Do: orderExchange, Ceiling: &shape, Address: served.Address, Seconds: seconds})
	if err != nil {
		return nil, err
	}
	into := b.ceilingSeries(Outcome{Name: ceilingPrefix + c.Name, BlockBytes: int64(shape.Message), QueueDepth: c.Depth, Clients: clients})
	into.samples = append(into.samples, s)
	return s, nil
}

// alone has one worker do something and reads the meters around it.
func (b *bench) alone(ctx context.Context, h *hand, pids map[string][]int, o order) (*sample, error) {
	meter := meter{pids}
	meter.resetPeaks()
	before, err := meter.read()
	if err != nil {
		return nil, err
	}
	r, err := h.do(ctx, o)
	if err != nil {
		return nil, err
	}
	after, err := meter.read()
	if err != nil {
		return nil, err
	}
	s, err := newSample([]*tally{r.Tally})
	if err != nil {
		return nil, err
	}
	s.processors(after.used(before))
	s.memory(meter.peaks())
	s.OtherCoresBusy, s.RatioToCeiling = after.othersBusy(before), 1
	return s, nil
}

// ceilingSeries finds or begins the series of a ceiling.
func (b *bench) ceilingSeries(o Outcome) *series {
	for _, s := range b.ceilings {
		if s.outcome.Name == o.Name {
			return s
		}
	}
	o.CeilingCase = o.Name
	s := &series{outcome: o}
	b.ceilings = append(b.ceilings, s)
	return s
}

// compute runs the ceilings that need no peer.
func (b *bench) compute(ctx context.Context) error {
	for _, name := range b.plan.compute {
		for range b.Repeat {
			if _, err := b.computed(ctx, name, min(b.Seconds, shortestCeiling)); err != nil {
				return err
			}
		}
	}
	return nil
}

// geometry is the volume's, else what is asked for, else 4+2.
func (b *bench) geometry() (k, m int) {
	switch {
	case b.info.K != 0:
		return b.info.K, b.info.M
	case b.K != 0:
		return b.K, b.M
	}
	return 4, 2
}

func (b *bench) tell(what string, f *Figures) { b.Progress(Event{Case: what, Of: 1, Figures: f}) }

func (b *bench) tellRun(name string, run int, f *Figures) {
	b.Progress(Event{Case: name, Run: run + 1, Of: b.Repeat, Figures: f})
}

// result puts everything together.
func (b *bench) result(before reading, m meter) (*Result, error) {
	r := &Result{Faults: b.faults, Gaps: b.gaps, Machine: thisMachine(), Run: b.runInfo()}
	r.Cell.K, r.Cell.M = b.geometry()
	r.Cell.Sync, r.Cell.PageCache, r.Cell.Emulated = "fdatasync on flush", "warm", b.Emulate
	if t := b.target; t != nil {
		r.Cell.ChunkServers, r.Cell.Counted = len(t.servers), t.counted
		if t.own == nil {
			r.Cell.Address, r.Cell.PageCache = t.address, "as it was found"
		}
	}
	for _, s := range append(b.series, b.ceilings...) {
		r.Cases = append(r.Cases, s.finish(b.Repeat))
	}
	r.compare()
	r.Machine.OtherCoresBusy = b.othersMean()
	return r, nil
}
