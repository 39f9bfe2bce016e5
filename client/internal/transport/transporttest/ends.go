package transporttest

import (
	"bytes"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// silent answers nothing but offset 0.
func silent(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
	if body, err := frame.DecodeRead(meta, nil); err == nil && body.Ranges[0].Offset == 0 {
		store(req, meta, payload, reply)
	}
}

// settle waits until the server has seen all that was submitted before.
func settle(t testing.TB, c transport.Conn) {
	t.Helper()
	call, done := readCall(0, make([]byte, 4096))
	submit(t, c, call)
	<-done
	wantRead(t, call, 0)
}

func cancelGivesBuffersBack(t *testing.T, start Start) {
	held := make(chan func(), 1)
	c := dial(t, start, func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		if body, _ := frame.DecodeRead(meta, nil); body.Ranges[0].Offset == 0 {
			store(req, meta, payload, reply)
			return
		}
		meta = bytes.Clone(meta)
		held <- func() { store(req, meta, payload, reply) }
	}, 0)
	into := make([]byte, 1<<20)
	call, done := readCall(4096, into)
	submit(t, c, call)
	settle(t, c)
	c.Cancel(call)
	select {
	case <-done:
	default:
		t.Fatal("cancel returned before done had run")
	}
	wantKind(t, call.Err, errs.Canceled)
	(<-held)()
	settle(t, c)
	if !bytes.Equal(into, make([]byte, 1<<20)) {
		t.Fatal("a reply was written into a buffer that cancel had given back")
	}
}

func cancelAfterDoneIsHarmless(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	call, done := readCall(0, make([]byte, 4096))
	c.Cancel(call) // never submitted
	submit(t, c, call)
	<-done
	c.Cancel(call)
	wantRead(t, call, 0)
	if len(done) != 0 {
		t.Fatal("done ran twice")
	}
}

func doneMayCancelOthers(t *testing.T, start Start) {
	c := dial(t, start, silent, 0)
	loser, lost := readCall(4096, make([]byte, 4096))
	submit(t, c, loser)
	winner, _ := readCall(0, make([]byte, 4096))
	won := make(chan struct{})
	winner.Done = func(*transport.Call) {
		c.Cancel(loser)
		close(won)
	}
	submit(t, c, winner)
	<-won
	<-lost
	wantKind(t, loser.Err, errs.Canceled)
}

func closeFailsCallsUnderWay(t *testing.T, start Start) {
	c := dial(t, start, silent, 0)
	var done atomic.Int32
	for range 100 {
		call, _ := readCall(4096, make([]byte, 4096))
		call.Done = func(call *transport.Call) {
			if errs.KindOf(call.Err) == errs.Unavailable {
				done.Add(1)
			}
		}
		submit(t, c, call)
	}
	c.Close()
	if done.Load() != 100 {
		t.Fatalf("%d of 100 calls failed with unavailable before close returned", done.Load())
	}
	call, _ := readCall(0, make([]byte, 4096))
	wantKind(t, c.Submit(call), errs.Unavailable)
	c.Close()
}

func windowOverflowIsRefused(t *testing.T, start Start) {
	c := dial(t, start, silent, 1<<20)
	if c.Window() != 1<<20 {
		t.Fatalf("window %d, want 1 MiB", c.Window())
	}
	first, done := readCall(4096, make([]byte, 1<<20-4096))
	submit(t, c, first)
	second, _ := readCall(4096, make([]byte, 8192))
	wantKind(t, c.Submit(second), errs.Overloaded)
	settle(t, c)
	out := &transport.Call{Request: frame.Request{Kind: frame.Append}, Payload: [][]byte{make([]byte, 1<<20)}, Done: func(*transport.Call) {}}
	submit(t, c, out)
	again := &transport.Call{Request: frame.Request{Kind: frame.Append}, Payload: [][]byte{{1}}, Done: func(*transport.Call) {}}
	wantKind(t, c.Submit(again), errs.Overloaded)
	c.Close()
	<-done
}

