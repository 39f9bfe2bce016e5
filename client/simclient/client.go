package simclient

import (
	"time"

	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
)

// Options are a client's properties.
type Options struct {
	Owner     string
	Janitor   bool
	MemoryCap int64 // of each volume
	// Builder and Coders may be shared by all clients of a test: they keep what
	// is dear to make and the same for all.
	Builder *build.Builder
	Coders  *erasure.Set
	Fibers  *Pool
	Clean   Cleaning // how writers clean their volumes
}

// Client is a client process.
type Client struct {
	world   World
	watch   Observer
	opts    Options
	session Session
	places  map[layout.SegmentID]*Segment
	writers []*Volume
	fibers  Fibers
	pins    map[layout.SnapshotID]int // handles of snapshots
	leader  int                       // the metadata server that answered last
	dead    bool
	closed  bool
}

// New makes a client without a session.
func New(w World, watch Observer, opts Options) *Client {
	return &Client{world: w, watch: watch, opts: opts, places: map[layout.SegmentID]*Segment{},
		pins: map[layout.SnapshotID]int{}, fibers: Fibers{Pool: opts.Fibers}}
}

// Go runs work in the process.
func (c *Client) Go(work func(*Fiber)) {
	if !c.dead {
		c.fibers.Go(work)
	}
}

// Kill ends the process where it stands.
func (c *Client) Kill() {
	c.dead = true
	c.fibers.Kill()
	for _, v := range c.writers {
		v.w.stopped = true
	}
	c.writers = nil
}

// errKilled is what calls of a process give that is no more.
var errKilled = errs.New(errs.Canceled, "", "the process was killed")

// after calls fn later, unless the process is dead by then.
func (c *Client) after(d time.Duration, fn func()) {
	c.world.After(d, func() {
		if !c.dead {
			fn()
		}
	})
}

func (c *Client) sleep(f *Fiber, d time.Duration) bool {
	return f.Wait(func(done func()) { c.after(d, done) })
}

// Open gives the process a session.
func (c *Client) Open(f *Fiber) error {
	err := c.begin(f)
	if err == nil {
		c.Go(c.run)
	}
	return err
}

func (c *Client) begin(f *Fiber) error {
	r, err := metaCall[*Session](c, f, dialTimeout, attemptTimeout, &OpenSession{Command: c.command(), Owner: c.opts.Owner, Janitor: c.opts.Janitor})
	if err == nil {
		c.session = *r
	}
	return err
}

// run keeps the session, and the next one when it was lost.
func (c *Client) run(f *Fiber) {
	for c.keep(f) {
		c.watch.Rare("a session lost")
		for c.begin(f) != nil {
			if !c.sleep(f, c.session.TTL/20) {
				return
			}
		}
		c.pinAgain(f)
	}
}

// Close closes the volumes that are open for writing, then the session.
func (c *Client) Close(f *Fiber) error {
	var first error
	for _, v := range append([]*Volume(nil), c.writers...) {
		if err := v.Close(f); err != nil && first == nil {
			first = err
		}
	}
	c.closed = true
	_, _ = metaCall[*Kept](c, f, time.Second, time.Second, &CloseSession{Session: c.session.ID})
	return first
}

// keep renews the session until it is closed. A session that the metadata
// service no longer knows costs its volumes their leases: then it gives true.
func (c *Client) keep(f *Fiber) (lost bool) {
	var seen uint64
	for !c.dead && !c.closed {
		r, err := metaCall[*Kept](c, f, c.session.TTL/2, c.session.TTL/3, &KeepSession{Session: c.session.ID, Seen: seen})
		switch kind := errs.KindOf(err); {
		case c.dead || c.closed:
			return false
		case kind == errs.OK:
			for _, e := range r.Events {
				c.deliver(e)
				seen = max(seen, e.ID)
			}
		case kind == errs.LeaseLost || kind == errs.NotFound:
			for _, v := range append([]*Volume(nil), c.writers...) {
				v.w.leaseLost(errs.As(err, errs.LeaseLost, "write volume %d", v.ID))
			}
			return true
		}
		if !c.sleep(f, c.session.TTL/20) {
			return false
		}
	}
	return false
}

func (c *Client) deliver(e Event) {
	for _, v := range append([]*Volume(nil), c.writers...) {
		switch {
		case e.Server != 0:
			v.w.serverDown(e.Server)
		case e.Volume == v.ID && e.Barrier != 0:
			c.Go(func(f *Fiber) { v.w.barrier(f, e.Barrier) })
		case e.Volume == v.ID:
			v.w.leaseLost(errs.New(errs.LeaseLost, "write", "another writer took volume %d over", v.ID))
		}
	}
}

func (c *Client) forget(v *Volume) {
	for i, o := range c.writers {
		if o == v {
			c.writers = append(c.writers[:i:i], c.writers[i+1:]...)
			return
		}
	}
}

func (c *Client) command() uint64 { return c.world.Draw() | 1 }
