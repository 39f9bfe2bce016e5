package chunkd

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"strake/chunkd/sched/mclock"
	"strake/chunkd/server"
	"strake/internal/layout"
	"strake/internal/telemetry"
)

// figures makes metrics of what the data plane's schedulers counted. Classes are
// named as the metadata leader names them.
type figures struct {
	plane *server.Server
	name  func(layout.Class) string

	byClass   map[string]*prometheus.Desc
	byDevice  map[string]*prometheus.Desc
	byVolume  *prometheus.Desc
	volBytes  *prometheus.Desc
	volTimes  *prometheus.Desc
	objective *prometheus.Desc
}

func newFigures(plane *server.Server, name func(layout.Class) string) *figures {
	f := &figures{plane: plane, name: name, byClass: map[string]*prometheus.Desc{}, byDevice: map[string]*prometheus.Desc{}}
	class := func(key, name, help string, more ...string) {
		f.byClass[key] = prometheus.NewDesc("strake_"+name, help, append([]string{"device", "class", "tenant"}, more...), nil)
	}
	class("ops", "operations_total", "Operations that were served.", "op")
	class("bytes", "bytes_total", "Bytes that were transferred.", "op")
	class("queue", "queue_seconds", "Time before a piece of work had its turn at the device.")
	class("service", "service_seconds", "Time of a piece of work at the device.")
	class("refused", "refused_total", "Requests that were refused.", "reason")
	class("gated", "gated_total", "Writes that waited before their payload was read, because as much as a tenant's class may have in memory waited for the device.")
	class("gatetime", "gate_seconds_total", "Time that those waited; the time in the queue begins after it.")
	class("throttled", "throttled_seconds_total", "Time in which work waited for its class's limit.")
	class("time", "device_seconds_total", "Device time that was used, by measured cost.")
	class("reserved", "by_reservation_total", "Pieces of work that were served by reservation.")
	class("promised", "reserved_bytes_per_second", "The device's part of what is reserved.")
	class("waiting", "waiting", "Pieces of work that wait.")
	device := func(key, name, help string) {
		f.byDevice[key] = prometheus.NewDesc("strake_device_"+name, help, []string{"device"}, nil)
	}
	device("width", "width", "Pieces of work that may be at the device at once.")
	device("running", "running", "Pieces of work at the device.")
	device("waiting", "waiting", "Pieces of work that wait for the device.")
	f.byVolume = prometheus.NewDesc("strake_volume_operations_total", "Requests that succeeded, by volume.", []string{"volume", "op"}, nil)
	f.volBytes = prometheus.NewDesc("strake_volume_bytes_total", "Bytes of requests that succeeded, by volume.", []string{"volume", "op"}, nil)
	f.volTimes = prometheus.NewDesc("strake_volume_request_seconds", "Time of reads, writes and flushes that succeeded, from receipt to reply, by volume.", []string{"volume"}, nil)
	f.objective = prometheus.NewDesc("strake_slo_requests_total", "Requests that a class's objective is for, by whether they met it.", []string{"class", "met"}, nil)
	return f
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(ch chan<- *prometheus.Desc) {
	for _, list := range []map[string]*prometheus.Desc{f.byClass, f.byDevice} {
		for _, d := range list {
			ch <- d
		}
	}
	ch <- f.byVolume
	ch <- f.volBytes
	ch <- f.volTimes
	ch <- f.objective
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	for _, d := range f.plane.Stats() {
		device := strconv.FormatUint(uint64(d.Device), 10)
		for key, v := range map[string]int{"width": d.Width, "running": d.Running, "waiting": d.Waiting} {
			ch <- prometheus.MustNewConstMetric(f.byDevice[key], prometheus.GaugeValue, float64(v), device)
		}
		for i := range d.Flows {
			f.flow(ch, device, &d.Flows[i])
		}
	}
	f.plane.EachVolume(func(id layout.VolumeID, c *server.VolumeCounters) {
		volume := strconv.FormatUint(uint64(id), 10)
		ch <- counter(f.byVolume, c.Reads.Load(), volume, "read")
		ch <- counter(f.byVolume, c.Writes.Load(), volume, "write")
		ch <- counter(f.volBytes, c.ReadBytes.Load(), volume, "read")
		ch <- counter(f.volBytes, c.WroteBytes.Load(), volume, "write")
		times := c.Times()
		ch <- telemetry.Histogram(f.volTimes, times.Counts[:], times.Sum, mclock.BucketEnd, volume)
	})
	for _, o := range f.plane.SLOs(time.Now()) {
		ch <- counter(f.objective, o.All.Judged-o.All.Late, f.name(o.Class), "yes")
		ch <- counter(f.objective, o.All.Late, f.name(o.Class), "no")
	}
}

// flow gives one tenant's work in a class on a device.
func (f *figures) flow(ch chan<- prometheus.Metric, device string, s *mclock.FlowStats) {
	labels := []string{device, f.name(s.Class), strconv.FormatUint(uint64(s.Tenant), 10)}
	with := func(more string) []string { return append(labels[:len(labels):len(labels)], more) }
	ch <- counter(f.byClass["ops"], s.Reads, with("read")...)
	ch <- counter(f.byClass["ops"], s.Writes, with("write")...)
	ch <- counter(f.byClass["bytes"], s.ReadBytes, with("read")...)
	ch <- counter(f.byClass["bytes"], s.WroteBytes, with("write")...)
	ch <- counter(f.byClass["refused"], s.Late, with("deadline")...)
	ch <- counter(f.byClass["refused"], s.Refused, with("overloaded")...)
	ch <- counter(f.byClass["reserved"], s.Reserved, labels...)
	ch <- counter(f.byClass["gated"], s.Gated, labels...)
	ch <- prometheus.MustNewConstMetric(f.byClass["gatetime"], prometheus.CounterValue, s.GateTime.Seconds(), labels...)
	ch <- prometheus.MustNewConstMetric(f.byClass["throttled"], prometheus.CounterValue, s.Throttled.Seconds(), labels...)
	ch <- prometheus.MustNewConstMetric(f.byClass["time"], prometheus.CounterValue, s.DeviceTime.Seconds(), labels...)
	ch <- prometheus.MustNewConstMetric(f.byClass["promised"], prometheus.GaugeValue, float64(s.Params.Reservation.Bytes), labels...)
	ch <- prometheus.MustNewConstMetric(f.byClass["waiting"], prometheus.GaugeValue, float64(s.Waiting+s.AtGate), labels...)
	ch <- telemetry.Histogram(f.byClass["queue"], s.Queue.Counts[:], s.Queue.Sum, mclock.BucketEnd, labels...)
	ch <- telemetry.Histogram(f.byClass["service"], s.Service.Counts[:], s.Service.Sum, mclock.BucketEnd, labels...)
}

func counter(desc *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}
