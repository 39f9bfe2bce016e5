package meta

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"strake/internal/errs"
	"strake/proto/pb"
)

// writer is a session that holds a volume.
type writer struct {
	c       *apiClient
	session uint64
	volume  uint64
	epoch   uint64
	next    uint64 // command ids
}

// chunks starts n fake chunk servers at a cell of one metadata server.
func chunks(t *testing.T, n int) (*node, *apiClient, []*fakeChunk) {
	t.Helper()
	meta := cell(t, 1)[0]
	c := api(t, meta)
	var list []*fakeChunk
	for i := range n {
		list = append(list, startChunk(t, c, byte(i+1)))
	}
	return meta, c, list
}

// write creates a volume and takes its lease.
func write(c *apiClient, name string, k, m uint32) *writer {
	c.t.Helper()
	w := &writer{c: c, next: uint64(len(name)) << 32}
	w.volume = must(c, pb.MetaClient.CreateVolume, &pb.CreateVolumeRequest{
		Command: w.command(), Name: name, SizeBytes: 1 << 30, Geometry: &pb.Geometry{K: k, M: m},
	}).Volume.Id
	w.session = must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: w.command(), Owner: "test"}).Session
	w.epoch = must(c, pb.MetaClient.AcquireLease, &pb.AcquireLeaseRequest{Command: w.command(), Session: w.session, Name: name}).Epoch
	return w
}

func (w *writer) command() uint64 {
	w.next++
	return w.next
}

func (w *writer) request(count uint32) *pb.AllocateSegmentsRequest {
	return &pb.AllocateSegmentsRequest{Command: w.command(), Session: w.session, Volume: w.volume, Epoch: w.epoch, Count: count}
}

// keep renews the session while the test runs.
func (w *writer) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			call(w.c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: w.session, WaitMs: 100})
		}
	}()
	w.c.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func seal(seg *pb.Segment, first, last uint64, count uint32) *pb.Seal {
	s := &pb.Seal{Segment: seg.Id, FirstSeq: first, LastSeq: last, Count: count}
	for range seg.Placements {
		s.Shards = append(s.Shards, &pb.ShardSeal{Count: count, Length: 4096, Digest: make([]byte, 16)})
	}
	return s
}

func TestSegmentsAreAllocatedSealedFinalizedAndDeleted(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	w.keep()
	req := w.request(2)
	first := must(c, pb.MetaClient.AllocateSegments, req)
	if len(first.Segments) != 2 || len(first.Servers) != 3 {
		t.Fatalf("got %d segments on %d servers", len(first.Segments), len(first.Servers))
	}
	again := must(c, pb.MetaClient.AllocateSegments, req)
	if len(again.Segments) != 2 || again.Segments[0].Id != first.Segments[0].Id {
		t.Fatalf("the repeat gave %v", again.Segments)
	}
	used := first.Segments[0]
	must(c, pb.MetaClient.SealSegments, &pb.SealSegmentsRequest{
		Command: w.command(), Volume: w.volume, Epoch: w.epoch, Seals: []*pb.Seal{seal(used, 1, 3, 3)},
	})
	eventually(t, "the shards took the seal", func() bool {
		got := must(c, pb.MetaClient.GetSegments, &pb.GetSegmentsRequest{Ids: []uint64{used.Id}})
		return got.Segments[0].Finalized && servers[0].count("finalized") == 1
	})
	must(c, pb.MetaClient.ReleaseLease, &pb.ReleaseLeaseRequest{Command: w.command(), Session: w.session, Volume: w.volume, Epoch: w.epoch, LastSeq: 3})
	eventually(t, "the unused segment is gone", func() bool {
		got := must(c, pb.MetaClient.ListSegments, &pb.ListSegmentsRequest{Volume: w.volume})
		return len(got.Segments) == 1 && servers[0].count("deleted") == 1
	})
	must(c, pb.MetaClient.RemoveVolume, &pb.RemoveVolumeRequest{Command: w.command(), Name: "a", Now: true})
	eventually(t, "all shards are gone", func() bool {
		return servers[0].count("deleted") == 2 && must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Segments == 0
	})
}

