package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"strake/internal/layout"
	"strake/internal/qos"
	"strake/meta/state"
	"strake/proto/pb"
)

// shares is the leader's soft state of quality of service: what each class asks of
// each device, how cell-wide figures are divided among devices for that, what each
// device was measured to do, and how long each reservation has left. It begins
// anew with each term, so that a reservation gets its full time again.
type shares struct {
	mu         sync.Mutex           // guards all below
	wanted     map[classOn]qos.Rate // smoothed
	served     map[classOn]qos.Rate // the same
	parts      map[classOn]part     // of classes with a reservation or a limit
	among      []layout.DeviceID    // that parts were divided among
	capacities map[layout.DeviceID]*pb.DeviceCapacity
	renewed    map[state.ReservationID]renewal
}

// classOn is a class's work on a device.
type classOn struct {
	device layout.DeviceID
	class  layout.Class
}

// part is a device's part of a class's cell-wide figures.
type part struct{ reservation, limit qos.Rate }

// renewal is when the leader saw a reservation's last renewal.
type renewal struct {
	index uint64
	at    time.Time
}

func newShares() *shares {
	s := &shares{}
	s.begin()
	return s
}

func (s *shares) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.served, s.parts = map[classOn]qos.Rate{}, map[classOn]qos.Rate{}, map[classOn]part{}
	s.among = nil
	s.capacities, s.renewed = map[layout.DeviceID]*pb.DeviceCapacity{}, map[state.ReservationID]renewal{}
}

// maxDemands bounds the demands of one heartbeat: every class on every device.
const maxDemands = qos.MaxClasses * state.MaxServerDevices

// heard takes in what a server's devices were asked for and can do.
func (s *shares) heard(own []layout.DeviceID, r *pb.HeartbeatRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range r.GetDemands()[:min(len(r.GetDemands()), maxDemands)] {
		k := classOn{layout.DeviceID(d.GetDevice()), layout.Class(d.GetClass())}
		if !slices.Contains(own, k.device) || d.GetClass() > 255 {
			continue
		}
		s.wanted[k] = smoothed(s.wanted[k], d.GetWanted())
		s.served[k] = smoothed(s.served[k], d.GetServed())
	}
	for _, c := range r.GetCapacities()[:min(len(r.GetCapacities()), state.MaxServerDevices)] {
		if slices.Contains(own, layout.DeviceID(c.GetDevice())) {
			s.capacities[layout.DeviceID(c.GetDevice())] = c
		}
	}
}

// smoothed moves a figure half of the way to what was heard.
func smoothed(old qos.Rate, now *pb.Rate) qos.Rate {
	half := func(a, b int64) int64 { return a/2 + min(max(0, b), qos.MaxBytes)/2 }
	return qos.Rate{Bytes: half(old.Bytes, now.GetBytes()), Ops: half(old.Ops, now.GetOps())}
}

// divide gives each of the devices that are up its part of what classes have in the
// whole cell, and forgets what others did. Parts that would hardly move stay, because
// a scheduler whose figures change begins its accounts anew.
func (s *shares) divide(classes []qos.Class, devices []layout.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.among = devices
	gone := func(k classOn, _ qos.Rate) bool { return !slices.Contains(devices, k.device) }
	maps.DeleteFunc(s.wanted, gone)
	maps.DeleteFunc(s.served, gone)
	next := map[classOn]part{}
	for _, c := range classes {
		if c.Params.Reservation.IsZero() && c.Params.Limit.IsZero() {
			continue
		}
		wanted := make([]qos.Rate, len(devices))
		for i, d := range devices {
			wanted[i] = s.wanted[classOn{d, c.Number}]
		}
		reservation, limit := c.Params.Reservation.Divide(wanted), c.Params.Limit.Divide(wanted)
		parts, still := make([]part, len(devices)), true
		for i, d := range devices {
			parts[i] = part{reservation[i], limit[i]}
			still = still && near(s.parts[classOn{d, c.Number}], parts[i])
		}
		still = still && s.adds(c, devices)
		for i, d := range devices {
			k := classOn{d, c.Number}
			if next[k] = parts[i]; still {
				next[k] = s.parts[k]
			}
		}
	}
	s.parts = next
}

