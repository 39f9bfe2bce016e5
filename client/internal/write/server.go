package write

import (
	"cmp"
	"slices"
	"time"

	"strake/internal/layout"
)

// server is what the core knows of one chunk server.
type server struct {
	id         layout.ServerID
	appends    latency
	syncs      latency
	avoidUntil time.Duration
	failure    int           // number of its last failure, of all servers
	asked      bool          // a RequestMove is under way
	moveAt     time.Duration // no RequestMove before
}

// device is what the core knows of one device.
type device struct {
	id     layout.DeviceID
	server *server
	inc    layout.Incarnation // highest one seen; 0: none yet
	sync   *Sync              // under way or waiting to go again
	sentAt time.Duration      // of sync
	again  time.Duration      // when sync goes again; 0: it is under way
}

// peers are the servers and devices that segments were granted on.
type peers struct {
	servers map[layout.ServerID]*server
	devices map[layout.DeviceID]*device
	order   []*server // ascending, for walks in a fixed order
	newest  [2]answer // the two servers that answered the latest requests
}

// answer is a server and when the latest request that it answered was sent.
type answer struct {
	server *server
	sentAt time.Duration
}

func (p *peers) device(s Shard) *device {
	if p.devices == nil {
		p.devices = make(map[layout.DeviceID]*device)
	}
	d := p.devices[s.Device]
	if d == nil {
		d = &device{id: s.Device}
		p.devices[s.Device] = d
	}
	d.server = p.server(s.Server)
	return d
}

func (p *peers) server(id layout.ServerID) *server {
	s := p.servers[id]
	if s != nil {
		return s
	}
	if p.servers == nil {
		p.servers = make(map[layout.ServerID]*server)
	}
	s = &server{id: id}
	p.servers[id] = s
	at, _ := slices.BinarySearchFunc(p.order, id, func(o *server, id layout.ServerID) int {
		return cmp.Compare(o.id, id)
	})
	p.order = slices.Insert(p.order, at, s)
	return s
}

// avoided gives the servers that get no new segment now, what failed last first.
func (p *peers) avoided(now time.Duration) (out []layout.ServerID) {
	for _, s := range p.order {
		if s.avoidUntil > now {
			out = append(out, s.id)
		}
	}
	slices.SortFunc(out, func(a, b layout.ServerID) int { return cmp.Compare(p.servers[b].failure, p.servers[a].failure) })
	return out
}

// othersAnswered tells whether another server answered something that was sent
// at or after at: only then does silence say something of this server, and not
// of ourselves or of the network.
func (p *peers) othersAnswered(s *server, at time.Duration) bool {
	for _, a := range p.newest {
		if a.server != nil && a.server != s && a.sentAt >= at {
			return true
		}
	}
	return false
}

// answered notes that s answered what was sent at sentAt.
func (p *peers) answered(s *server, sentAt time.Duration) {
	first, second := &p.newest[0], &p.newest[1]
	switch {
	case first.server == s:
		first.sentAt = max(first.sentAt, sentAt)
	case first.server == nil || sentAt > first.sentAt:
		*second = *first
		*first = answer{s, sentAt}
	case second.server == nil || sentAt > second.sentAt:
		*second = answer{s, sentAt}
	}
}