func TestAServerThatCantCreateIsLeftOut(t *testing.T) {
	_, c, servers := chunks(t, 4)
	w := write(c, "a", 2, 1)
	w.keep()
	servers[0].setRefuse(errs.NoSpace)
	got := must(c, pb.MetaClient.AllocateSegments, w.request(1))
	for _, p := range got.Segments[0].Placements {
		if p.Server == servers[0].id {
			t.Fatalf("placed on the server that refuses: %v", got.Segments[0])
		}
	}
	for _, s := range servers {
		s.setRefuse(errs.NoSpace)
	}
	if _, err := call(c, pb.MetaClient.AllocateSegments, w.request(1)); errs.KindOf(err) != errs.NoSpace {
		t.Fatalf("a full cell: got %v", err)
	}
	for _, s := range servers {
		s.setRefuse(errs.OK)
	}
	must(c, pb.MetaClient.AllocateSegments, w.request(1))
}

// TestARepeatThatFailsGivesWhatTheFirstCallOpened: the writer repeats a call that takes
// long; the repeat can't make a shard, and the first call opens the segment meanwhile.
func TestARepeatThatFailsGivesWhatTheFirstCallOpened(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	w.keep()
	type reply struct {
		got *pb.AllocateSegmentsReply
		err error
	}
	var calls atomic.Int32
	repeated, opened, began := make(chan struct{}), make(chan struct{}), make(chan struct{})
	servers[0].mu.Lock()
	servers[0].creates = func() errs.Kind {
		if calls.Add(1) == 1 {
			close(began)
			<-repeated
			return errs.OK
		}
		close(repeated)
		<-opened
		return errs.Unavailable
	}
	servers[0].mu.Unlock()
	request, first, second := w.request(1), make(chan reply, 1), make(chan reply, 1)
	ask := func(to chan reply) {
		got, err := call(c, pb.MetaClient.AllocateSegments, request)
		to <- reply{got, err}
	}
	go ask(first)
	<-began
	go ask(second)
	one := <-first
	close(opened)
	two := <-second
	if one.err != nil || two.err != nil || len(two.got.Segments) != 1 || one.got.Segments[0].Id != two.got.Segments[0].Id {
		t.Errorf("first %+v, then %+v; want the same segment", one, two)
	}
}

// TestRoomThatFiguresOverstateIsUsed: chunk servers have less room than their last
// heartbeats told, as where a fast writer fills them in between: segments get shorter,
// and are not refused while a first one fits.
func TestRoomThatFiguresOverstateIsUsed(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	w.keep()
	const longest = 6 << 20
	longer := false
	for range 8 {
		longer = longer || must(c, pb.MetaClient.AllocateSegments, w.request(1)).Segments[0].ShardLength > longest
	}
	if !longer {
		t.Fatal("no segment was longer than what is to be refused")
	}
	for _, s := range servers {
		s.setLongest(longest)
	}
	got := must(c, pb.MetaClient.AllocateSegments, w.request(1)).Segments[0]
	if g := got.Geometry; g.K != 2 || got.ShardLength > longest || got.ShardLength < longest/2 {
		t.Errorf("got %v with shards of %d bytes, want 2+1 and half of %d to all of it", g, got.ShardLength, longest)
	}
	for _, s := range servers[1:] {
		s.setLongest(1)
	}
	if _, err := call(c, pb.MetaClient.AllocateSegments, w.request(1)); errs.KindOf(err) != errs.NoSpace {
		t.Errorf("with one server that has room: got %v, want no-space", err)
	}
}

