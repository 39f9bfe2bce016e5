package server

import (
	"cmp"
	"context"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// request is one request from its receipt to its reply. Requests are reused, with
// all they have allocated. A request belongs to one goroutine at a time: the
// connection's, or the one it was handed to.
type request struct {
	frame.Request
	received time.Time
	meta     []byte // in the connection's input; valid on its goroutine until the next request

	dev         *device
	read        frame.ReadBody // Ranges is reused
	part        frame.ReadBody // what work reads: all of a small read, else one quantum
	one         [1]frame.ReadRange
	shards      []frame.ShardRef // of a sync
	incarnation layout.Incarnation
	admitted    bool    // the scheduler was told of the unit and is to be told of its end
	held        *buffer // that the unit's payload is in, when it is not in the input
	header      []byte  // copy of the unit's header, for the lane
	unit        store.Append
	sums        []uint32 // of the unit's blocks
	listed      frame.ListBody
	crcs        []uint32
	pieces      []piece
	dst         []byte // where work reads to
	reply       frame.Reply
	began       bool // a turn at the device has begun
	quanta      quanta
	beside      beside
	turns       turns
	err         error // of the work

	// Work for the scheduler, made once so that no call of it allocates.
	readWork, storeWork func()
	sumWork             func(p []byte)
}

func newRequest() *request {
	r := &request{}
	r.readWork, r.storeWork, r.sumWork = r.readPart, r.storeUnit, r.sumUp
	r.beside.work = r.readBeside
	return r
}

// begin prepares a request for the frame that was received.
func (r *request) begin(h frame.Request, received time.Time) {
	r.Request, r.received = h, received
	r.dev, r.err, r.read.Ranges = nil, nil, r.read.Ranges[:0]
	r.reply = frame.Reply{Kind: h.Kind, ID: h.ID}
	r.began, r.admitted = false, false
}

// deadline is when an answer has become useless; zero: never.
func (r *request) deadline() time.Time {
	if r.Deadline == 0 {
		return time.Time{}
	}
	return r.received.Add(r.Deadline)
}

// late refuses a request whose deadline has passed before anything was done.
func (r *request) late() error {
	if r.Deadline == 0 || time.Since(r.received) <= r.Deadline {
		return nil
	}
	return errs.New(errs.Deadline, r.Kind.String(), "the deadline of %v passed in the server's queue", r.Deadline)
}

// tag tells the scheduler about n bytes of this request.
func (r *request) tag(write bool, n int) sched.Tag {
	return sched.Tag{Class: r.Class, Tenant: cmp.Or(r.Tenant, layout.DefaultTenantID), Write: write, Service: r.service(), Bytes: n, Deadline: r.deadline()}
}

// service tells a request that no user of its class made: lists of headers, which
// every volume's opening asks for, and reads that nobody will look at, which probe a
// server. They come in the class for inference, to be served soon; would they count
// as use of it, whoever writes beside would do so in the shortest pieces for a while.
func (r *request) service() bool {
	return r.Kind == frame.List || r.Kind == frame.Read && r.Flags&frame.NoCRCs != 0
}

// free tells whether n bytes would have the device's turn at once. Work that has
// to wait does so aside, where it holds up no other request of its connection.
func (r *request) free(write bool, n int) bool { return r.dev.Sched.Free(r.tag(write, n)) }

// turn runs work when the device's turn comes, and gives its error.
func (r *request) turn(ctx context.Context, tag sched.Tag, work func()) error {
	if err := r.dev.Sched.Do(ctx, tag, work); err != nil {
		return errs.Wrap(err, "%v", r.Kind)
	}
	return r.err
}

// started takes the time when the device's turn came; the first turn ends the
// time in the queue.
func (r *request) started() time.Time {
	now := time.Now()
	if !r.began {
		r.began, r.reply.Queue = true, now.Sub(r.received)
	}
	return now
}

// ended adds the turn that started at from to the time at the device.
func (r *request) ended(from time.Time) time.Duration {
	took := time.Since(from)
	r.reply.Service += took
	return took
}

// served fills in what a reply says of the device.
func (r *request) served() {
	if r.dev != nil {
		r.reply.Incarnation = r.dev.Store.Incarnation()
		r.reply.Load = uint32(r.dev.Sched.Load())
		if r.Kind == frame.Read && r.Class != layout.ClassBackground && !r.service() {
			r.dev.noteRead(r.received)
		}
		r.reply.Reading = r.dev.reading(r.received)
	}
}
