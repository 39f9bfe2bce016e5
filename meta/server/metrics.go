package server

import (
	"cmp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"strake/internal/layout"
	"strake/internal/qos"
	"strake/meta/state"
)

// figures makes metrics of the state and, on the leader, of what it knows of the
// cell: reservations beside what their classes get.
type figures struct {
	s                                                    *Server
	applied, leading, volumes, segments, servers         *prometheus.Desc
	reserved, served, capacity, reservations, reservable *prometheus.Desc
	space, cleaned, blocked                              *prometheus.Desc
}

// Figures gives the server's metrics.
func (s *Server) Figures() prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("strake_"+name, help, labels, nil)
	}
	return &figures{s: s,
		applied:      desc("meta_applied_index", "Log index of the last command that was applied."),
		leading:      desc("meta_leading", "1 while this server leads."),
		volumes:      desc("volumes", "Volumes that are not removed."),
		segments:     desc("segments", "Segments."),
		servers:      desc("servers", "Chunk servers, by whether the state has them up.", "state"),
		reserved:     desc("reservation_per_second", "What a job's reservation is for.", "reservation", "class", "tenant", "unit"),
		served:       desc("reservation_class_served_per_second", "What the tenant's work in the class of a reservation gets in the whole cell.", "class", "tenant", "unit"),
		capacity:     desc("capacity_per_second", "What the cell was measured to do, less one server.", "unit"),
		reservations: desc("reserved_per_second", "What all reservations hold, those of classes among them.", "unit"),
		space: desc("volume_bytes", "Of all volumes: live data as of their newest map roots (parity not counted), what their sealed segments store, and garbage in these; "+
			"stored over live is the space amplification. Apart from these, what sealed segments store of volumes that have no map root yet (uncounted) and of removed ones.", "what"),
		cleaned:    desc("janitor_relocated_bytes", "Live data that janitors relocated while they cleaned, since this server started."),
		blocked:    desc("acknowledgement_blocked_seconds", "For how long a writer's acknowledgements have been blocked by a chunk server: the longest now; server 0: by the want of a segment.", "server"),
		reservable: desc("devices_unmeasured", "Devices that were never measured and count for nothing in admissions."),
	}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.applied, f.leading, f.volumes, f.segments, f.servers, f.reserved, f.served, f.capacity, f.reservations, f.reservable, f.space, f.cleaned, f.blocked} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	view := f.s.machine.View()
	counts := view.Counts()
	gauge(f.applied, float64(view.Applied()))
	gauge(f.volumes, float64(counts.Volumes))
	gauge(f.segments, float64(counts.Segments))
	gauge(f.servers, float64(counts.ServersUp), "up")
	gauge(f.servers, float64(counts.Servers-counts.ServersUp), "down")
	if !f.s.begun.Load() {
		gauge(f.leading, 0)
		return
	}
	gauge(f.leading, 1)
	f.leader(view, gauge)
}

// leader gives what only the leader knows.
func (f *figures) leader(view *state.View, gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	both := func(d *prometheus.Desc, r qos.Rate, labels ...string) {
		gauge(d, float64(r.Bytes), append(labels[:len(labels):len(labels)], "bytes")...)
		gauge(d, float64(r.Ops), append(labels[:len(labels):len(labels)], "operations")...)
	}
	capacity, _, unmeasured := f.s.qos.capacity(view, f.s.alive.up)
	both(f.capacity, capacity)
	both(f.reservations, view.Reserved())
	gauge(f.reservable, float64(unmeasured))
	space := view.Space()
	gauge(f.space, float64(space.Live), "live")
	gauge(f.space, float64(space.Stored), "stored")
	gauge(f.space, float64(space.Garbage), "garbage")
	gauge(f.space, float64(space.Uncounted), "uncounted")
	gauge(f.space, float64(space.Removed), "removed")
	gauge(f.cleaned, float64(f.s.cleaned.Load()))
	for id, wait := range f.s.blocked.byServer(time.Now()) {
		gauge(f.blocked, wait.Seconds(), strconv.FormatUint(uint64(id), 10))
	}
	told := map[claimant]bool{}
	for _, r := range view.Reservations() {
		class, _ := view.ClassByNumber(r.Class)
		tenant := cmp.Or(r.Tenant, layout.DefaultTenant)
		both(f.reserved, r.Rate(), r.Job, class.Name, tenant)
		if who := (claimant{r.Class, layout.TenantOf(r.Tenant)}); !told[who] {
			told[who] = true
			both(f.served, f.s.qos.servedOf(who.class, who.tenant), class.Name, tenant)
		}
	}
}