// TestWhatAFastWriterHoldsAheadLeavesOthersRoom: a writer of a small cell asks for
// all the spares that it may have, again and again; it gets a part of what is free,
// and what is needed is given whatever is held.
func TestWhatAFastWriterHoldsAheadLeavesOthersRoom(t *testing.T) {
	const device = 640 << 20
	c := api(t, cell(t, 1)[0])
	for i := range 3 {
		f := newChunk(t, c, byte(i+1))
		f.total = device
		f.register()
		f.beat()
		t.Cleanup(f.silence)
	}
	fast, other := write(c, "fast", 2, 1), write(c, "other", 2, 1)
	fast.keep()
	other.keep()
	var held uint64
	for {
		ahead := fast.request(32)
		ahead.Ahead = 32
		got, err := call(c, pb.MetaClient.AllocateSegments, ahead)
		if errs.KindOf(err) == errs.NoSpace && errs.HintOf(err) != "" {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Segments {
			held += s.ShardLength * 3
		}
	}
	if held == 0 || held > 3*device/4 {
		t.Errorf("the fast writer holds %d MiB ahead of %d", held>>20, 3*device>>20)
	}
	must(c, pb.MetaClient.AllocateSegments, other.request(1))
	both := fast.request(3)
	both.Ahead = 2
	if got := must(c, pb.MetaClient.AllocateSegments, both); len(got.Segments) != 1 {
		t.Errorf("of one that is needed and two that aren't came %d", len(got.Segments))
	}
}

func TestASilentServerIsMarkedDownAndWritersAreTold(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	must(c, pb.MetaClient.AllocateSegments, w.request(1))
	servers[1].silence()
	var seen uint64
	eventually(t, "the writer is told", func() bool {
		r := must(c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: w.session, WaitMs: 1000, SeenEvent: seen})
		for _, e := range r.Events {
			seen = e.Id
			if e.Kind == pb.SessionEvent_SERVER_DOWN && e.Server == servers[1].id {
				return true
			}
		}
		return false
	})
	if !must(c, pb.MetaClient.RequestMove, &pb.RequestMoveRequest{Session: w.session, Volume: w.volume, Epoch: w.epoch, Server: servers[1].id}).Granted {
		t.Error("a move off a server that is down was not granted")
	}
	st := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if st.ServersDown != 1 || !slices.ContainsFunc(st.Problems, func(p string) bool { return strings.Contains(p, "is down") }) {
		t.Errorf("status %v", st)
	}
	servers[1].beat()
	eventually(t, "it is up again", func() bool {
		must(c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: w.session})
		return must(c, pb.MetaClient.Status, &pb.StatusRequest{}).ServersUp == 3
	})
}

func TestMovesByTimeOutHaveABudget(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	w.keep()
	must(c, pb.MetaClient.AllocateSegments, w.request(1))
	req := &pb.RequestMoveRequest{Session: w.session, Volume: w.volume, Epoch: w.epoch, Server: servers[0].id}
	if !must(c, pb.MetaClient.RequestMove, req).Granted {
		t.Fatal("the first move was not granted")
	}
	if r := must(c, pb.MetaClient.RequestMove, req); r.Granted || r.RetryMs == 0 {
		t.Fatalf("the second move: %v", r)
	}
	req.Epoch++
	if _, err := call(c, pb.MetaClient.RequestMove, req); errs.KindOf(err) != errs.StaleEpoch {
		t.Fatalf("another epoch's move: %v", err)
	}
}

func TestASessionThatIsNotKeptExpiresAndItsVolumeIsRecovered(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	must(c, pb.MetaClient.AllocateSegments, w.request(1))
	eventually(t, "the session expired", func() bool {
		v := must(c, pb.MetaClient.GetVolume, &pb.GetVolumeRequest{Name: "a"}).Volume
		return v.HolderSession == 0
	})
	if _, err := call(c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: w.session}); errs.KindOf(err) != errs.LeaseLost {
		t.Fatalf("keep: %v", err)
	}
	eventually(t, "a janitor is asked", func() bool {
		return servers[0].asked()+servers[1].asked()+servers[2].asked() > 0
	})
}