func manyCallersEachAnsweredOnce(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	const callers, rounds = 64, 20
	var answered atomic.Int64
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewSource(int64(g)))
			call, done := readCall(0)
			count := call.Done
			call.Done = func(call *transport.Call) { answered.Add(1); count(call) }
			for range rounds {
				n := 4096 << r.Intn(6)
				offset := layout.ShardOffset(r.Intn(1000)) * 4096
				body := frame.ReadBody{Ranges: []frame.ReadRange{{Offset: offset, Length: uint32(n)}}}
				call.Meta, call.Into = body.AppendTo(call.Meta[:0]), [][]byte{make([]byte, n/2), make([]byte, n/2)}
				if err := c.Submit(call); err != nil {
					t.Error(err)
					return
				}
				<-done
				if got := bytes.Join(call.Into, nil); call.Err != nil || !bytes.Equal(got, content(offset, n)) {
					t.Errorf("read at %d: %v, or wrong bytes", offset, call.Err)
				}
			}
		})
	}
	wg.Wait()
	if answered.Load() != callers*rounds {
		t.Fatalf("%d answers to %d calls", answered.Load(), callers*rounds)
	}
}

// randomCancelsNeverTouchBuffers writes over buffers as soon as Cancel returned;
// the race detector sees who else still uses them.
func randomCancelsNeverTouchBuffers(t *testing.T, start Start) {
	c := dial(t, start, func(req frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		if req.Kind == frame.Append {
			if len(payload) > 0 && !bytes.Equal(payload, bytes.Repeat(payload[:1], len(payload))) {
				t.Error("a canceled call's frame arrived with bytes of a later use of its buffer")
			}
			reply(frame.Reply{}, nil)
			return
		}
		store(req, meta, payload, reply)
	}, 0)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() { cancelLoop(t, c, rand.New(rand.NewSource(int64(g)))) })
	}
	wg.Wait()
	if c.Err() != nil {
		t.Fatalf("cancel broke the connection: %v", c.Err())
	}
	settle(t, c)
}

func cancelLoop(t *testing.T, c transport.Conn, r *rand.Rand) {
	buf := make([]byte, 128<<10)
	call := &transport.Call{}
	done := make(chan struct{}, 1)
	for i := range 60 {
		n := 4096 * (1 + r.Intn(32))
		body := frame.ReadBody{Ranges: []frame.ReadRange{{Offset: 4096, Length: uint32(n)}}}
		call.Request, call.Meta = frame.Request{Kind: frame.Read}, body.AppendTo(nil)
		call.Into, call.Payload = [][]byte{buf[:n]}, nil
		call.Done = func(*transport.Call) { done <- struct{}{} }
		if r.Intn(2) == 0 {
			call.Request.Kind, call.Into, call.Payload = frame.Append, nil, [][]byte{buf[:n]}
		}
		for j := range buf {
			buf[j] = byte(i)
		}
		if err := c.Submit(call); err != nil {
			t.Error(err)
			return
		}
		if r.Intn(3) > 0 {
			c.Cancel(call)
		}
		<-done
		clear(buf)
	}
}

func closeUnderLoadFailsEachOnce(t *testing.T, start Start) {
	c := dial(t, start, store, 0)
	var submitted, ended atomic.Int64
	var wg sync.WaitGroup
	started := make(chan struct{}, 32)
	for range 32 {
		wg.Go(func() {
			for i := 0; ; i++ {
				call, done := readCall(4096, make([]byte, 64<<10))
				count := call.Done
				call.Done = func(call *transport.Call) { ended.Add(1); count(call) }
				if c.Submit(call) != nil {
					return
				}
				submitted.Add(1)
				if i == 0 {
					started <- struct{}{}
				}
				<-done
			}
		})
	}
	for range 32 {
		<-started
	}
	c.Close()
	wg.Wait()
	if submitted.Load() != ended.Load() {
		t.Fatalf("%d calls were taken, %d ended", submitted.Load(), ended.Load())
	}
}
