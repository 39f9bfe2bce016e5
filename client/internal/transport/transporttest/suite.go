package transporttest

import (
	"bytes"
	"errors"
	"testing"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Start starts a server with a handler and gives a transport that reaches it
// under the address. All ends with the test.
type Start func(t testing.TB, h transport.Handler, window int) (tr transport.Transport, addr string)

// Run runs the whole suite.
func Run(t *testing.T, start Start) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Start)
	}{
		{"HelloIsAnsweredOrRefused", helloIsAnsweredOrRefused},
		{"RefusedAddressIsUnavailable", refusedAddressIsUnavailable},
		{"PayloadIsGatheredAndScattered", payloadIsGatheredAndScattered},
		{"RequestArrivesWhole", requestArrivesWhole},
		{"RepliesComeInAnyOrder", repliesComeInAnyOrder},
		{"ErrorRepliesAreTyped", errorRepliesAreTyped},
		{"ErrorReplyPayloadIsThrownAway", errorReplyPayloadIsThrownAway},
		{"ListMayBeShort", listMayBeShort},
		{"WrongLengthBreaksTheConnection", wrongLengthBreaksTheConnection},
		{"CancelGivesBuffersBack", cancelGivesBuffersBack},
		{"CancelAfterDoneIsHarmless", cancelAfterDoneIsHarmless},
		{"DoneMayCancelOthers", doneMayCancelOthers},
		{"CloseFailsCallsUnderWay", closeFailsCallsUnderWay},
		{"WindowOverflowIsRefused", windowOverflowIsRefused},
		{"TooLargeIsRefused", tooLargeIsRefused},
		{"CallIsUsedAgain", callIsUsedAgain},
		{"ManyCallersEachAnsweredOnce", manyCallersEachAnsweredOnce},
		{"RandomCancelsNeverTouchBuffers", randomCancelsNeverTouchBuffers},
		{"CloseUnderLoadFailsEachOnce", closeUnderLoadFailsEachOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, start) })
	}
}

// welcome answers hello and leaves the rest to h.
func welcome(h transport.Handler) transport.Handler {
	return func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		if req.Kind == frame.Hello {
			hello := frame.HelloReply{Server: 7, Handle: 9}
			reply(frame.Reply{}, hello.AppendTo(nil))
			return
		}
		h(req, meta, payload, reply)
	}
}

func dial(t testing.TB, start Start, h transport.Handler, window int) transport.Conn {
	t.Helper()
	tr, addr := start(t, welcome(h), window)
	c, err := tr.Dial(t.Context(), addr, frame.HelloBody{Cell: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// readCall asks for one range; the answer of store is known.
func readCall(offset layout.ShardOffset, into ...[]byte) (*transport.Call, chan struct{}) {
	n := 0
	for _, p := range into {
		n += len(p)
	}
	body := frame.ReadBody{Ranges: []frame.ReadRange{{Offset: offset, Length: uint32(n)}}}
	done := make(chan struct{}, 1)
	return &transport.Call{
		Request: frame.Request{Kind: frame.Read}, Meta: body.AppendTo(nil), Into: into,
		Done: func(*transport.Call) { done <- struct{}{} },
	}, done
}

// store answers reads with bytes that follow from their place, and a checksum.
func store(req frame.Request, meta, _ []byte, reply transport.ReplyFunc) {
	body, err := frame.DecodeRead(meta, nil)
	if err != nil {
		reply.Refuse(err)
		return
	}
	var payload [][]byte
	for _, r := range body.Ranges {
		payload = append(payload, content(r.Offset, int(r.Length)))
	}
	reply(frame.Reply{Incarnation: 3, Generation: 5}, []byte("crcs"), payload...)
}

// content is what store holds at a place: a pattern whose phase is the place's.
func content(offset layout.ShardOffset, n int) []byte {
	b := make([]byte, n)
	for i := range b[:min(n, 251)] {
		b[i] = byte(int64(i)*7 + int64(offset)>>12*31 + int64(offset)>>18)
	}
	for have := 251; have < n; have *= 2 {
		copy(b[have:], b[:have])
	}
	return b
}

func submit(t testing.TB, c transport.Conn, call *transport.Call) {
	t.Helper()
	if err := c.Submit(call); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t testing.TB, call *transport.Call, offset layout.ShardOffset) {
	t.Helper()
	if call.Err != nil {
		t.Fatalf("read at %d: %v", offset, call.Err)
	}
	got := bytes.Join(call.Into, nil)
	if !bytes.Equal(got, content(offset, len(got))) {
		t.Fatalf("read at %d: wrong bytes", offset)
	}
}

func wantKind(t testing.TB, err error, kind errs.Kind) {
	t.Helper()
	if errs.KindOf(err) != kind {
		t.Fatalf("got %v (%v), want %v", err, errs.KindOf(err), kind)
	}
}

func helloIsAnsweredOrRefused(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	if got, want := c.Peer(), (frame.HelloReply{Server: 7, Handle: 9}); got != want {
		t.Fatalf("peer %+v, want %+v", got, want)
	}
	tr, addr := start(t, func(_ frame.Request, _, _ []byte, reply transport.ReplyFunc) {
		reply.Refuse(errs.New(errs.WrongCell, "", "this is cell 2"))
	}, 0)
	_, err := tr.Dial(t.Context(), addr, frame.HelloBody{Cell: 1})
	wantKind(t, err, errs.WrongCell)
}

func refusedAddressIsUnavailable(t *testing.T, start Start) {
	tr, _ := start(t, store, 0)
	_, err := tr.Dial(t.Context(), "127.0.0.1:1", frame.HelloBody{})
	if !errors.Is(err, errs.Unavailable) {
		t.Fatalf("got %v, want unavailable", err)
	}
}
