package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"strake/client"
)

// classRate is what a class got between two looks, on every device or on one.
type classRate struct {
	Class       string  `json:"class"`
	Number      uint32  `json:"number"`
	Server      uint64  `json:"server,omitempty"`
	Device      uint64  `json:"device,omitempty"`
	ReadBytes   float64 `json:"read_bytes_per_s"`
	WroteBytes  float64 `json:"write_bytes_per_s"`
	Ops         float64 `json:"ops_per_s"`
	QueueP50    float64 `json:"queue_p50_us"`
	QueueP99    float64 `json:"queue_p99_us"`
	QueueP999   float64 `json:"queue_p999_us"`
	ServiceP50  float64 `json:"service_p50_us"`
	ServiceP99  float64 `json:"service_p99_us"`
	ServiceP999 float64 `json:"service_p999_us"`
	Gated       float64 `json:"gated_per_s"`  // writes that waited before their payload was read
	GateMean    float64 `json:"gate_mean_us"` // how long those did
	Throttled   float64 `json:"throttled"`    // part of the time, of all devices
	DeviceTime  float64 `json:"device_time"`  // part of all devices' time
	Waiting     int     `json:"waiting"`
	Refused     float64 `json:"refused_per_s"`
	Reserved    int64   `json:"reserved_bytes_per_s"`
	Limit       int64   `json:"limit_bytes_per_s"`

	queue, service []uint64
	gateTime       float64 // us a second
}

// serverRate is what a server did between two looks.
type serverRate struct {
	Server    uint64  `json:"server"`
	State     string  `json:"state"`
	ReadMiB   float64 `json:"read_bytes_per_s"`
	WriteMiB  float64 `json:"write_bytes_per_s"`
	Ops       float64 `json:"ops_per_s"`
	Network   float64 `json:"network_bytes_per_s"` // of the machine, the busier direction
	Link      uint64  `json:"link_bytes_per_s"`    // 0: unknown
	GC        float64 `json:"gc_pauses"`           // part of the time
	RoundTrip float64 `json:"round_trip_us"`       // of a question to its control plane
	Running   int     `json:"running"`
	Waiting   int     `json:"waiting"`
	Width     int     `json:"width"`
	Error     string  `json:"error,omitempty"`
}

