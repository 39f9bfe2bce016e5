package read

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"testing"

	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// memory is a volume in memory: one segment per geometry, its shards' bytes and
// headers, and what is wrong with them.
type memory struct {
	r       *rand.Rand
	coders  erasure.Set
	builder *build.Builder
	volume  []byte
	blocks  []place
	shards  map[layout.ShardKey][]byte
	headers map[layout.SegmentID][]*stripe.Header
	dead    map[layout.ShardKey]bool
	rotten  map[layout.ShardKey]map[layout.ShardOffset]bool // blocks
	moved   map[layout.ShardKey]bool                        // answer 'not here' until refreshed
}

func newMemory(r *rand.Rand) *memory {
	m := &memory{r: r, shards: map[layout.ShardKey][]byte{}, headers: map[layout.SegmentID][]*stripe.Header{},
		dead: map[layout.ShardKey]bool{}, rotten: map[layout.ShardKey]map[layout.ShardOffset]bool{}, moved: map[layout.ShardKey]bool{}}
	m.builder = build.New(&m.coders)
	return m
}

// append adds a stripe of random bytes.
func (m *memory) append(t testing.TB, id layout.SegmentID, g layout.Geometry, n layout.BlockCount, seq layout.Seq) {
	t.Helper()
	payload := make([]byte, n.Bytes())
	m.r.Read(payload)
	h := &stripe.Header{Cell: 1, Volume: 2, Segment: id, Geometry: g, Epoch: 3, Seq: seq, Shape: g.ShapeFor(n, seq), Blocks: uint32(n),
		Ranges: []stripe.Range{{Start: layout.BlockNumber(len(m.blocks)), Count: uint32(n), Kind: stripe.Write}}}
	if list := m.headers[id]; len(list) > 0 {
		h.Offset = list[len(list)-1].End()
	}
	u, err := m.builder.Build(h, [][]byte{payload})
	if err != nil {
		t.Fatal(err)
	}
	for s := range layout.ShardIndex(g.Shards()) {
		key := layout.ShardKey{Segment: id, Shard: s}
		unit := bytes.Join(u.Of(s), nil)
		if len(unit) == 0 {
			unit = make([]byte, h.Shape.Unit)
		}
		m.shards[key] = append(m.shards[key], unit...)
	}
	u.Release()
	m.headers[id] = append(m.headers[id], h)
	m.volume = append(m.volume, payload...)
	for i := range n {
		m.blocks = append(m.blocks, place{h, i})
	}
}

// answer is what a chunk server would reply.
func (m *memory) answer(r *Request) (meta, payload []byte, err error) {
	key := layout.ShardKey{Segment: r.Segment, Shard: r.Shard}
	switch {
	case m.dead[key]:
		return nil, nil, errs.New(errs.Unavailable, "", "dead")
	case m.moved[key]:
		return nil, nil, errs.New(errs.NotHere, "", "moved")
	}
	for _, g := range r.Ranges {
		for at := g.Offset; at < g.Offset+layout.ShardOffset(g.Length); at += layout.BlockSize {
			b := bytes.Clone(m.shards[key][at : at+layout.BlockSize])
			meta = binary.LittleEndian.AppendUint32(meta, stripe.BlockCRC(b))
			if m.rotten[key][at] {
				b[m.r.Intn(len(b))] ^= 1
			}
			payload = append(payload, b...)
		}
	}
	if r.Headers {
		meta, err = m.headersOf(r)
	}
	return meta, payload, err
}

func (m *memory) headersOf(r *Request) ([]byte, error) {
	n, meta := uint32(0), make([]byte, 4)
	for _, h := range m.headers[r.Segment] {
		covered := false
		for _, g := range r.Ranges {
			covered = covered || h.Offset < g.Offset+layout.ShardOffset(g.Length) && g.Offset < h.End()
		}
		if covered && h.Participants().Has(r.Shard) {
			own := *h
			own.Shard = r.Shard
			meta = own.AppendTo(meta)
			n++
		}
	}
	binary.LittleEndian.PutUint32(meta, n)
	if len(meta) > frame.MaxMeta {
		return nil, errs.New(errs.TooLarge, "", "%d bytes of headers", len(meta))
	}
	return meta, nil
}

// bad counts the participants of a block's row that can't give it.
func (m *memory) bad(p place) (n int) {
	_, at := p.stripe.Shape.Locate(p.index)
	offset := p.stripe.Offset + layout.ShardOffset(at.Bytes())
	for set := p.stripe.Participants(); set != 0; set &= set - 1 {
		s, _ := set.Nth(0)
		key := layout.ShardKey{Segment: p.stripe.Segment, Shard: s}
		if m.dead[key] || m.rotten[key][offset] {
			n++
		}
	}
	return n
}

