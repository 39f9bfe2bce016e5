package reconcile

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// world is a state, a planner, and what a shell would do with its tasks.
type world struct {
	t       testing.TB
	state   *state.State
	planner *Planner
	now     time.Duration
	id      state.CommandID
	session layout.SessionID
	cleaned []Clean
}

func newWorld(t testing.TB, limits Limits, servers int) *world {
	w := &world{t: t, state: state.New(), planner: New(limits)}
	w.must(state.FormCell{Cell: 1})
	for i := range servers {
		w.must(state.RegisterServer{UUID: layout.UUID{byte(i + 1)}, Devices: []state.DeviceReport{{UUID: layout.UUID{1, byte(i + 1)}, Total: 1 << 40, Incarnation: 1}}})
	}
	w.newSession()
	return w
}

func (w *world) newSession() { w.session = w.must(state.OpenSession{ID: w.next()}).Session }

func (w *world) next() state.CommandID { w.id++; return w.id }

func (w *world) apply(c state.Command) state.Result {
	r := w.state.Apply(w.state.View().Applied()+1, c)
	if err := w.state.View().Check(); err != nil {
		w.t.Fatalf("%T%+v: %v", c, c, err)
	}
	return r
}

func (w *world) must(c state.Command) state.Result {
	w.t.Helper()
	r := w.apply(c)
	if r.Err != nil {
		w.t.Fatalf("%T%+v: %v", c, c, r.Err)
	}
	return r
}

// create makes a volume and takes its lease.
func (w *world) create(name string) layout.VolumeID {
	id := w.must(state.CreateVolume{ID: w.next(), Name: name, SizeBytes: 1 << 20, Geometry: layout.Geometry{K: 1, M: 1}}).Volume
	w.must(state.AcquireLease{ID: w.next(), Session: w.session, Volume: state.VolumeRef{ID: id}})
	return id
}

func (w *world) allocate(v layout.VolumeID, devices ...layout.DeviceID) layout.SegmentID {
	vol, _ := w.state.View().Volume(v)
	r := w.must(state.AllocateSegments{ID: w.next(), Session: vol.Holder, Volume: v, Epoch: vol.Epoch, Count: 1,
		Placed: []state.PlacedSegment{{Geometry: vol.Geometry, ShardLength: 4 << 20, Devices: devices}}})
	return r.Segments[0]
}

// sealed is a seal of n stripes after the volume's last.
func (w *world) sealed(id layout.SegmentID, n uint32) state.Seal {
	s, _ := w.state.View().Segment(id)
	v, _ := w.state.View().Volume(s.Volume)
	seal := state.Seal{Segment: id, Shards: make([]state.ShardSeal, s.Geometry.Shards())}
	if n == 0 {
		return seal
	}
	seal.First, seal.Last, seal.Count = v.LastSeq+1, v.LastSeq+layout.Seq(n), n
	for i := range seal.Shards {
		seal.Shards[i] = state.ShardSeal{Count: n, Length: 4096, Digest: [16]byte{byte(id)}}
	}
	return seal
}

// do carries a task out as the shell would, with every shard answering.
func (w *world) do(t Task) {
	switch t := t.(type) {
	case MarkServer:
		w.apply(state.SetServerState{Server: t.Server, Up: t.Up, Registered: t.Registered})
	case ExpireSession:
		w.must(state.ExpireSession{Session: t.Session})
	case GiveBack:
		w.apply(state.DropSegments{Segments: []layout.SegmentID{t.Segment}})
	case Recover:
		w.recover(t.Volume)
	case Finalize:
		w.apply(state.MarkFinalized{Segments: []layout.SegmentID{t.Segment}})
	case Delete:
		w.must(state.MarkDeleted{Segments: []layout.SegmentID{t.Segment}})
	case GiveUp:
		w.apply(state.ChangeDevices{Devices: []layout.DeviceID{t.Device}, Change: state.GiveUpDevice, Registered: t.Registered})
	case Rebuild:
		w.rebuild(t)
	case EndRebalance:
		w.must(state.Rebalance{Began: t.Began, Why: t.Why})
	case Clean:
		w.cleaned = append(w.cleaned, t)
	case Flatten:
		w.must(state.FlattenVolume{Volume: state.VolumeRef{ID: t.Volume}})
	case Purge:
		w.apply(state.PurgeVolume{Volume: t.Volume})
	default:
		w.t.Fatalf("unknown task %T", t)
	}
}

// recover is a janitor: it takes the lease, finds every segment empty, closes
// the epoch and releases the lease.
func (w *world) recover(id layout.VolumeID) {
	session := w.must(state.OpenSession{ID: w.next(), Janitor: true}).Session
	defer func() { w.must(state.CloseSession{Session: session}) }()
	r := w.apply(state.AcquireLease{ID: w.next(), Session: session, Volume: state.VolumeRef{ID: id}})
	if r.Err != nil {
		return
	}
	c := state.CloseEpoch{Volume: id, Epoch: r.Epoch, Cut: r.Open.Volume.LastSeq}
	for _, s := range r.Open.Segments {
		if s.Unsealed() {
			c.Seals = append(c.Seals, w.sealed(s.ID, 0))
		}
	}
	w.must(c)
	w.must(state.ReleaseLease{Session: session, Volume: id, Epoch: r.Epoch, LastSeq: c.Cut})
}

// disturb does one random thing that a cell sees.
func (w *world) disturb(rnd *rand.Rand, volumes *[]layout.VolumeID) {
	view := w.state.View()
	if len(*volumes) < 4 || rnd.Intn(20) == 0 {
		if _, ok := view.Session(w.session); !ok {
			w.newSession()
		}
		*volumes = append(*volumes, w.create(fmt.Sprintf("v%d", len(*volumes))))
		return
	}
	id := (*volumes)[rnd.Intn(len(*volumes))]
	v, ok := view.Volume(id)
	if !ok || v.Removed {
		return
	}
	page, _ := view.Unsealed(id, 0, 0)
	switch n := rnd.Intn(12); {
	case n < 4 && v.Holder != 0:
		d := rnd.Intn(4)
		w.allocate(id, layout.DeviceID(1+d), layout.DeviceID(1+(d+1)%4))
	case n < 6 && len(page) > 0:
		w.apply(state.OpenSegments{Segments: []layout.SegmentID{page[0].ID}})
	case n < 8 && len(page) > 0:
		w.apply(state.SealSegments{Volume: id, Epoch: v.Epoch, Seals: []state.Seal{w.sealed(page[0].ID, uint32(rnd.Intn(3)))}})
	case n < 9:
		w.apply(state.RemoveVolume{ID: w.next(), Volume: state.VolumeRef{ID: id}, Now: rnd.Intn(2) == 0})
	case n < 10:
		w.apply(state.ExpireSession{Session: w.session})
	case n < 11:
		w.apply(state.SetServerState{Server: layout.ServerID(1 + rnd.Intn(4)), Up: rnd.Intn(2) == 0})
	}
}

// rebuild is what the shell does once the target has proved the shard.
func (w *world) rebuild(t Rebuild) {
	if t.InPlace {
		w.apply(state.MarkSound{Shards: []state.ShardAt{{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation}}})
		return
	}
	w.apply(state.ReplaceShard{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation, Device: t.Device})
}