// volumeRate is what a volume got between two looks.
type volumeRate struct {
	Volume     uint64  `json:"volume"`
	Name       string  `json:"name,omitempty"`
	ReadBytes  float64 `json:"read_bytes_per_s"`
	WroteBytes float64 `json:"write_bytes_per_s"`
	Ops        float64 `json:"ops_per_s"`
	P50        float64 `json:"p50_us"` // of its requests to chunk servers, from receipt to reply
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`

	times []uint64
}

// rates is everything between two looks.
type rates struct {
	Seconds float64      `json:"seconds"`
	Classes []classRate  `json:"classes"`
	Servers []serverRate `json:"servers"`
	Volumes []volumeRate `json:"volumes"`

	perDevice []classRate
}

// look asks all servers; names are the classes'.
type look struct {
	at      time.Time
	servers []client.ServerFigures
	names   map[uint32]string
	volumes map[uint64]string
}

// takeLook asks the cell for everything that rates are made of.
func takeLook(ctx context.Context, cell *client.Cell) (*look, error) {
	l := &look{names: map[uint32]string{}, volumes: map[uint64]string{}}
	classes, err := cell.Classes(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		l.names[c.Number] = c.Name
	}
	volumes, err := cell.Volumes(ctx, "", false)
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		l.volumes[v.ID] = v.Name
	}
	l.servers, err = cell.Figures(ctx)
	l.at = time.Now()
	return l, err
}

// since compares a look with one before. Counters that went back, of a server that
// started again, count from 0.
func (l *look) since(before *look) *rates {
	r := &rates{Seconds: max(l.at.Sub(before.at).Seconds(), 1e-3)}
	classes, volumes, devices := map[uint32]*classRate{}, map[uint64]*volumeRate{}, 0
	for i := range l.servers {
		now := &l.servers[i]
		was := &client.ServerFigures{}
		if k := slices.IndexFunc(before.servers, func(s client.ServerFigures) bool { return s.Server.ID == now.Server.ID }); k >= 0 {
			was = &before.servers[k]
		}
		s := serverRate{Server: now.Server.ID, State: now.Server.State, RoundTrip: micro(now.RoundTrip), Link: now.Link}
		if now.Err != nil {
			s.Error = now.Err.Error()
		}
		s.Network = max(per(now.NetworkIn, was.NetworkIn, r.Seconds), per(now.NetworkOut, was.NetworkOut, r.Seconds))
		s.GC = per(uint64(now.GCPauses), uint64(was.GCPauses), r.Seconds) / 1e9
		for _, d := range now.Devices {
			s.Running, s.Waiting, s.Width = s.Running+d.Running, s.Waiting+d.Waiting, s.Width+d.Width
		}
		devices += len(now.Devices)
		for _, one := range l.onDevices(now, was, r.Seconds) {
			s.ReadMiB, s.WriteMiB, s.Ops = s.ReadMiB+one.ReadBytes, s.WriteMiB+one.WroteBytes, s.Ops+one.Ops
			if classes[one.Number] == nil {
				classes[one.Number] = &classRate{Class: one.Class, Number: one.Number}
			}
			classes[one.Number].add(one)
			one.finish(now.BucketEnds, 1)
			r.perDevice = append(r.perDevice, one)
		}
		l.volumesSince(volumes, now, was, r.Seconds)
		r.Servers = append(r.Servers, s)
	}
	r.finish(classes, volumes, devices, l)
	return r
}

// onDevices is what each class did on each of a server's devices, all tenants
// together.
func (l *look) onDevices(now, was *client.ServerFigures, seconds float64) (list []classRate) {
	for _, c := range now.Classes {
		one := l.classSince(c, was, seconds)
		one.Server = now.Server.ID
		if k := slices.IndexFunc(list, func(o classRate) bool { return o.Number == one.Number && o.Device == one.Device }); k >= 0 {
			list[k].add(one)
			continue
		}
		list = append(list, one)
	}
	return list
}

func (r *rates) finish(classes map[uint32]*classRate, volumes map[uint64]*volumeRate, devices int, l *look) {
	var ends []time.Duration
	for _, s := range l.servers {
		if len(s.BucketEnds) > 0 {
			ends = s.BucketEnds
		}
	}
	for _, c := range classes {
		c.finish(ends, devices)
		r.Classes = append(r.Classes, *c)
	}
	for _, v := range volumes {
		if v.Ops > 0 {
			v.P50, v.P99, v.P999 = quantile(v.times, ends, 0.5), quantile(v.times, ends, 0.99), quantile(v.times, ends, 0.999)
			r.Volumes = append(r.Volumes, *v)
		}
	}
	slices.SortFunc(r.Classes, func(a, b classRate) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(r.Volumes, func(a, b volumeRate) int {
		return cmp.Or(-cmp.Compare(a.ReadBytes+a.WroteBytes, b.ReadBytes+b.WroteBytes), cmp.Compare(a.Volume, b.Volume))
	})
}

// classSince is one tenant's work in a class on one device.
func (l *look) classSince(c client.ClassFigures, before *client.ServerFigures, seconds float64) classRate {
	was := client.ClassFigures{}
	for _, o := range before.Classes {
		if o.Device == c.Device && o.Class == c.Class && o.Tenant == c.Tenant {
			was = o
		}
	}
	name := l.names[c.Class]
	switch {
	case c.Class == 0 && c.Tenant == 0:
		name = "calibrate"
	case name == "":
		name = fmt.Sprintf("class-%d", c.Class)
	}
	return classRate{Class: name, Number: c.Class, Device: c.Device, Waiting: c.Waiting, Reserved: c.Reservation.Bytes, Limit: c.Limit.Bytes,
		ReadBytes: per(c.ReadBytes, was.ReadBytes, seconds), WroteBytes: per(c.WroteBytes, was.WroteBytes, seconds),
		Ops: per(c.Reads+c.Writes, was.Reads+was.Writes, seconds), Refused: per(c.Late+c.Refused, was.Late+was.Refused, seconds),
		Throttled: per(uint64(c.Throttled), uint64(was.Throttled), seconds) / 1e9, DeviceTime: per(uint64(c.DeviceTime), uint64(was.DeviceTime), seconds) / 1e9,
		Gated: per(c.Gated, was.Gated, seconds), gateTime: per(uint64(c.GateTime), uint64(was.GateTime), seconds) / 1e3,
		queue: lessCounts(c.Queue, was.Queue), service: lessCounts(c.Service, was.Service)}
}

func (l *look) volumesSince(into map[uint64]*volumeRate, now, was *client.ServerFigures, seconds float64) {
	for _, v := range now.Volumes {
		old := client.VolumeFigures{}
		for _, o := range was.Volumes {
			if o.Volume == v.Volume {
				old = o
			}
		}
		if into[v.Volume] == nil {
			into[v.Volume] = &volumeRate{Volume: v.Volume, Name: l.volumes[v.Volume]}
		}
		r := into[v.Volume]
		r.ReadBytes += per(v.ReadBytes, old.ReadBytes, seconds)
		r.WroteBytes += per(v.WroteBytes, old.WroteBytes, seconds)
		r.Ops += per(v.Reads+v.Writes, old.Reads+old.Writes, seconds)
		r.times = addCounts(r.times, lessCounts(v.Times, old.Times))
	}
}

// add adds what another tenant or device did.
func (c *classRate) add(o classRate) {
	c.ReadBytes, c.WroteBytes, c.Ops, c.Refused = c.ReadBytes+o.ReadBytes, c.WroteBytes+o.WroteBytes, c.Ops+o.Ops, c.Refused+o.Refused
	c.Throttled, c.DeviceTime, c.Waiting = c.Throttled+o.Throttled, c.DeviceTime+o.DeviceTime, c.Waiting+o.Waiting
	c.Gated, c.gateTime = c.Gated+o.Gated, c.gateTime+o.gateTime
	c.Reserved, c.Limit = c.Reserved+o.Reserved, c.Limit+o.Limit
	c.queue, c.service = addCounts(c.queue, o.queue), addCounts(c.service, o.service)
}

// finish makes quantiles, and of sums over so many devices parts of their time.
func (c *classRate) finish(ends []time.Duration, devices int) {
	c.Throttled, c.DeviceTime = c.Throttled/float64(max(1, devices)), c.DeviceTime/float64(max(1, devices))
	c.QueueP50, c.QueueP99, c.QueueP999 = quantile(c.queue, ends, 0.5), quantile(c.queue, ends, 0.99), quantile(c.queue, ends, 0.999)
	c.ServiceP50, c.ServiceP99, c.ServiceP999 = quantile(c.service, ends, 0.5), quantile(c.service, ends, 0.99), quantile(c.service, ends, 0.999)
	if c.Gated > 0 {
		c.GateMean = c.gateTime / c.Gated
	}
}

// per is a counter's growth a second.
func per(now, was uint64, seconds float64) float64 {
	if now < was {
		was = 0
	}
	return float64(now-was) / seconds
}

func micro(d time.Duration) float64 { return float64(d) / 1e3 }

func lessCounts(now, was []uint64) []uint64 {
	out := slices.Clone(now)
	for i := range out {
		if i < len(was) && was[i] <= out[i] {
			out[i] -= was[i]
		}
	}
	return out
}

func addCounts(a, b []uint64) []uint64 {
	out := make([]uint64, max(len(a), len(b)))
	for i := range out {
		if i < len(a) {
			out[i] += a[i]
		}
		if i < len(b) {
			out[i] += b[i]
		}
	}
	return out
}

// quantile is the end, in us, of the bucket that holds a part of all counts; 0 when
// there are none.
func quantile(counts []uint64, ends []time.Duration, q float64) float64 {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	left := uint64(q * float64(total))
	for i, n := range counts {
		if n > left && i < len(ends) {
			return micro(ends[i])
		}
		left -= min(left, n)
	}
	return 0
}

// text writes rates for people.
func (r *rates) text(w io.Writer) {
	mib := func(v float64) string { return fmt.Sprintf("%.1f", v/(1<<20)) }
	us := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	var rows [][]string
	for _, c := range r.Classes {
		rows = append(rows, []string{c.Class, mib(c.ReadBytes), mib(c.WroteBytes), us(c.Ops), us(c.QueueP50), us(c.QueueP99), us(c.QueueP999), us(c.ServiceP50), us(c.ServiceP99), us(c.ServiceP999),
			fmt.Sprintf("%.0f%%", 100*c.DeviceTime), fmt.Sprintf("%.0f%%", 100*c.Throttled), fmt.Sprint(c.Waiting), rateText(client.Rate{Bytes: c.Reserved})})
	}
	table(w, []string{"CLASS", "READ MiB/s", "WRITE MiB/s", "OPS/s", "QUEUE p50 us", "p99", "p99.9", "DEVICE p50 us", "p99", "p99.9", "OF DEVICES", "THROTTLED", "WAITING", "RESERVED"}, rows)
	rows = nil
	for _, s := range r.Servers {
		network := mib(s.Network)
		if s.Link > 0 {
			network += fmt.Sprintf(" (%.0f%%)", 100*s.Network/float64(s.Link))
		}
		rows = append(rows, []string{fmt.Sprint(s.Server), s.State, mib(s.ReadMiB), mib(s.WriteMiB), us(s.Ops), network, fmt.Sprintf("%d/%d", s.Running, s.Width),
			fmt.Sprint(s.Waiting), fmt.Sprintf("%.2f%%", 100*s.GC), us(s.RoundTrip), s.Error})
	}
	fmt.Fprintln(w)
	table(w, []string{"SERVER", "STATE", "READ MiB/s", "WRITE MiB/s", "OPS/s", "NETWORK MiB/s", "AT DEVICES", "WAITING", "GC PAUSES", "ROUND TRIP us", ""}, rows)
	rows = nil
	for _, v := range r.Volumes[:min(len(r.Volumes), shownVolumes)] {
		rows = append(rows, []string{or(v.Name, fmt.Sprintf("volume %d", v.Volume)), mib(v.ReadBytes), mib(v.WroteBytes), us(v.Ops), us(v.P50), us(v.P99), us(v.P999)})
	}
	fmt.Fprintln(w)
	table(w, []string{"VOLUME", "READ MiB/s", "WRITE MiB/s", "OPS/s", "REQUEST p50 us", "p99", "p99.9"}, rows)
}

// shownVolumes are the busiest.
const shownVolumes = 12
