package sim

import (
	"strconv"
	"time"

	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// What chunk servers ask of the metadata leader.
type (
	registerServer struct{ cmd state.RegisterServer }
	registered     struct {
		server layout.ServerID
		device layout.DeviceID
	}
	heartbeat struct {
		server  layout.ServerID
		devices []state.DeviceUpdate
	}
)

const (
	heartbeatEvery = 500 * time.Millisecond
	registerRetry  = 200 * time.Millisecond
)

// ask sends a request to the leader as far as it is known. No answer: done is
// not called.
func (c *chunkServer) ask(request any, done func(any, error)) {
	c.s.metaCall(&c.process, c.leader, request, func(r any, err error) {
		if moved, ok := err.(simclient.NotLeader); ok {
			if c.leader = (c.leader + 1) % metaServers; moved.Leader >= 0 {
				c.leader = moved.Leader
			}
		}
		c.heardBack = true
		done(r, err)
	})
}

// register tries until the leader has recorded this life.
func (c *chunkServer) register() {
	if c.serving {
		return
	}
	sb := c.store.Superblock()
	c.heardBack = false
	c.ask(&registerServer{state.RegisterServer{Cell: cellID, UUID: sb.Server, DataAddress: strconv.Itoa(c.number), Devices: []state.DeviceReport{{
		UUID: sb.UUID, Total: diskBytes / c.s.scale, Reserved: c.store.Usage().Reserved / c.s.scale, Incarnation: sb.Incarnation}}}},
		func(r any, err error) {
			if err != nil || c.serving {
				return
			}
			got := r.(*registered)
			c.id, c.device, c.serving = got.server, got.device, true
			if err := c.store.SetDevice(c.device); err != nil {
				c.s.fail("server %d: %v", c.id, err)
			}
			c.s.servers[c.id] = c
			c.s.note("server serves", uint64(c.number), uint64(c.id))
			c.beat()
		})
	c.after(registerRetry, func() {
		if !c.serving {
			if !c.heardBack {
				c.leader = (c.leader + 1) % metaServers
			}
			c.register()
		}
	})
}

// stored is how many bytes the device's shards have.
func (c *chunkServer) stored() (bytes uint64) {
	c.store.Each(func(st store.Stat) bool {
		bytes += uint64(st.Stored)
		return true
	})
	return bytes
}

// beat sends heartbeats while the process lives.
func (c *chunkServer) beat() {
	c.heardBack = false
	c.ask(&heartbeat{c.id, []state.DeviceUpdate{{Device: c.device, Total: diskBytes / c.s.scale, Reserved: c.store.Usage().Reserved, Used: c.stored()}}},
		func(_ any, err error) {
			if errs.KindOf(err) == errs.NotFound {
				c.serving = false
				c.register()
			}
		})
	c.after(heartbeatEvery, func() {
		if c.serving {
			if !c.heardBack {
				c.leader = (c.leader + 1) % metaServers
			}
			c.beat()
		}
	})
}
