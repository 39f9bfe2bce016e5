package simclient

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	dialTimeout    = 5 * time.Second
	attemptTimeout = 2 * time.Second
	retryPause     = 100 * time.Millisecond
	// callTimeout is when a connection that gives no answer counts as broken.
	callTimeout = 3 * time.Second
	forever     = time.Duration(1 << 62)
)

// metaCall calls the metadata leader: it follows not-leader answers and repeats
// what got no answer until the limit; every other error comes back at once.
func metaCall[R any](c *Client, f *Fiber, limit, attempt time.Duration, request any) (R, error) {
	var none R
	until := c.world.Now() + limit
	if limit == forever {
		until = forever
	}
	at := c.leader
	for tries := 0; ; tries++ {
		reply, err := c.metaTry(f, at, min(attempt, until-c.world.Now()), request)
		if c.dead || f.dead {
			return none, errKilled
		}
		kind, next := errs.KindOf(err), (at+1)%c.world.MetaServers()
		if moved, ok := err.(NotLeader); ok {
			kind = errs.NotLeader
			if moved.Leader >= 0 && moved.Leader != at {
				next = moved.Leader
			}
		}
		if kind == errs.OK {
			c.leader = at
			return reply.(R), nil
		}
		if kind != errs.NotLeader && kind != errs.Unavailable {
			return none, err
		}
		round := c.world.MetaServers()
		if c.world.Now() >= until || (tries+1)%max(round, 2) == 0 && !c.sleep(f, retryPause) {
			return none, errs.As(err, errs.Unavailable, "metadata service")
		}
		at = next
	}
}

// metaTry asks one metadata server once.
func (c *Client) metaTry(f *Fiber, server int, limit time.Duration, request any) (reply any, err error) {
	over := false
	f.Wait(func(done func()) {
		c.world.Meta(server, request, func(r any, e error) {
			if !c.dead && !over {
				over = true
				reply, err = r, e
				done()
			}
		})
		c.after(limit, func() {
			if !over {
				over, err = true, errs.New(errs.Unavailable, "", "metadata server %d does not answer", server)
				done()
			}
		})
	})
	if !over {
		err = errKilled
	}
	return reply, err
}

// chunk sends a request to a chunk server; done runs exactly once while the
// process lives, with an error when no answer comes.
func (c *Client) chunk(server layout.ServerID, request any, done func(*ChunkReply, error)) {
	over := false
	c.world.Chunk(server, request, func(r *ChunkReply, err error) {
		if c.dead || over {
			return
		}
		over = true
		if r == nil {
			r = &ChunkReply{}
		}
		done(r, err)
	})
	c.after(callTimeout, func() {
		if !over {
			over = true
			done(&ChunkReply{}, errs.New(errs.Unavailable, "", "server %d: the connection broke", server))
		}
	})
}

// together runs work n times at once, each on a fiber, and waits for all.
func (c *Client) together(f *Fiber, n int, work func(i int, f *Fiber)) bool {
	left := n
	return n == 0 || f.Wait(func(done func()) {
		for i := range n {
			c.Go(func(f *Fiber) {
				work(i, f)
				if left--; left == 0 {
					done()
				}
			})
		}
	})
}

// chunkWait is chunk for a fiber.
func (c *Client) chunkWait(f *Fiber, server layout.ServerID, request any) (reply *ChunkReply, err error) {
	ok := f.Wait(func(done func()) {
		c.chunk(server, request, func(r *ChunkReply, e error) {
			reply, err = r, e
			done()
		})
	})
	if !ok {
		return &ChunkReply{}, errKilled
	}
	return reply, err
}
