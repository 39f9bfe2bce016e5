package sim

import (
	"encoding/binary"

	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// What the metadata leader asks of chunk servers, beside what clients ask.
type (
	createShards   struct{ specs []store.ShardSpec }
	finalizeShards struct {
		ref  frame.ShardRef
		last layout.Seq
		seal stripe.ShardSeal
	}
	deleteShard   struct{ ref frame.ShardRef }
	recoverVolume struct{ volume layout.VolumeID }
	cleanVolume   struct{ volume layout.VolumeID }
)

func kindOf(request any) kind {
	switch request.(type) {
	case *simclient.Append:
		return kindAppend
	case *simclient.Read, *simclient.List:
		return kindRead
	case *simclient.Sync:
		return kindSync
	}
	return kindControl
}

// handle does one call, to its end.
func (c *chunkServer) handle(request any) (*simclient.ChunkReply, error) {
	r := &simclient.ChunkReply{Incarnation: c.store.Incarnation()}
	var err error
	switch q := request.(type) {
	case *simclient.Append:
		r.Generation, err = q.Ref.Generation, c.append(q)
	case *simclient.Sync:
		err = c.sync(q)
	case *simclient.Read:
		err = c.read(q, r)
	case *simclient.List:
		r.Bytes, _, r.Next, err = c.store.List(q.Ref, q.From, q.Most)
	case *simclient.Fence:
		for _, shard := range q.Shards {
			r.Fenced = append(r.Fenced, c.fence(shard, q.Epoch))
		}
	case *createShards:
		for _, spec := range q.specs {
			e := c.store.Create(spec)
			c.s.note("create", uint64(c.number), uint64(spec.Key.Segment), uint64(spec.Key.Shard), uint64(errs.KindOf(e)))
			if err == nil {
				err = e
			}
		}
	case *finalizeShards:
		err = c.store.Finalize(q.ref, q.last, q.seal)
		c.s.finalized(c, q.ref.ShardKey, err)
		c.s.note("finalize", uint64(c.number), uint64(q.ref.Segment), uint64(q.ref.Shard), uint64(errs.KindOf(err)))
	case *deleteShard:
		err = c.store.Delete(q.ref)
		c.s.note("delete", uint64(c.number), uint64(q.ref.Segment), uint64(q.ref.Shard), uint64(errs.KindOf(err)))
	default:
		err = errs.New(errs.Internal, "", "request %T", request)
	}
	if errs.KindOf(err) == errs.StaleGeneration {
		c.s.rare("a stale generation refused")
	}
	if err == nil && c.s.moved {
		c.answers(request)
	}
	return r, err
}

// append stores a unit; a durable one is synced before the answer, as the server does.
func (c *chunkServer) append(q *simclient.Append) error {
	h, _, _ := stripe.Decode(q.Header)
	err := c.store.Append(store.Append{Ref: q.Ref, Epoch: q.Epoch, Header: q.Header, Payload: q.Payload})
	if err == nil && q.Durable {
		err = c.underCut(true, func() error { return c.store.Sync(q.Epoch, c.store.Incarnation(), []frame.ShardRef{q.Ref}) })
	}
	if err == nil {
		c.s.took("an append", q.Ref.ShardKey, q.Epoch)
	}
	c.s.note("append", uint64(c.number), uint64(q.Ref.Segment)<<8|uint64(q.Ref.Shard), uint64(h.Seq), uint64(errs.KindOf(err)))
	return err
}

func (c *chunkServer) sync(q *simclient.Sync) error {
	if q.Device != c.device {
		return errs.New(errs.NotHere, "sync", "device %d is not on this server", q.Device)
	}
	err := c.underCut(len(q.Shards) == 1, func() error { return c.store.Sync(q.Epoch, q.Incarnation, q.Shards) })
	for _, ref := range q.Shards {
		if err == nil {
			c.s.took("a sync", ref.ShardKey, q.Epoch)
		}
	}
	c.s.note("sync", uint64(c.number), uint64(q.Epoch), uint64(len(q.Shards)), uint64(errs.KindOf(err)))
	return err
}

func (c *chunkServer) read(q *simclient.Read, r *simclient.ChunkReply) error {
	switch {
	case q.Recovery:
		if err := c.store.CheckRecovery(q.Ref, q.Epoch); err != nil {
			return err
		}
		c.s.took("a recovery's read", q.Ref.ShardKey, q.Epoch)
	case q.Epoch != 0:
		if err := c.store.CheckReader(q.Ref, q.Epoch); err != nil {
			return err
		}
	}
	body := frame.ReadBody{Shard: q.Ref, Ranges: q.Ranges}
	r.Bytes, r.Generation = make([]byte, body.Bytes()), q.Ref.Generation
	if _, err := c.store.Read(q.Ref, q.Ranges, r.Bytes); err != nil {
		return err
	}
	if q.Bare {
		return nil
	}
	var err error
	if q.Headers {
		r.Meta, err = c.headers(q)
		return err
	}
	crcs, err := c.store.CRCs(q.Ref, q.Ranges, nil)
	for _, v := range crcs {
		r.Meta = binary.LittleEndian.AppendUint32(r.Meta, v)
	}
	return err
}

func (c *chunkServer) headers(q *simclient.Read) ([]byte, error) {
	list, err := c.store.Headers(q.Ref, q.Ranges)
	if err != nil {
		return nil, err
	}
	meta := binary.LittleEndian.AppendUint32(nil, uint32(len(list)))
	for _, h := range list {
		meta = append(meta, h...)
	}
	if len(meta) > frame.MaxMeta {
		return nil, errs.New(errs.TooLarge, "read", "%d bytes of headers", len(meta))
	}
	return meta, nil
}

// fence fences one shard and gives its answer.
func (c *chunkServer) fence(q simclient.FenceShard, e layout.Epoch) simclient.Fenced {
	a := simclient.Fenced{Ref: q.Ref}
	if q.Device != c.device {
		a.Err = errs.New(errs.NotHere, "", "device %d is not on this server", q.Device)
		return a
	}
	var list []store.Fenced
	a.Err = c.underCut(true, func() (err error) {
		list, err = c.store.Fence(q.Ref, e)
		return err
	})
	c.s.note("fence", uint64(c.number), uint64(q.Ref.Segment)<<8|uint64(q.Ref.Shard), uint64(e), uint64(len(list)))
	if a.Err == nil && (c.cut == nil || c.cut.left == nil) {
		c.s.fenced(q.Ref.ShardKey, e)
	}
	if a.Err == nil && len(list) == 0 {
		c.s.rare("a fence on a shard that was never written")
	}
	for _, f := range list {
		if f.Err != nil {
			c.s.rare("a fenced shard can't tell of a stripe")
		}
		a.Stripes = append(a.Stripes, simclient.FencedStripe{Seq: f.Seq, Header: f.Header, Kind: errs.KindOf(f.Err)})
	}
	return a
}

// recover has a janitor recover a volume, and answers when it is done.
func (c *chunkServer) recover(v layout.VolumeID, done func(error)) {
	j := c.s.newClient(&c.process, simclient.Options{Owner: c.String() + "'s janitor", Janitor: true, MemoryCap: memoryCap})
	c.janitors = append(c.janitors, j)
	j.Go(func(f *simclient.Fiber) {
		err := j.Open(f)
		if err == nil {
			_, err = j.Recover(f, v)
		}
		c.s.note("janitor", uint64(c.number), uint64(v), uint64(errs.KindOf(err)))
		done(err)
		_ = j.Close(f)
	})
}

// clean has a janitor clean a volume, and answers when it is done.
func (c *chunkServer) clean(v layout.VolumeID, done func(error)) {
	j := c.s.newClient(&c.process, simclient.Options{Owner: c.String() + "'s janitor", Janitor: true, MemoryCap: memoryCap, Clean: c.s.habits.cleaning()})
	c.janitors = append(c.janitors, j)
	j.Go(func(f *simclient.Fiber) {
		err := j.Open(f)
		if err == nil {
			_, err = j.CleanVolume(f, v)
		}
		c.s.note("janitor cleaned", uint64(c.number), uint64(v), uint64(errs.KindOf(err)))
		switch errs.KindOf(err) {
		case errs.OK:
			c.s.rare("a volume cleaned by a janitor")
		case errs.LeaseLost, errs.StaleEpoch:
			c.s.rare("a janitor that cleans gave way")
		}
		done(err)
		_ = j.Close(f)
	})
}
