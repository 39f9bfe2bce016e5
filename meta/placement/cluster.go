package placement

import (
	"strings"

	"strake/internal/layout"
	"strake/meta/state"
)

// Device is one device as placement sees it.
type Device struct {
	ID     layout.DeviceID
	Server layout.ServerID
	Domain string // its server's: zone/rack/host, outermost first
	Total  uint64
	Used   uint64
	// Reserved is what is promised beyond Used, and Other what the disk holds beside
	// both, as far as is known.
	Reserved, Other uint64
	Busy            uint16 // load in thousandths, 0 to 1000
	State           state.DeviceState
	Up              bool // its server serves
}

// takes tells whether the device may get shards at all: one that limps only where
// there are too few others.
func (d *Device) takes() bool {
	return d.Up && (d.State == state.DeviceUp || d.State == state.DeviceLimping)
}

func (d *Device) limps() bool { return d.State == state.DeviceLimping }

// free is what may still be put there for a purpose.
func (d *Device) free(p layout.Purpose) uint64 {
	gone := d.Used + d.Reserved + d.Other + p.Kept(d.Total)
	return d.Total - min(d.Total, gone)
}

// Free is what is left of the device, the reserve included.
func (d *Device) Free() uint64 { return d.Total - min(d.Total, d.Used+d.Reserved+d.Other) }

// weight is free MiB times idleness; at least 1, because it is asked of usable
// devices. It has 34 bits at most, so a sum over all groups does not overflow.
func (d *Device) weight(p layout.Purpose) uint64 {
	return max(1, min(d.free(p)>>20, 1<<34)*d.idle()/1000)
}

// room is the free part of the device in millionths, times idleness.
func (d *Device) room(p layout.Purpose) uint64 {
	return (d.free(p) >> 10) * 1000 / max(1, d.Total>>20) * d.idle()
}

// idle is 1000 less the load; a busy device keeps a twentieth of its chance.
func (d *Device) idle() uint64 { return 1000 - uint64(min(d.Busy, 950)) }

// Cluster is every device that is not dead, in id order.
type Cluster struct {
	Devices []Device
	// Single says that the cell has one server only: shards may then share it.
	Single bool
}

// Figures are a device's newest figures, which the leader has from heartbeats.
type Figures struct {
	Used, Reserved, Other uint64
	Busy                  uint16
}

// Of makes the cluster of a view. up tells whether a server is heard; figures
// gives what the leader knows beyond the record, and may be nil.
func Of(view *state.View, up func(layout.ServerID) bool, figures func(layout.DeviceID) (Figures, bool)) Cluster {
	servers := view.Servers()
	byID := make(map[layout.ServerID]*state.Server, len(servers))
	for i := range servers {
		byID[servers[i].ID] = &servers[i]
	}
	c := Cluster{Single: len(servers) == 1}
	for _, d := range view.Devices() {
		if d.State == state.DeviceDead {
			continue
		}
		s := byID[d.Server]
		out := Device{ID: d.ID, Server: d.Server, Domain: s.Domain, Total: d.Total, Used: d.Used, Reserved: d.Reserved,
			State: d.State, Up: s.Up && up(s.ID)}
		if figures != nil {
			if f, ok := figures(d.ID); ok {
				out.Used, out.Reserved, out.Other, out.Busy = f.Used, f.Reserved, f.Other, f.Busy
			}
		}
		c.Devices = append(c.Devices, out)
	}
	return c
}

// domainLevels are the levels of a domain path; deeper parts count as one.
const domainLevels = 3

// level names a depth of failure domains, the widest first.
type level int

const (
	levelServer level = domainLevels     // the server
	levelDevice level = domainLevels + 1 // only in a cell of one server
)

// String names the level for messages.
func (l level) String() string {
	return [...]string{"zones", "racks", "hosts", "servers", "devices"}[l]
}

// domain is the device's failure domain at a level. Paths are compared as
// written; one that is too short for the level counts whole.
func (d *Device) domain(l level) domain {
	if l == levelDevice {
		return domain{device: d.ID}
	}
	if l == levelServer || d.Domain == "" {
		return domain{server: d.Server}
	}
	end, rest := 0, d.Domain
	for i := level(0); i <= l; i++ {
		part, after, more := strings.Cut(rest, "/")
		end += len(part)
		if !more || i == l {
			break
		}
		if rest, end = after, end+1; i+1 == domainLevels-1 {
			return domain{path: d.Domain}
		}
	}
	return domain{path: d.Domain[:end]}
}

// domain is a comparable name of one failure domain; one field is set.
type domain struct {
	path   string
	server layout.ServerID
	device layout.DeviceID
}

// domains are the failure domains of all devices at one level, numbered.
type domains struct {
	of    []int // by device position
	count int
}

func (c *Cluster) domainsAt(l level) domains {
	d := domains{of: make([]int, len(c.Devices))}
	numbers := make(map[domain]int)
	for i := range c.Devices {
		name := c.Devices[i].domain(l)
		n, ok := numbers[name]
		if !ok {
			n = len(numbers)
			numbers[name] = n
		}
		d.of[i] = n
	}
	d.count = len(numbers)
	return d
}

// levels are those that the cluster may use, the widest first.
func (c *Cluster) levels() []level {
	if c.Single {
		return []level{levelServer, levelDevice}
	}
	return []level{0, 1, 2, levelServer}
}