// knows tells whether all of the devices had parts in the last division.
func (s *shares) knows(devices []layout.DeviceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(devices, func(d layout.DeviceID) bool { return !slices.Contains(s.among, d) })
}

// adds tells whether the parts that devices have now are parts of what the class
// has now. mu is held.
func (s *shares) adds(c qos.Class, devices []layout.DeviceID) bool {
	var sum part
	for _, d := range devices {
		p := s.parts[classOn{d, c.Number}]
		sum.reservation = sum.reservation.Plus(p.reservation)
		sum.limit = sum.limit.Plus(p.limit)
	}
	n := int64(len(devices))
	exact := func(total, sum int64) bool {
		return total == sum || total < n && sum <= n && (total == 0) == (sum == 0)
	}
	return exact(c.Params.Reservation.Bytes, sum.reservation.Bytes) && exact(c.Params.Reservation.Ops, sum.reservation.Ops) &&
		exact(c.Params.Limit.Bytes, sum.limit.Bytes) && exact(c.Params.Limit.Ops, sum.limit.Ops)
}

// near tells whether two parts differ by less than an eighth.
func near(a, b part) bool {
	close := func(x, y int64) bool { return max(x, y)-min(x, y) <= max(x, y)/8 }
	return close(a.reservation.Bytes, b.reservation.Bytes) && close(a.reservation.Ops, b.reservation.Ops) &&
		close(a.limit.Bytes, b.limit.Bytes) && close(a.limit.Ops, b.limit.Ops)
}

// of lists the parts of a server's devices.
func (s *shares) of(own []layout.DeviceID) (list []*pb.ClassShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, p := range s.parts {
		if slices.Contains(own, k.device) {
			list = append(list, &pb.ClassShare{Device: uint64(k.device), Class: uint32(k.class), Reservation: rateOut(p.reservation), Limit: rateOut(p.limit)})
		}
	}
	return list
}

// servedOf is what a class gets in the whole cell.
func (s *shares) servedOf(class layout.Class) (sum qos.Rate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range s.served {
		if k.class == class {
			sum = sum.Plus(r)
		}
	}
	return sum
}

// left tells how long a reservation has left; one seen for the first time has all.
func (s *shares) left(r state.Reservation) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.renewed[r.ID]
	if !ok || was.index != r.Renewed {
		was = renewal{r.Renewed, time.Now()}
		s.renewed[r.ID] = was
	}
	return time.Duration(r.TTLNs) - time.Since(was.at)
}

// capacity is what the cell's devices do together, less the server whose loss
// would take most, by what was measured of each.
func (s *shares) capacity(view *state.View, up func(serverID) bool) (total qos.Rate, devices []*pb.DeviceCapacity, unmeasured int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var largest qos.Rate
	for _, srv := range view.Servers() {
		var sum qos.Rate
		for _, id := range srv.Devices {
			d, _ := view.Device(id)
			if d.State == state.DeviceDead || d.State == state.DeviceDown || !up(srv.ID) {
				continue
			}
			c, ok := s.capacities[id]
			if !ok {
				unmeasured++
				continue
			}
			devices = append(devices, c)
			sum = sum.Plus(rateIn(c.GetRate()))
		}
		total = total.Plus(sum)
		largest = qos.Rate{Bytes: max(largest.Bytes, sum.Bytes), Ops: max(largest.Ops, sum.Ops)}
	}
	return qos.Rate{Bytes: total.Bytes - largest.Bytes, Ops: total.Ops - largest.Ops}, devices, unmeasured
}

// capacityOf is what a device was measured to do; nil: it was not.
func (s *shares) capacityOf(id layout.DeviceID) *pb.DeviceCapacity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capacities[id]
}

func rateIn(r *pb.Rate) qos.Rate { return qos.Rate{Bytes: r.GetBytes(), Ops: r.GetOps()} }

func rateOut(r qos.Rate) *pb.Rate { return &pb.Rate{Bytes: r.Bytes, Ops: r.Ops} }
