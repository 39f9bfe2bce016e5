package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strake/client"
	"strake/internal/errs"
)

// reason is one thing that makes a class slow, with figures.
type reason struct {
	What  string `json:"what"` // queue, device, gate, throttled, refused, server, network, collector, lease
	Where string `json:"where,omitempty"`
	Text  string `json:"text"`
	rank  float64
}

// explanation says where a class's time goes.
type explanation struct {
	Class   classRate `json:"class"`
	Reasons []reason  `json:"reasons"` // the worst first
}

func (a *app) explainClass() *cobra.Command {
	var window time.Duration
	c := &cobra.Command{
		Use: "class NAME", Short: "say where a class's time goes: queue, device, server, network, lease", Args: exactArgs(1),
		Example: "  strake explain class inference\n  strake explain class training --window 10s -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if window < 100*time.Millisecond {
				return usagef("--window %v: at least 100ms", window)
			}
			return a.withCell(cmd.Context(), func(ctx context.Context, cell *client.Cell) error {
				class, err := cell.Class(ctx, args[0])
				if err != nil {
					return err
				}
				before, err := takeLook(ctx, cell)
				if err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "explain class %s", args[0])
				case <-time.After(window):
				}
				now, err := takeLook(ctx, cell)
				if err != nil {
					return err
				}
				e := explain(class, now.since(before))
				volumes, err := leased(ctx, cell, class.Name)
				if err != nil {
					return err
				}
				e.leases(volumes)
				return a.print(e, func(w io.Writer) { e.text(w) })
			})
		},
	}
	c.Flags().DurationVar(&window, "window", 2*time.Second, "how long to look")
	return c
}

const (
	// slowDevice is how many times as slow as the median device one is named from.
	slowDevice = 2
	// busyPart is from which part of its time a collector, a limit or a link counts.
	busyPart  = 0.05
	busyLink  = 0.8
	slowReply = 20 * time.Millisecond
)

// explain finds what takes a class's time.
func explain(class client.Class, r *rates) explanation {
	e := explanation{Class: classRate{Class: class.Name, Number: class.Number}, Reasons: []reason{}}
	for _, c := range r.Classes {
		if c.Number == class.Number {
			e.Class = c
		}
	}
	add := func(rank float64, what, where, format string, args ...any) {
		e.Reasons = append(e.Reasons, reason{what, where, fmt.Sprintf(format, args...), rank})
	}
	c := e.Class
	if c.Ops == 0 && c.Waiting == 0 {
		add(0, "idle", "", "it did nothing in %.1f s", r.Seconds)
	}
	if c.QueueP99 > c.ServiceP99 {
		add(c.QueueP99, "queue", "", "its work waits longer for its turn (p99 %.0f us) than it takes at the device (p99 %.0f us); others take %.0f%% of the devices' time",
			c.QueueP99, c.ServiceP99, 100*others(class.Number, r))
	} else if c.ServiceP99 > 0 {
		add(c.ServiceP99, "device", "", "most of its time is at the devices: p99 %.0f us, after %.0f us in the queue", c.ServiceP99, c.QueueP99)
	}
	if c.Throttled > busyPart {
		add(1e6*c.Throttled, "throttled", "", "its limit (%s) held it back %.0f%% of the time", rateText(class.Limit), 100*c.Throttled)
	}
	if c.GateMean > max(c.QueueP99, c.ServiceP99) {
		add(c.GateMean, "gate", "", "%.1f of its writes a second waited %.0f us on average before their payload was read: as much as a tenant's class may have in memory waits for the devices", c.Gated, c.GateMean)
	}
	if c.Refused > 0 {
		add(1e5, "refused", "", "%.1f requests a second were refused: too late, or queues full", c.Refused)
	}
	e.slowDevices(class.Number, r)
	e.servers(r)
	e.sort()
	return e
}

func (e *explanation) sort() {
	slices.SortStableFunc(e.Reasons, func(a, b reason) int { return int(min(max(b.rank-a.rank, -1), 1)) })
}

// maxLeased bounds the volumes that are asked for what their writer waits for.
const maxLeased = 64

