package janitor

import (
	"bufio"
	"context"
	"io"
	"net"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// callTimeout bounds one request at a source.
const callTimeout = 20 * time.Second

// link is a connection to a chunk server's data plane that carries one request
// at a time. After an error it is of no more use.
type link struct {
	nc     net.Conn
	in     *bufio.Reader
	handle layout.TokenHandle
	id     uint64
	out    []byte // the request's header and meta
	meta   []byte // of the last reply
}

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, addr string) (net.Conn, error)

// connect opens a link and says hello.
func connect(ctx context.Context, dial dialFunc, addr string, cell layout.CellID) (*link, error) {
	nc, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	l := &link{nc: nc, in: bufio.NewReaderSize(nc, 64<<10)}
	hello := frame.HelloBody{Cell: cell}
	meta, err := l.call(ctx, &frame.Request{Kind: frame.Hello}, hello.AppendTo(nil), nil)
	if err == nil {
		var reply frame.HelloReply
		if reply, err = frame.DecodeHelloReply(meta); err == nil {
			l.handle = reply.Handle
			return l, nil
		}
	}
	nc.Close()
	return nil, errs.Wrap(err, "hello to %s", addr)
}

// call sends a request and reads the reply: its meta, valid until the next call,
// and its payload into `into`, which it must fill; a nil `into` takes none. An
// error of kind Canceled, Deadline or Unavailable means a broken link.
func (l *link) call(ctx context.Context, req *frame.Request, meta, into []byte) ([]byte, error) {
	reply, err := l.send(ctx, req, meta)
	if err != nil {
		return nil, broken(ctx, err)
	}
	if reply.Status != errs.OK {
		return nil, frame.DecodeError(reply.Status, l.meta)
	}
	if reply.Payload != len(into) {
		return nil, errs.New(errs.Unavailable, req.Kind.String(), "a payload of %d bytes, want %d", reply.Payload, len(into))
	}
	if _, err := io.ReadFull(l.in, into); err != nil {
		return nil, broken(ctx, err)
	}
	return l.meta, nil
}

// callSized is call for a reply whose payload's length only the reply tells.
func (l *link) callSized(ctx context.Context, req *frame.Request, meta []byte, most int) (head, payload []byte, err error) {
	reply, err := l.send(ctx, req, meta)
	if err != nil {
		return nil, nil, broken(ctx, err)
	}
	if reply.Status != errs.OK {
		return nil, nil, frame.DecodeError(reply.Status, l.meta)
	}
	if reply.Payload > most {
		return nil, nil, errs.New(errs.Unavailable, req.Kind.String(), "a payload of %d bytes, at most %d were asked for", reply.Payload, most)
	}
	payload = make([]byte, reply.Payload)
	if _, err := io.ReadFull(l.in, payload); err != nil {
		return nil, nil, broken(ctx, err)
	}
	return l.meta, payload, nil
}

// send writes a request and reads the reply up to its payload.
func (l *link) send(ctx context.Context, req *frame.Request, meta []byte) (frame.Reply, error) {
	l.id++
	req.ID, req.Token, req.Class = l.id, l.handle, layout.ClassBackground
	l.nc.SetDeadline(time.Now().Add(callTimeout))
	defer context.AfterFunc(ctx, func() { l.nc.SetDeadline(time.Unix(1, 0)) })()
	l.out = append(append(l.out[:0], make([]byte, frame.HeaderLen)...), meta...)
	req.Encode(l.out, meta)
	if _, err := l.nc.Write(l.out); err != nil {
		return frame.Reply{}, err
	}
	var head [frame.HeaderLen]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return frame.Reply{}, err
	}
	reply, err := frame.DecodeReply(head[:])
	if err != nil {
		return reply, err
	}
	if cap(l.meta) < reply.Meta {
		l.meta = make([]byte, reply.Meta)
	}
	l.meta = l.meta[:reply.Meta]
	if _, err := io.ReadFull(l.in, l.meta); err != nil {
		return reply, err
	}
	if reply.ID != l.id || reply.Kind != req.Kind {
		return reply, errs.New(errs.Corrupt, "", "the reply to request %d is one to %d", l.id, reply.ID)
	}
	return reply, frame.Verify(head[:], l.meta)
}

// broken makes an error of the link one that says what ended it.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errs.As(err, errs.Unavailable, "talk to a source")
}

// usable tells whether a link can be used again after an error: a refusal leaves
// it whole.
func usable(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Canceled, errs.Deadline:
		return false
	}
	return true
}
