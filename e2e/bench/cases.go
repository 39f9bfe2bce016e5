package bench

import (
	"path"
	"slices"
	"strings"
	"time"

	"strake/internal/errs"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	degradedPrefix = "degraded-"
	limpingPrefix  = "limping-" // one server's device is slow
	limpLatency    = 50 * time.Millisecond
	ceilingPrefix  = "ceiling-"
	hotstart       = "hotstart"
	hotClients     = 16
)

// Case is one kind of load. Its fields cross to the workers as JSON.
type Case struct {
	Name     string
	Block    int64 // bytes of one operation; the largest when Smallest is set
	Smallest int64 // bytes; sizes are drawn from here to Block in steps of 4 KiB; 0: always Block
	Depth    int   // operations under way per client
	Write    bool
	Random   bool
	Flush    bool // each write is followed by a flush, inside its latency
	Settle   bool // a last flush belongs to the time
	Clients  int  // processes; 0: as many as asked for
	Cold     bool // what is opened is a tag, and that belongs to the time

	Class string  // of the reads and writes; empty: the volume's
	Clean bool    // the load is a cleaner's: see load.clean
	Rate  float64 // operations a second that begin at their times, whatever the ones before do; 0: each when the one before has ended
}

// healthy are the cases of a cell with all servers up, in the order they run.
func healthy() []Case {
	return []Case{
		{Name: "seqread-4m", Block: 4 * mib, Depth: 4},
		{Name: "seqread-1m", Block: mib, Depth: 8},
		{Name: "seqread-128k-qd1", Block: 128 * kib, Depth: 1},
		{Name: "randread-128k", Block: 128 * kib, Depth: 16, Random: true},
		{Name: "randread-4k-qd1", Block: 4 * kib, Depth: 1, Random: true},
		{Name: "randread-4k-qd32", Block: 4 * kib, Depth: 32, Random: true},
		{Name: "shuffle", Block: mib, Smallest: 128 * kib, Depth: 8, Random: true},
		{Name: hotstart, Block: mib, Depth: 2, Clients: hotClients, Cold: true},
		{Name: "seqwrite-4m", Block: 4 * mib, Depth: 4, Write: true, Settle: true},
		{Name: "randwrite-4k-qd1", Block: 4 * kib, Depth: 1, Write: true, Random: true, Flush: true},
		{Name: "randwrite-4k-qd1-noflush", Block: 4 * kib, Depth: 1, Write: true, Random: true},
		{Name: "randwrite-4k-qd32", Block: 4 * kib, Depth: 32, Write: true, Random: true, Flush: true},
		{Name: "randwrite-4k-qd32-noflush", Block: 4 * kib, Depth: 32, Write: true, Random: true},
	}
}

// plan is what one run of the bench does, in order.
type plan struct {
	healthy, degraded []Case
	limping           []Case
	gaps              []string
	loose             []Case   // ceilings that are asked for without their case
	compute           []string // compute ceilings
}

// computeCeilings are what one core does on bytes in memory.
func computeCeilings() []string { return []string{"memory-copy", "crc32c", "encode"} }

// loneCeilings are all that need no peer: what the disk takes, too.
func loneCeilings() []string { return append(computeCeilings(), diskWrite) }

// newPlan chooses cases by name: `all`, or a comma-separated list of names and
// patterns of these. Error: InvalidArgument, naming what matched nothing.
func newPlan(names string) (plan, error) {
	var p plan
	for pattern := range strings.SplitSeq(names, ",") {
		if !p.add(strings.TrimSpace(pattern)) {
			return p, errs.New(errs.InvalidArgument, "choose cases", "no case matches %q", pattern).
				WithHint("one of all, %s", strings.Join(Names(), ", "))
		}
	}
	return p, nil
}

// add takes in every case that a pattern matches; false when there is none.
func (p *plan) add(pattern string) (found bool) {
	matches := func(name string) bool {
		ok, err := path.Match(pattern, name)
		ok = err == nil && ok || pattern == "all"
		found = found || ok
		return ok
	}
	for _, c := range healthy() {
		if matches(c.Name) {
			p.healthy = append(p.healthy, c)
		}
		if matches(degradedPrefix + c.Name) {
			p.degraded = append(p.degraded, c)
		}
		if pattern != "all" && matches(limpingPrefix+c.Name) {
			p.limping = append(p.limping, c)
		}
		if pattern != "all" && matches(ceilingPrefix+c.Name) {
			p.loose = append(p.loose, c)
		}
	}
	for _, name := range gapNames() {
		if pattern != "all" && matches(name) {
			p.gaps = append(p.gaps, name)
		}
	}
	for _, name := range loneCeilings() {
		if matches(ceilingPrefix + name) {
			p.compute = append(p.compute, name)
		}
	}
	return found
}

// reads tells whether any case reads the shared volume.
func (p plan) reads() bool {
	return slices.ContainsFunc(slices.Concat(p.healthy, p.degraded), func(c Case) bool { return !c.Write })
}

// needsCell tells whether anything is measured but ceilings.
func (p plan) needsCell() bool {
	return len(p.healthy)+len(p.degraded)+len(p.limping)+len(p.gaps) > 0
}

// Names lists every name that a case can be chosen by.
func Names() (names []string) {
	for _, prefix := range []string{"", degradedPrefix, limpingPrefix, ceilingPrefix} {
		for _, c := range healthy() {
			names = append(names, prefix+c.Name)
		}
	}
	for _, name := range loneCeilings() {
		names = append(names, ceilingPrefix+name)
	}
	return append(names, gapNames()...)
}
