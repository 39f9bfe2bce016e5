package server

import (
	"encoding/binary"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// smallRead is the longest read that goes through the slab: copied once from the
// page cache, sent together with its neighbours.
const smallRead = 32 << 10

const crcLen = 4

// read serves a Read where it was received, or on a goroutine of its own when it
// would hold up the requests behind it.
func (c *conn) read(r *request) (err error) {
	if r.read, err = frame.DecodeRead(r.meta, r.read.Ranges); err != nil {
		return c.refuse(r, err)
	}
	if r.dev, err = c.srv.devices.find(r.read.Shard); err != nil {
		return c.refuse(r, err)
	}
	n := r.read.Bytes()
	switch {
	case r.Flags&(frame.Recovery|frame.Headers) != 0 || r.dev.reads.expects(n) > inlineRead || !r.free(false, n):
		return c.spawn((*conn).readAside)
	case n > smallRead:
		return c.readLarge(r, n)
	}
	if err := c.room(smallReply(r, n)); err != nil {
		return err
	}
	c.readSmall(r, n, &c.out)
	return nil
}

// readAside serves a read on its own goroutine.
func (c *conn) readAside(r *request, out *batch) {
	n := r.read.Bytes()
	if n <= smallRead && r.Flags&frame.Headers == 0 {
		c.readSmall(r, n, out)
		return
	}
	if err := c.srv.memory.wait(c.srv.ctx, int64(n)); err != nil {
		c.finish(r, out, nil, err)
		return
	}
	c.readPieces(r, n, out)
}

// readLarge serves a large read inline. Replies that wait in the batch are
// written first when memory is short, because they may be what holds it.
func (c *conn) readLarge(r *request, n int) error {
	if !c.srv.memory.try(int64(n)) {
		if err := c.flush(&c.out); err != nil {
			return err
		}
		if err := c.srv.memory.wait(c.srv.ctx, int64(n)); err != nil {
			return c.refuse(r, err)
		}
	}
	if err := c.room(max(errorLen, frame.HeaderLen+n/layout.BlockSize*crcLen)); err != nil {
		c.srv.memory.release(int64(n))
		return err
	}
	c.readPieces(r, n, &c.out)
	return nil
}

// smallReply is how much of the slab the reply to a small read may take.
func smallReply(r *request, n int) int {
	return max(errorLen, frame.HeaderLen+r.metaLen(n)+n)
}

// metaLen is the length of the checksums of a reply of n bytes.
func (r *request) metaLen(n int) int {
	if r.Flags&frame.NoCRCs != 0 {
		return 0
	}
	return n / layout.BlockSize * crcLen
}

// readSmall reads into the slab, right behind the reply's header and checksums.
func (c *conn) readSmall(r *request, n int, out *batch) {
	meta := r.metaLen(n)
	at := out.reserve(frame.HeaderLen + meta + n)
	r.part = r.read
	err := c.readRun(r, at[frame.HeaderLen+meta:])
	if err == nil {
		err = r.checksums(at[frame.HeaderLen : frame.HeaderLen+meta])
	}
	r.served()
	c.judge(r, err)
	if err != nil {
		out.addError(&r.reply, err)
		return
	}
	c.count(r, n, false)
	r.reply.Generation, r.reply.Payload = r.read.Shard.Generation, n
	r.reply.Encode(at, at[frame.HeaderLen:frame.HeaderLen+meta])
	out.commit(len(at))
}

// readPieces reads into buffers of a piece each, then adds the reply and n bytes
// of memory to the batch. Nothing of it is sent before all is read, since a reply
// can't be taken back.
func (c *conn) readPieces(r *request, n int, out *batch) {
	err := c.fillPieces(r, out)
	out.owed += int64(n)
	var meta []byte
	if err == nil {
		meta, err = r.largeMeta(n, out)
	}
	r.served()
	c.judge(r, err)
	if err != nil {
		for _, p := range r.pieces {
			c.srv.pool.put(p.buf)
		}
		out.addError(&r.reply, err)
	} else {
		c.count(r, n, false)
		r.reply.Generation = r.read.Shard.Generation
		out.add(&r.reply, meta, r.pieces)
	}
	clear(r.pieces)
	r.pieces = r.pieces[:0]
}

// readRun reads r.part into dst when the device's turn comes.
func (c *conn) readRun(r *request, dst []byte) error {
	tag := r.tag(false, len(dst))
	tag.Part = r.began
	r.dst = dst
	err := r.turn(c.srv.ctx, tag, r.readWork)
	r.dst = nil
	return err
}

// readPart is the work of a read: it runs in the device's turn.
func (r *request) readPart() {
	from := r.started()
	if r.err = r.permitted(); r.err != nil {
		return
	}
	r.err = r.readInto(r.part.Ranges, r.dst)
	r.dev.reads.measured(len(r.dst), r.ended(from))
}

// readInto reads ranges of the request's shard.
func (r *request) readInto(ranges []frame.ReadRange, dst []byte) error {
	n, err := r.dev.Store.Read(r.read.Shard, ranges, dst)
	if err == nil && n != len(dst) {
		err = errs.New(errs.Internal, "read "+r.read.Shard.String(), "%d bytes, want %d", n, len(dst))
	}
	return err
}

// permitted holds the request's epoch against the shard's fence.
func (r *request) permitted() error {
	if r.Flags&frame.Recovery != 0 {
		return r.dev.Store.CheckRecovery(r.read.Shard, r.Epoch)
	}
	if r.Epoch != 0 {
		return r.dev.Store.CheckReader(r.read.Shard, r.Epoch)
	}
	return nil
}

// checksums writes the checksums of all ranges to dst.
func (r *request) checksums(dst []byte) (err error) {
	if len(dst) == 0 {
		return nil
	}
	if r.crcs, err = r.dev.Store.CRCs(r.read.Shard, r.read.Ranges, r.crcs[:0]); err != nil {
		return err
	}
	if len(r.crcs)*crcLen != len(dst) {
		return errs.New(errs.Internal, "read "+r.read.Shard.String(), "%d checksums for %d bytes of them", len(r.crcs), len(dst))
	}
	for i, v := range r.crcs {
		binary.LittleEndian.PutUint32(dst[i*crcLen:], v)
	}
	return nil
}

// largeMeta makes the meta of a large read: checksums (where the
// reply will stand), or whole headers.
func (r *request) largeMeta(n int, out *batch) ([]byte, error) {
	if r.Flags&frame.Headers != 0 {
		return r.headers()
	}
	meta := out.reserve(frame.HeaderLen + r.metaLen(n))[frame.HeaderLen:]
	return meta, r.checksums(meta)
}

// headers gives the stripe headers that cover the ranges.
func (r *request) headers() ([]byte, error) {
	list, err := r.dev.Store.Headers(r.read.Shard, r.read.Ranges)
	if err != nil {
		return nil, err
	}
	n := 4
	for _, h := range list {
		n += len(h)
	}
	if n > frame.MaxMeta {
		return nil, errs.New(errs.TooLarge, "read "+r.read.Shard.String(), "%d stripe headers of %d bytes cover the ranges, a reply holds %d",
			len(list), n, frame.MaxMeta).WithHint("ask for fewer ranges")
	}
	meta := binary.LittleEndian.AppendUint32(make([]byte, 0, n), uint32(len(list)))
	for _, h := range list {
		meta = append(meta, h...)
	}
	return meta, nil
}
