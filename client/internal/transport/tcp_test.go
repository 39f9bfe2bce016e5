package transport_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"strake/client/internal/transport"
	"strake/client/internal/transport/transporttest"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/frame"
)

// rawServer answers requests with bytes of a test's choice, and says when a
// connection ended.
type rawServer struct {
	addr  string
	ended chan struct{}
}

func serveRaw(t testing.TB, answer func(frame.Request) []byte) *rawServer {
	l := listen(t)
	s := &rawServer{addr: l.Addr().String(), ended: make(chan struct{}, 16)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveRawConn(c, answer)
			s.ended <- struct{}{}
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
	return s
}

func serveRawConn(c net.Conn, answer func(frame.Request) []byte) {
	defer c.Close()
	var header [frame.HeaderLen]byte
	var body []byte
	for {
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return
		}
		req, err := frame.DecodeRequest(header[:])
		if err != nil {
			return
		}
		body = append(body[:0], make([]byte, req.Meta+req.Payload)...)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		b := answer(req)
		if req.Kind == frame.Hello {
			body := frame.HelloReply{Server: 1}
			b = transporttest.Encode(req, frame.Reply{}, body.AppendTo(nil))
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func TestMalformedRepliesBreakTheConnection(t *testing.T) {
	read := frame.Request{Kind: frame.Read}
	for name, c := range map[string]struct {
		change func(b []byte)
		id     uint64
		kind   errs.Kind
	}{
		"magic":       {func(b []byte) { b[0] ^= 1 }, 0, errs.Corrupt},
		"version":     {func(b []byte) { b[2] = 9 }, 0, errs.Version},
		"checksum":    {func(b []byte) { b[60] ^= 1 }, 0, errs.Corrupt},
		"a request":   {func(b []byte) { b[3] &= 0x7F }, 0, errs.Corrupt},
		"huge fields": {func(b []byte) { binary.LittleEndian.PutUint32(b[4:], frame.MaxMeta+1) }, 0, errs.TooLarge},
		"huge bytes":  {func(b []byte) { binary.LittleEndian.PutUint32(b[8:], frame.MaxPayload+1) }, 0, errs.TooLarge},
		"unknown id":  {func([]byte) {}, 1 << 40, errs.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveRaw(t, func(req frame.Request) []byte {
				read.ID = req.ID + c.id
				b := transporttest.Encode(read, frame.Reply{}, nil, make([]byte, 4096))
				c.change(b)
				return b
			})
			err := oneRead(t, transport.NewTCP(tls.Policy{}, transport.Settings{}), s.addr)
			if errs.KindOf(err) != errs.Unavailable || !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want unavailable because of %v", err, c.kind)
			}
		})
	}
}

// oneRead dials, reads 4 KiB and gives the call's error.
func oneRead(t *testing.T, tr transport.Transport, addr string) error {
	t.Helper()
	c, err := tr.Dial(t.Context(), addr, frame.HelloBody{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan struct{})
	call := &transport.Call{Request: frame.Request{Kind: frame.Read}, Into: [][]byte{make([]byte, 4096)}, Done: func(*transport.Call) { close(done) }}
	if err := c.Submit(call); err != nil {
		t.Fatal(err)
	}
	<-done
	return call.Err
}

func TestAnswerBeforeTheRequestIsSentLeavesThePayloadAlone(t *testing.T) {
	// The server reads the header, refuses, and only then reads the rest.
	l := listen(t)
	over := make(chan int64, 1)
	refused := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		n := int64(0)
		for {
			var header [frame.HeaderLen]byte
			if _, err := io.ReadFull(c, header[:]); err != nil {
				break
			}
			req, _ := frame.DecodeRequest(header[:])
			reply, meta := frame.Reply{Status: errs.Overloaded}, []byte(nil)
			if req.Kind == frame.Hello {
				body := frame.HelloReply{Server: 1}
				reply, meta = frame.Reply{}, body.AppendTo(nil)
			}
			_, _ = c.Write(transporttest.Encode(req, reply, meta))
			if req.Kind == frame.Append {
				<-refused
			}
			n, _ = io.CopyN(io.Discard, c, int64(req.Meta+req.Payload))
		}
		over <- n
	}()
	c, err := transport.NewTCP(tls.Policy{}, transport.Settings{}).Dial(t.Context(), l.Addr().String(), frame.HelloBody{})
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, frame.MaxPayload)
	done := make(chan struct{})
	call := &transport.Call{Request: frame.Request{Kind: frame.Append}, Payload: [][]byte{payload}, Done: func(*transport.Call) { close(done) }}
	if err := c.Submit(call); err != nil {
		t.Fatal(err)
	}
	<-done
	if !errors.Is(call.Err, errs.Overloaded) {
		t.Fatalf("got %v, want overloaded", call.Err)
	}
	for i := range payload { // the race detector sees who still reads it
		payload[i] = 1
	}
	close(refused)
	ping := make(chan struct{})
	call = &transport.Call{Request: frame.Request{Kind: frame.Ping}, Done: func(*transport.Call) { close(ping) }}
	if err := c.Submit(call); err != nil {
		t.Fatal(err)
	}
	<-ping
	c.Close()
	if n := <-over; n != 0 {
		t.Fatalf("the stream ended inside a frame, after %d bytes", n)
	}
	l.Close()
}

func TestDialEndsWithItsContext(t *testing.T) {
	l := listen(t)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	_, err := transport.NewTCP(tls.Policy{}, transport.Settings{}).Dial(ctx, l.Addr().String(), frame.HelloBody{})
	if errs.KindOf(err) != errs.Canceled {
		t.Fatalf("got %v, want canceled", err)
	}
}

func TestCountersCountSystemCalls(t *testing.T) {
	s := transporttest.Serve(listen(t), func(req frame.Request, _, _ []byte, reply transport.ReplyFunc) {
		if req.Kind == frame.Hello {
			hello(req, nil, nil, reply)
			return
		}
		reply(frame.Reply{}, nil, make([]byte, 4096))
	})
	defer s.Close()
	tcp := transport.NewTCP(tls.Policy{}, transport.Settings{})
	if err := oneRead(t, tcp, s.Addr()); err != nil {
		t.Fatal(err)
	}
	n := tcp.Counters()
	if n.Calls != 2 || n.Writes != 2 || n.BytesSent != 2*frame.HeaderLen+20 || n.BytesReceived != 2*frame.HeaderLen+12+4096 {
		t.Fatalf("hello and one read: %+v", n)
	}
}
