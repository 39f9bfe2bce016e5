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
	wanted     map[claimOn]qos.Rate // smoothed
	served     map[claimOn]qos.Rate // the same
	parts      map[claimOn]part     // of those with a reservation or a limit
	among      []layout.DeviceID    // that parts were divided among
	capacities map[layout.DeviceID]*pb.DeviceCapacity
	renewed    map[state.ReservationID]renewal
}

// claimOn is a claimant's work on a device.
type claimOn struct {
	device layout.DeviceID
	claimant
}

// part is a device's part of cell-wide figures, or all of them.
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
	s.wanted, s.served, s.parts = map[claimOn]qos.Rate{}, map[claimOn]qos.Rate{}, map[claimOn]part{}
	s.among = nil
	s.capacities, s.renewed = map[layout.DeviceID]*pb.DeviceCapacity{}, map[state.ReservationID]renewal{}
}

// maxDemands bounds the demands of one heartbeat: every class, and every tenant with
// a reservation, on every device.
const maxDemands = (qos.MaxClasses + state.MaxReservations) * state.MaxServerDevices

// heard takes in what a server's devices were asked for and can do.
func (s *shares) heard(own []layout.DeviceID, r *pb.HeartbeatRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range r.GetDemands()[:min(len(r.GetDemands()), maxDemands)] {
		k := claimOn{layout.DeviceID(d.GetDevice()), claimant{layout.Class(d.GetClass()), layout.TenantID(d.GetTenant())}}
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
// whole cell. Parts that would hardly move stay: a scheduler's figures should not
// change each second.
func (s *shares) divide(claims []claim, devices []layout.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.among = devices
	s.forget(claims, devices)
	next := map[claimOn]part{}
	for _, c := range claims {
		if c.reservation.IsZero() && c.limit.IsZero() {
			continue
		}
		wanted := make([]qos.Rate, len(devices))
		for i, d := range devices {
			wanted[i] = s.wanted[claimOn{d, c.claimant}]
		}
		reservation, limit := c.reservation.Divide(wanted), c.limit.Divide(wanted)
		parts, still := make([]part, len(devices)), true
		for i, d := range devices {
			parts[i] = part{reservation[i], limit[i]}
			still = still && near(s.parts[claimOn{d, c.claimant}], parts[i])
		}
		still = still && s.adds(c, devices)
		for i, d := range devices {
			k := claimOn{d, c.claimant}
			if next[k] = parts[i]; still {
				next[k] = s.parts[k]
			}
		}
	}
	s.parts = next
}

// forget drops what devices did that are not up, and what was heard of tenants whose
// reservations have ended. mu is held.
func (s *shares) forget(claims []claim, devices []layout.DeviceID) {
	up, claimed := map[layout.DeviceID]bool{}, map[claimant]bool{}
	for _, d := range devices {
		up[d] = true
	}
	for _, c := range claims {
		claimed[c.claimant] = true
	}
	gone := func(k claimOn, _ qos.Rate) bool { return !up[k.device] || k.tenant != 0 && !claimed[k.claimant] }
	maps.DeleteFunc(s.wanted, gone)
	maps.DeleteFunc(s.served, gone)
}

// knows tells whether all of the devices had parts in the last division.
func (s *shares) knows(devices []layout.DeviceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(devices, func(d layout.DeviceID) bool { return !slices.Contains(s.among, d) })
}

// adds tells whether the parts that devices have now are parts of what is claimed
// now. mu is held.
func (s *shares) adds(c claim, devices []layout.DeviceID) bool {
	var sum part
	for _, d := range devices {
		p := s.parts[claimOn{d, c.claimant}]
		sum.reservation = sum.reservation.Plus(p.reservation)
		sum.limit = sum.limit.Plus(p.limit)
	}
	n := int64(len(devices))
	exact := func(total, sum int64) bool {
		return total == sum || total < n && sum <= n && (total == 0) == (sum == 0)
	}
	return exact(c.reservation.Bytes, sum.reservation.Bytes) && exact(c.reservation.Ops, sum.reservation.Ops) &&
		exact(c.limit.Bytes, sum.limit.Bytes) && exact(c.limit.Ops, sum.limit.Ops)
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
			list = append(list, &pb.ClassShare{Device: uint64(k.device), Class: uint32(k.class), Tenant: uint32(k.tenant), Reservation: rateOut(p.reservation), Limit: rateOut(p.limit)})
		}
	}
	return list
}

// servedOf is what a tenant's work in a class gets in the whole cell, where it has a
// reservation; tenant 0: all of the class.
func (s *shares) servedOf(class layout.Class, tenant layout.TenantID) (sum qos.Rate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range s.served {
		if k.claimant == (claimant{class, tenant}) {
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