func TestATakeoverTellsTheOldWriter(t *testing.T) {
	_, c, _ := chunks(t, 3)
	w := write(c, "a", 2, 1)
	other := must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: w.command(), Owner: "other"}).Session
	req := &pb.AcquireLeaseRequest{Command: w.command(), Session: other, Name: "a"}
	if _, err := call(c, pb.MetaClient.AcquireLease, req); errs.KindOf(err) != errs.LeaseHeld {
		t.Fatalf("without force: %v", err)
	}
	req.Force, req.Command = true, w.command()
	got := must(c, pb.MetaClient.AcquireLease, req)
	if got.Epoch != w.epoch+1 {
		t.Fatalf("epoch %d", got.Epoch)
	}
	r := must(c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: w.session, WaitMs: 1000})
	if len(r.Events) != 1 || r.Events[0].Kind != pb.SessionEvent_LEASE_LOST || r.Events[0].Volume != w.volume {
		t.Fatalf("events %v", r.Events)
	}
	if _, err := call(c, pb.MetaClient.AllocateSegments, w.request(1)); errs.KindOf(err) != errs.StaleEpoch {
		t.Fatalf("the old writer allocates: %v", err)
	}
}

func TestAVolumeLivesThroughItsVerbs(t *testing.T) {
	_, c, _ := chunks(t, 3)
	made := must(c, pb.MetaClient.CreateVolume, &pb.CreateVolumeRequest{Command: 1, Name: "v", SizeBytes: 1 << 20})
	if g := made.Volume.Geometry; g.K != 2 || g.M != 1 {
		t.Errorf("geometry %v for three servers", g)
	}
	if _, err := call(c, pb.MetaClient.CreateVolume, &pb.CreateVolumeRequest{Command: 2, Name: "v", SizeBytes: 1 << 20}); errs.KindOf(err) != errs.AlreadyExists {
		t.Errorf("the name again: %v", err)
	}
	if v := must(c, pb.MetaClient.ResizeVolume, &pb.ResizeVolumeRequest{Command: 3, Name: "v", SizeBytes: 2 << 20}).Volume; v.SizeBytes != 2<<20 {
		t.Errorf("resized to %d", v.SizeBytes)
	}
	must(c, pb.MetaClient.RemoveVolume, &pb.RemoveVolumeRequest{Command: 4, Name: "v"})
	if _, err := call(c, pb.MetaClient.GetVolume, &pb.GetVolumeRequest{Name: "v"}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("removed: %v", err)
	}
	if l := must(c, pb.MetaClient.ListVolumes, &pb.ListVolumesRequest{Removed: true}); len(l.Volumes) != 1 || l.Volumes[0].State != "removed" {
		t.Errorf("removed ones: %v", l)
	}
	must(c, pb.MetaClient.UndeleteVolume, &pb.UndeleteVolumeRequest{Command: 5, Name: "v"})
	if l := must(c, pb.MetaClient.ListVolumes, &pb.ListVolumesRequest{}); len(l.Volumes) != 1 || l.Volumes[0].State != "idle" {
		t.Errorf("volumes: %v", l)
	}
}

func TestANewLeaderGoesOn(t *testing.T) {
	nodes := cell(t, 3)
	c := api(t, nodes...)
	var servers []*fakeChunk
	for i := range 3 {
		servers = append(servers, startChunk(t, c, byte(i+1)))
	}
	w := write(c, "a", 2, 1)
	w.keep()
	seg := must(c, pb.MetaClient.AllocateSegments, w.request(1)).Segments[0]
	for _, n := range nodes {
		if n.replica.Leading() == nil {
			n.Close()
			break
		}
	}
	must(c, pb.MetaClient.SealSegments, &pb.SealSegmentsRequest{
		Command: w.command(), Volume: w.volume, Epoch: w.epoch, Seals: []*pb.Seal{seal(seg, 1, 1, 1)},
	})
	eventually(t, "the new leader finalizes", func() bool { return servers[2].count("finalized") == 1 })
}
