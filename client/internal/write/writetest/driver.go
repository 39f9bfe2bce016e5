package writetest

import (
	"fmt"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Driver is a shell without bytes: it runs a core on a cell and checks each
// action against what it knows (see check.go).
type Driver struct {
	Cell  *Cell
	Core  *write.Core
	Now   time.Duration
	Epoch layout.Epoch
	Want  layout.Geometry

	Acked, Flushed layout.Seq
	Stripes        []*Stripe // by seq - first
	First          layout.Seq
	Ended          error // Fail's, or Closed once released
	Broken         error // the first rule that was broken
	Log            func(string)

	writes   map[write.WriteID]*tracked
	flushes  map[write.FlushID]promise
	order    []*tracked
	lastIn   map[layout.SegmentID]layout.Seq
	endOf    map[layout.SegmentID]layout.ShardOffset
	sealed   map[layout.SegmentID]bool
	held     int64
	waiting  bool
	granted  bool // budget for moves
	overload int  // percent of appends refused
}

// Stripe is what the driver knows of one.
type Stripe struct {
	Now    *write.Stripe // the current copy
	Header *stripe.Header
	got    layout.Mask // participants that answered for the current copy
}

// promise is what must be flushed when a flush is done.
type promise struct {
	writes int        // that were submitted before it
	seq    layout.Seq // and up to here
}

type tracked struct {
	id      write.WriteID
	blocks  layout.BlockCount
	cut     layout.BlockCount // payload blocks in stripes
	last    layout.Seq        // the last stripe with a piece
	durable bool
	bare    bool // the first range has no payload
	done    bool
	err     error
}

// NewDriver starts a writer after seq last.
func NewDriver(c *Cell, cfg write.Config) *Driver {
	cfg.Cell, cfg.Volume = 1, 1
	return &Driver{Cell: c, Core: write.New(cfg), Epoch: cfg.Epoch, Want: cfg.Geometry, First: cfg.LastSeq + 1,
		Acked: cfg.LastSeq, Flushed: cfg.LastSeq, writes: map[write.WriteID]*tracked{}, flushes: map[write.FlushID]promise{},
		lastIn: map[layout.SegmentID]layout.Seq{}, endOf: map[layout.SegmentID]layout.ShardOffset{},
		sealed: map[layout.SegmentID]bool{}, granted: true}
}

// Overload sets the percentage of appends that are refused as overloaded.
func (d *Driver) Overload(percent int) { d.overload = percent }

// Budget says whether moves by time-out are granted.
func (d *Driver) Budget(granted bool) { d.granted = granted }

// Submit hands a write to the core.
func (d *Driver) Submit(w write.Write) error {
	t := &tracked{id: w.ID, durable: w.Durable, bare: w.Ranges[0].Kind != stripe.Write}
	for _, r := range w.Ranges {
		if r.Kind == stripe.Write {
			t.blocks += layout.BlockCount(r.Count)
		}
	}
	d.writes[w.ID] = t
	d.order = append(d.order, t)
	d.held += t.blocks.Bytes()
	err := d.Core.Submit(d.Now, w)
	if err != nil {
		d.held -= t.blocks.Bytes()
		d.order = d.order[:len(d.order)-1]
		delete(d.writes, w.ID)
	}
	d.take()
	return err
}

// Flush asks for a flush.
func (d *Driver) Flush(id write.FlushID) {
	d.flushes[id] = promise{writes: len(d.order)}
	d.Core.Flush(d.Now, id)
	d.take()
}

// FlushAcked asks for a flush of what is acknowledged.
func (d *Driver) FlushAcked(id write.FlushID) {
	d.flushes[id] = promise{seq: d.Acked}
	d.Core.FlushAcked(d.Now, id)
	d.take()
}

// Tick moves time on, by a random step or to the next thing due.
func (d *Driver) Tick(most time.Duration) {
	step := time.Duration(d.Cell.Rand.Int64N(int64(most)))
	if at, ok := d.Core.NextTick(); ok && at < d.Now+step {
		step = max(at-d.Now, 0)
	}
	d.Now += step
	d.Core.Tick(d.Now)
	d.take()
}

// Do runs f on the core and takes the actions.
func (d *Driver) Do(f func(c *write.Core)) {
	f(d.Core)
	d.take()
}

func (d *Driver) bad(format string, args ...any) {
	if d.Broken == nil {
		d.Broken = fmt.Errorf(format, args...)
	}
}

func (d *Driver) log(format string, args ...any) {
	if d.Log != nil {
		d.Log(fmt.Sprintf(format, args...))
	}
}

func (d *Driver) take() {
	for _, a := range d.Core.Take(nil) {
		if d.Ended != nil && a.Kind != write.FlushDone {
			d.bad("an action of kind %d after the end", a.Kind)
		}
		d.act(a)
	}
	if err := d.Core.Check(); err != nil {
		d.bad("%v", err)
	}
	if held := d.Core.Held(); d.Ended == nil && (held > d.held || held < d.held-d.cutShort()) {
		d.bad("the core holds %d bytes, the shell %d", held, d.held)
	}
}

// cutShort is the payload of writes that are cut in part: the core may have
// dropped the rest of it, for want of space, before it answers them.
func (d *Driver) cutShort() (n int64) {
	for _, t := range d.order {
		if !t.done && (t.cut > 0 || t.bare) {
			n += (t.blocks - t.cut).Bytes()
		}
	}
	return n
}

func (d *Driver) act(a write.Action) {
	switch a.Kind {
	case write.Cut:
		d.onCut(a)
	case write.Move:
		d.onMove(a)
	case write.Retry:
		d.sendTo(a.Stripe, a.Shards)
	case write.SendSync:
		d.onSync(a.Sync)
	case write.Allocate:
		d.onAllocate(a.Allocation)
	case write.SealSegment:
		d.onSeal(a.Seal)
	case write.RequestMove:
		d.onRequestMove(a.Server)
	case write.Acked:
		d.onAcked(a.Seq)
	case write.Flushed:
		d.onFlushed(a.Seq)
	case write.WriteDone:
		d.onWriteDone(a.Write, a.Err)
	case write.FlushDone:
		d.onFlushDone(a.Flush, a.Err)
	case write.Wait, write.Resume:
		d.waiting = a.Kind == write.Wait
	case write.Fail:
		d.log("the writer ends: %v", a.Err)
		d.Ended = a.Err
	case write.Released:
		d.onReleased(a.Seq)
	}
}

// sendTo sends the participants' parts, each its own message.
func (d *Driver) sendTo(st *write.Stripe, shards layout.Mask) {
	for ; shards != 0; shards &= shards - 1 {
		i, _ := shards.Nth(0)
		s := d.Cell.Server(st.Segment.Shards[i].Server)
		r := write.Reply{Seq: st.Seq(), Copy: st.Copy, Shard: i}
		d.Cell.send(s, func() {
			err := d.Cell.fault()
			if d.Cell.Rand.IntN(100) < d.overload {
				err = errs.Overloaded
			}
			if err == nil {
				r.Incarnation, err = s.Append(layout.ShardKey{Segment: st.Segment.ID, Shard: i}, st.Header, st.Durable)
			}
			d.Cell.send(nil, func() {
				if k := d.stripe(r.Seq); err == nil && k.Now == st {
					k.got = k.got.With(i)
				}
				d.Core.Appended(d.Now, r, err)
				d.take()
			})
		})
	}
}

func (d *Driver) onSync(y *write.Sync) {
	s := d.Cell.Server(y.Server)
	id, sent := y.ID, *y
	sent.Shards = append(sent.Shards[:0:0], y.Shards...)
	d.Cell.send(s, func() {
		err := d.Cell.fault()
		if err == nil {
			err = s.Sync(&sent, d.Epoch)
		}
		d.Cell.send(nil, func() {
			d.Core.Synced(d.Now, id, err)
			d.take()
		})
	})
}

func (d *Driver) onAllocate(a *write.Allocation) {
	d.Cell.send(nil, func() {
		granted, err := d.Cell.Grant(d.Epoch, d.Want, a)
		d.Cell.send(nil, func() {
			d.Core.Granted(d.Now, a.Request, granted, err)
			d.take()
		})
	})
}

func (d *Driver) onRequestMove(id layout.ServerID) {
	d.Cell.send(nil, func() {
		granted := d.granted && !d.Cell.Away && d.Epoch == d.Cell.Epoch
		d.Core.MoveGranted(d.Now, id, granted, 50*time.Millisecond)
		d.take()
	})
}
