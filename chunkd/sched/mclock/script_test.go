package mclock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"strake/internal/layout"
	"strake/internal/qos"
)

// TestScripts explains the tags. Times are in ms; costs are fixed at 1 ms for a
// request and 1 ms for each 64 KiB. Commands:
//
//	class CLASS [reserve=OPS] [reserve-bytes=B] [limit=OPS] [weight=N]
//	enqueue at=MS class=C [tenant=N] [n=COUNT] [bytes=B] [deadline=MS] [part]
//	next at=MS [n=COUNT]       dispatches, each done at once unless `hold`
//	done at=MS took=MS         the oldest that is held
//	tags at=MS                 of all flows
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{core: New(Options{MinWidth: 2, MaxWidth: 2, FlowDepth: 8})}
		s.core.costs = newCosts(Cost{1e6, 1e6 / (64 << 10), 1e6, 1e6 / (64 << 10)})
		datadriven.RunTest(t, path, s.step)
	})
}

type script struct {
	core *Core
	held []*Request
	next int
}

func (s *script) step(t *testing.T, d *datadriven.TestData) string {
	arg := func(name string, def int) int {
		if d.HasArg(name) {
			d.ScanArgs(t, name, &def)
		}
		return def
	}
	now := time.Duration(arg("at", 0)) * ms
	var out strings.Builder
	switch d.Cmd {
	case "class":
		p := Params{Reservation: Rate{Bytes: int64(arg("reserve-bytes", 0)), Ops: int64(arg("reserve", 0))}, Limit: Rate{Ops: int64(arg("limit", 0))}, Weight: arg("weight", 0)}
		if err := s.core.SetClass(now, layout.Class(arg("id", 0)), p); err != nil {
			return err.Error() + "\n"
		}
	case "enqueue":
		for range arg("n", 1) {
			r := &Request{Class: layout.Class(arg("class", 0)), Tenant: layout.TenantID(arg("tenant", 1)), Bytes: arg("bytes", 0),
				Deadline: time.Duration(arg("deadline", 0)) * ms, Part: d.HasArg("part"), Owner: s.next}
			s.next++
			if err := s.core.Enqueue(now, r); err != nil {
				fmt.Fprintf(&out, "#%d: %v\n", r.Owner, err)
			}
		}
	case "next":
		for range arg("n", 1) {
			s.dispatch(now, d.HasArg("hold"), &out)
		}
	case "done":
		s.core.Done(now, s.held[0], time.Duration(arg("took", 1))*ms)
		s.held = s.held[1:]
	case "tags":
	default:
		d.Fatalf(t, "unknown command")
	}
	if err := s.core.Check(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	s.tags(now, &out)
	return out.String()
}

// dispatch tells what Next gives and why.
func (s *script) dispatch(now time.Duration, hold bool, out *strings.Builder) {
	before := map[*flow]uint64{}
	for _, f := range s.core.order {
		before[f] = f.stat.reserved
	}
	r, wait := s.core.Next(now)
	switch {
	case r == nil && wait == 0:
		fmt.Fprintln(out, "nothing to run")
	case r == nil:
		fmt.Fprintf(out, "nothing before %v\n", now+wait)
	case r.Late:
		fmt.Fprintf(out, "#%d of %v: too late\n", r.Owner, r.Class)
	default:
		why := "weight"
		if r.flow.stat.reserved > before[r.flow] {
			why = "reservation"
		}
		fmt.Fprintf(out, "#%d of %v by %s\n", r.Owner, r.Class, why)
		if hold {
			s.held = append(s.held, r)
		} else {
			s.core.Done(now, r, ms)
		}
	}
}

func (s *script) tags(now time.Duration, out *strings.Builder) {
	for _, f := range s.core.order {
		fmt.Fprintf(out, "  %v/%d: %d queued", f.key.Class, f.key.Tenant, f.queue.n)
		tell := func(name string, at time.Duration) {
			fmt.Fprintf(out, ", %s %v", name, at.Round(10*time.Microsecond))
		}
		if !f.params.Reservation.IsZero() {
			tell("R", f.reserve.at()+s.core.behind)
		}
		if !f.params.Limit.IsZero() {
			tell("L", f.limit.at())
		}
		tell("P", time.Duration(f.p/weightScale*qos.DefaultWeight))
		fmt.Fprintln(out)
	}
}