// shell carries an Op's actions out over a memory, in random order.
type shell struct {
	*memory
	op     Op
	buffer []byte
	flying []*Request
	bytes  map[*Request][]byte // of good degraded requests
	todo   []func() []Action   // decodes and refreshes under way
	late   bool                // say of some requests that they are late
	spoil  func(r *Request)    // runs after a good reply; nil: nothing does
	lates  int
	sent   int
	over   bool
	err    error
}

// read reads blocks and gives the shell after Done or Fail.
func (m *memory) read(t testing.TB, s *shell, from, to int) {
	t.Helper()
	s.memory, s.buffer, s.bytes, s.over, s.err = m, make([]byte, (to-from)*layout.BlockSize), map[*Request][]byte{}, false, nil
	s.run(t, s.op.Start(1, piecesOf(m.blocks[from:to], 0)))
}

// run goes on until the read has ended.
func (s *shell) run(t testing.TB, actions []Action) {
	t.Helper()
	m := s.memory
	s.carry(t, actions)
	for !s.over {
		switch n := m.r.Intn(len(s.flying) + len(s.todo) + 1); {
		case n < len(s.flying):
			r := s.flying[n]
			s.flying = append(s.flying[:n], s.flying[n+1:]...)
			s.reply(t, r)
		case n < len(s.flying)+len(s.todo):
			n -= len(s.flying)
			f := s.todo[n]
			s.todo = append(s.todo[:n], s.todo[n+1:]...)
			s.carry(t, f())
		case s.late && len(s.flying) > 0:
			s.lates++
			s.carry(t, s.op.Late(s.flying[m.r.Intn(len(s.flying))].ID))
		case len(s.flying)+len(s.todo) == 0:
			t.Fatal("nothing is under way and the read has not ended")
		}
	}
	if len(s.flying) > 0 {
		t.Fatalf("%d requests are under way after the end", len(s.flying))
	}
}

// reply lets a request be answered.
func (s *shell) reply(t testing.TB, r *Request) {
	t.Helper()
	meta, payload, err := s.answer(r)
	bufs := [][]byte{payload}
	if err == nil && !r.Headers {
		bufs = nil
		for _, span := range r.Scatter {
			b := s.buffer[span.Offset : span.Offset+int64(span.Length)]
			payload = payload[copy(b, payload):]
			bufs = append(bufs, b)
		}
	}
	if r.Headers {
		s.bytes[r] = payload
	}
	v := r.Check(meta, bufs, err)
	if s.spoil != nil && v.Err == nil && len(v.Bad) == 0 {
		s.spoil(r)
	}
	s.carry(t, s.op.Replied(r.ID, v))
}

func (s *shell) carry(t testing.TB, actions []Action) {
	t.Helper()
	for _, a := range actions {
		if s.over {
			t.Fatalf("%v follows the end", a)
		}
		switch a.Kind {
		case Send:
			s.sent++
			s.flying = append(s.flying, a.Request)
		case Cancel:
			s.cancel(t, a.Request)
		case Decode:
			s.todo = append(s.todo, func() []Action { return s.decode(t, a.Group) })
		case Refresh:
			s.todo = append(s.todo, func() []Action {
				clear(s.moved)
				return s.op.Refreshed(a.Segment, nil)
			})
		case Done, Fail:
			s.over, s.err = true, a.Err
			s.todo = nil
		}
	}
}

// cancel leaves a half-read reply behind in the buffer.
func (s *shell) cancel(t testing.TB, r *Request) {
	t.Helper()
	for i := range s.flying {
		if s.flying[i] == r {
			s.flying = append(s.flying[:i], s.flying[i+1:]...)
			for _, span := range r.Scatter {
				s.r.Read(s.buffer[span.Offset : span.Offset+int64(span.Length)/2])
			}
			return
		}
	}
	t.Fatalf("request %d is canceled and not under way", r.ID)
}

func (s *shell) decode(t testing.TB, g *Group) []Action {
	t.Helper()
	var units [layout.MaxShards][]byte
	for i, r := range g.Peers() {
		if r != nil {
			units[i] = s.bytes[r]
		}
	}
	coder, err := s.coders.For(g.Geometry())
	if err != nil {
		t.Fatal(err)
	}
	return s.op.Decoded(g, g.Decode(coder, s.buffer, &units))
}
