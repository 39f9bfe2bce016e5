package transporttest

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

func payloadIsGatheredAndScattered(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	for _, sizes := range [][]int{{4096}, {1, 4095}, {0, 4096, 0}, {4096, 8192, 4096}, {1 << 20}, {300 << 10, 1, 700<<10 - 1}, slices.Repeat([]int{4096}, 1500)} {
		var into [][]byte
		for _, n := range sizes {
			into = append(into, make([]byte, n))
		}
		call, done := readCall(8192, into...)
		submit(t, c, call)
		<-done
		wantRead(t, call, 8192)
		if call.Reply.Incarnation != 3 || call.Reply.Generation != 5 || string(call.ReplyMeta) != "crcs" {
			t.Fatalf("reply %+v, meta %q", call.Reply, call.ReplyMeta)
		}
	}
}

func requestArrivesWhole(t *testing.T, start Start) {
	type arrived struct {
		req           frame.Request
		meta, payload []byte
	}
	got := make(chan arrived, 1)
	c := dial(t, start, func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		got <- arrived{req, bytes.Clone(meta), bytes.Clone(payload)}
		reply(frame.Reply{}, nil)
	}, 0)
	for _, n := range []int{0, 1, 4096, 8 << 20} {
		want := content(1, n)
		done := make(chan struct{})
		call := &transport.Call{
			Request: frame.Request{Kind: frame.Append, Class: 2, Flags: frame.Durable, Epoch: 4, Acked: 5, Flushed: 6, Tenant: 7, Token: 8},
			Meta:    content(2, 100), Payload: [][]byte{want[:n/3], nil, want[n/3:]},
			Done: func(*transport.Call) { close(done) },
		}
		submit(t, c, call)
		a := <-got
		<-done
		if a.req.ID = call.Request.ID; a.req != call.Request || !bytes.Equal(a.meta, call.Meta) || !bytes.Equal(a.payload, want) {
			t.Fatalf("%d bytes: arrived %+v with %d and %d bytes", n, a.req, len(a.meta), len(a.payload))
		}
	}
}

func repliesComeInAnyOrder(t *testing.T, start Start) {
	var mu sync.Mutex
	var waiting []func()
	const n = 50
	c := dial(t, start, func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		mu.Lock()
		defer mu.Unlock()
		meta = bytes.Clone(meta)
		waiting = append(waiting, func() { store(req, meta, payload, reply) })
		if len(waiting) == n {
			slices.Reverse(waiting)
			for _, f := range waiting {
				f()
			}
		}
	}, 0)
	var calls []*transport.Call
	var dones []chan struct{}
	for i := range n {
		call, done := readCall(layout.ShardOffset(i)*4096, make([]byte, 4096+i%3*60<<10))
		calls, dones = append(calls, call), append(dones, done)
		submit(t, c, call)
	}
	for i := range calls {
		<-dones[i]
		wantRead(t, calls[i], layout.ShardOffset(i)*4096)
	}
}

func errorRepliesAreTyped(t *testing.T, start Start) {
	c := dial(t, start, func(_ frame.Request, _, _ []byte, reply transport.ReplyFunc) {
		reply.Refuse(errs.New(errs.StaleEpoch, "append", "epoch 4 is fenced").WithHint("stop"))
	}, 0)
	call, done := readCall(0, make([]byte, 4096))
	submit(t, c, call)
	<-done
	wantKind(t, call.Err, errs.StaleEpoch)
	if errs.HintOf(call.Err) != "stop" {
		t.Fatalf("hint %q lost", errs.HintOf(call.Err))
	}
	if c.Err() != nil {
		t.Fatalf("an error reply broke the connection: %v", c.Err())
	}
}

func errorReplyPayloadIsThrownAway(t *testing.T, start Start) {
	c := dial(t, start, func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		if body, _ := frame.DecodeRead(meta, nil); body.Ranges[0].Offset == 0 {
			reply(frame.Reply{Status: errs.Corrupt}, nil, content(3, 200<<10))
			return
		}
		store(req, meta, payload, reply)
	}, 0)
	into := make([]byte, 4096)
	call, done := readCall(0, into)
	submit(t, c, call)
	<-done
	wantKind(t, call.Err, errs.Corrupt)
	if !bytes.Equal(into, make([]byte, 4096)) {
		t.Fatal("an error reply's payload was written into the caller's buffer")
	}
	call, done = readCall(4096, into)
	submit(t, c, call)
	<-done
	wantRead(t, call, 4096)
}

func listMayBeShort(t *testing.T, start Start) {
	c := dial(t, start, func(_ frame.Request, _, _ []byte, reply transport.ReplyFunc) {
		reply(frame.Reply{}, nil, content(0, 100))
	}, 0)
	done := make(chan struct{})
	call := &transport.Call{Request: frame.Request{Kind: frame.List}, Into: [][]byte{make([]byte, 60), make([]byte, 60)}, Done: func(*transport.Call) { close(done) }}
	submit(t, c, call)
	<-done
	if got := bytes.Join(call.Into, nil); call.Err != nil || call.Reply.Payload != 100 || !bytes.Equal(got[:100], content(0, 100)) {
		t.Fatalf("list of %d bytes: %v", call.Reply.Payload, call.Err)
	}
}

func wrongLengthBreaksTheConnection(t *testing.T, start Start) {
	for _, n := range []int{0, 4095, 4097, 1 << 20} {
		c := dial(t, start, func(_ frame.Request, _, _ []byte, reply transport.ReplyFunc) {
			reply(frame.Reply{}, nil, make([]byte, n))
		}, 0)
		call, done := readCall(0, make([]byte, 4096))
		submit(t, c, call)
		<-done
		wantKind(t, call.Err, errs.Unavailable)
		wantKind(t, c.Err(), errs.Unavailable)
		if err := c.Submit(call); err == nil {
			t.Fatal("a broken connection took a call")
		}
	}
}

func callIsUsedAgain(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	call, done := readCall(0, make([]byte, 4096))
	for i := range 200 {
		offset := layout.ShardOffset(i) * 4096
		body := frame.ReadBody{Ranges: []frame.ReadRange{{Offset: offset, Length: 4096}}}
		call.Meta = body.AppendTo(call.Meta[:0])
		submit(t, c, call)
		<-done
		wantRead(t, call, offset)
	}
}

func tooLargeIsRefused(t *testing.T, start Start) {
	c := dial(t, start, store, 64<<20)
	call := &transport.Call{Request: frame.Request{Kind: frame.Append}, Meta: make([]byte, frame.MaxMeta+1), Done: func(*transport.Call) { t.Error("done") }}
	wantKind(t, c.Submit(call), errs.TooLarge)
	call.Meta, call.Payload = nil, [][]byte{make([]byte, frame.MaxPayload), {1}}
	wantKind(t, c.Submit(call), errs.TooLarge)
}
