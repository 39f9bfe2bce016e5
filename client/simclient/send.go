package simclient

import (
	"bytes"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const (
	allocateTimeout = 20 * time.Second
	sealTimeout     = 10 * time.Second
	moveTimeout     = time.Second
)

// send encodes a stripe and sends each participant its unit.
func (w *writer) send(to core, s *write.Stripe, shards layout.Mask, parts [][]byte, fresh bool) {
	h := *s.Header
	h.CRCs = nil
	units, err := w.c.opts.Builder.Build(&h, parts)
	must(err)
	if fresh {
		s.Header.CRCs = h.CRCs
	}
	for m := shards; m != 0; m &= m - 1 {
		h.Shard, _ = m.Nth(0)
		w.sendUnit(to, s, h.Shard, h.AppendTo(make([]byte, 0, h.EncodedLen())), bytes.Join(units.Of(h.Shard), nil))
	}
	units.Release()
}

func (w *writer) sendUnit(to core, s *write.Stripe, shard layout.ShardIndex, header, unit []byte) {
	at := s.Segment.Shards[shard]
	ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: s.Segment.ID, Shard: shard}, Generation: at.Generation}
	reply := write.Reply{Seq: s.Seq(), Copy: s.Copy, Shard: shard}
	request := &Append{Ref: ref, Epoch: w.epoch, Header: header, Payload: unit, Durable: s.Durable}
	w.c.chunk(at.Server, request, func(r *ChunkReply, err error) {
		reply.Incarnation = r.Incarnation
		w.input(func(now time.Duration) { to.Appended(now, reply, err) })
	})
}

// perform does what an action asks of devices and of the metadata service.
func (w *writer) perform(to core, a *write.Action) {
	switch a.Kind {
	case write.SendSync:
		w.sendSync(to, a.Sync)
	case write.Allocate:
		request := a.Allocation
		w.c.Go(func(f *Fiber) {
			segments, err := w.allocate(f, request)
			w.input(func(now time.Duration) { to.Granted(now, request.Request, segments, err) })
		})
	case write.SealSegment:
		seal := *a.Seal
		w.c.Go(func(f *Fiber) {
			err := w.c.seal(f, w.v.ID, w.epoch, seal)
			w.input(func(now time.Duration) { to.Sealed(now, seal.Segment, err) })
		})
	case write.RequestMove:
		server := a.Server
		w.c.Go(func(f *Fiber) {
			granted, retry := w.requestMove(f, server)
			w.input(func(now time.Duration) { to.MoveGranted(now, server, granted, retry) })
		})
	}
}

func (w *writer) sendSync(to core, s *write.Sync) {
	id := s.ID
	request := &Sync{Epoch: w.epoch, Incarnation: s.Incarnation, Device: s.Device, Shards: append([]frame.ShardRef(nil), s.Shards...)}
	w.c.chunk(s.Server, request, func(_ *ChunkReply, err error) {
		if errs.KindOf(err) == errs.IncarnationMoved {
			w.c.watch.Rare("an incarnation changed before a flush")
		}
		w.input(func(now time.Duration) { to.Synced(now, id, err) })
	})
}

func (w *writer) allocate(f *Fiber, a *write.Allocation) ([]write.Segment, error) {
	r, err := metaCall[*Segments](w.c, f, allocateTimeout, allocateTimeout, &AllocateSegments{Command: w.c.command(), Session: w.c.session.ID,
		Volume: w.v.ID, Epoch: w.epoch, Map: a.Map, Count: a.Count, Length: a.MinLength, Urgent: a.Urgent, Clean: a.Cold, Avoid: append([]layout.ServerID(nil), a.Avoid...)})
	if err != nil {
		return nil, errs.Wrap(err, "allocate segments")
	}
	w.c.learn(r.List)
	list := make([]write.Segment, len(r.List))
	for i, s := range r.List {
		list[i] = s.granted()
	}
	return list, nil
}

// seal records seals in the metadata service.
func (c *Client) seal(f *Fiber, v layout.VolumeID, e layout.Epoch, seals ...stripe.Seal) error {
	_, err := metaCall[*Kept](c, f, sealTimeout, attemptTimeout, &SealSegments{Command: c.command(), Volume: v, Epoch: e, Seals: seals})
	return err
}

func (w *writer) requestMove(f *Fiber, server layout.ServerID) (granted bool, retry time.Duration) {
	r, err := metaCall[*Move](w.c, f, moveTimeout, moveTimeout, &RequestMove{Session: w.c.session.ID, Volume: w.v.ID, Epoch: w.epoch, Server: server})
	if err == nil && r.Granted {
		return true, 0
	}
	retry = moveTimeout
	if err == nil {
		w.c.watch.Rare("a move by time-out refused for budget")
		retry = r.Retry
	}
	if w.c.silent(f, server) {
		w.c.watch.Rare("a silent server left without the budget")
		return true, retry
	}
	return false, retry
}

// pingTimeout is after how long without an answer to a ping a server is silent.
const pingTimeout = time.Second

// silent tells whether a server does not even answer a ping.
func (c *Client) silent(f *Fiber, server layout.ServerID) bool {
	over, answered := false, false
	f.Wait(func(done func()) {
		end := func(by bool) {
			if !over {
				over, answered = true, by
				done()
			}
		}
		c.chunk(server, &Ping{}, func(*ChunkReply, error) { end(true) })
		c.after(pingTimeout, func() { end(false) })
	})
	return over && !answered
}