// leased explains the volumes of a class that somebody has, or that nobody can have.
func leased(ctx context.Context, cell *client.Cell, class string) (list []client.Explanation, err error) {
	volumes, err := cell.Volumes(ctx, "", false)
	for _, v := range volumes {
		if v.Class != class || v.State == "idle" || v.State == "removed" || len(list) == maxLeased {
			continue
		}
		one, err := cell.ExplainVolume(ctx, v.Name)
		if errs.KindOf(err) == errs.NotFound {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, err
}

// leases names volumes of the class whose lease is between two holders, and those
// whose writer can't go on.
func (e *explanation) leases(volumes []client.Explanation) {
	add := func(rank float64, what, volume, format string, args ...any) {
		e.Reasons = append(e.Reasons, reason{what, "volume " + volume, fmt.Sprintf(format, args...), rank})
	}
	for _, v := range volumes {
		switch name, b := v.Volume.Name, v.Blocked; {
		case v.Volume.State == "undecided":
			add(1e8, "lease", name, "nobody can have it until its last writer's end is decided: %s", v.Volume.Undecided)
		case v.Volume.State == "recovering":
			add(1e6, "lease", name, "it has a new holder, %s, who recovers what the last one left", or(v.Volume.Holder, "unknown"))
		case b != nil && b.Server != 0:
			add(1e3*float64(b.Ms), "server", name, "its writer %s has waited for server %d at %s for %d ms: %s", v.Volume.Holder, b.Server, b.Address, b.Ms, b.Reason)
		case b != nil:
			add(1e3*float64(b.Ms), "server", name, "its writer %s has waited for a segment to write to for %d ms: %s", v.Volume.Holder, b.Ms, b.Reason)
		}
	}
	e.sort()
}

// others is the part of the devices' time that other classes take.
func others(number uint32, r *rates) (sum float64) {
	for _, c := range r.Classes {
		if c.Number != number {
			sum += c.DeviceTime
		}
	}
	return sum
}

// slowDevices names devices that are much slower than the median.
func (e *explanation) slowDevices(number uint32, r *rates) {
	var times []float64
	for _, d := range r.perDevice {
		if d.Number == number && d.Ops > 0 {
			times = append(times, d.ServiceP50)
		}
	}
	if len(times) < 3 {
		return
	}
	slices.Sort(times)
	median := times[len(times)/2]
	for _, d := range r.perDevice {
		if d.Number == number && d.Ops > 0 && d.ServiceP50 > slowDevice*median {
			e.Reasons = append(e.Reasons, reason{"device", fmt.Sprintf("server %d, device %d", d.Server, d.Device),
				fmt.Sprintf("it takes %.0f us for what the median device does in %.0f us", d.ServiceP50, median), d.ServiceP50})
		}
	}
}

// servers names servers that are down, pause, answer late or use up their link.
func (e *explanation) servers(r *rates) {
	for _, s := range r.Servers {
		where := fmt.Sprintf("server %d", s.Server)
		add := func(rank float64, what, format string, args ...any) {
			e.Reasons = append(e.Reasons, reason{what, where, fmt.Sprintf(format, args...), rank})
		}
		switch {
		case s.Error != "":
			add(1e7, "server", "it does not answer (%s): reads of its shards are decoded from the others", s.Error)
			continue
		case s.State != "up":
			add(1e7, "server", "it is %s: reads of its shards are decoded from the others", s.State)
		}
		if s.GC > busyPart {
			add(1e6*s.GC, "collector", "its garbage collector stopped it %.1f%% of the time", 100*s.GC)
		}
		if s.RoundTrip > micro(slowReply) {
			add(s.RoundTrip, "network", "a question takes %.0f us to it and back", s.RoundTrip)
		}
		if s.Link > 0 && s.Network > busyLink*float64(s.Link) {
			add(1e6, "network", "its link is %.0f%% full", 100*s.Network/float64(s.Link))
		}
	}
}

func (e *explanation) text(w io.Writer) {
	c := e.Class
	fmt.Fprintf(w, "class %s: %.0f ops/s, %.1f MiB/s read, %.1f MiB/s written, %d waiting\n\n", c.Class, c.Ops, c.ReadBytes/(1<<20), c.WroteBytes/(1<<20), c.Waiting)
	for _, r := range e.Reasons {
		where := ""
		if r.Where != "" {
			where = r.Where + ": "
		}
		fmt.Fprintf(w, "  %-10s %s%s\n", r.What, where, r.Text)
	}
}
