package meta

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/proto/pb"
)

func (f *fakeChunk) ChunkStatus(context.Context, *pb.ChunkStatusRequest) (*pb.ChunkStatusReply, error) {
	return &pb.ChunkStatusReply{Server: f.id, Devices: []*pb.DeviceStatus{{Device: f.device, State: "up"}}}, nil
}

// TestADeviceHasOneLife copies a running device: the copy is refused while the
// original answers; once it does not, the copy is the device, and the original,
// which sends heartbeats still, is turned away.
func TestADeviceHasOneLife(t *testing.T) {
	_, c, servers := chunks(t, 1)
	original := servers[0]
	copied := newChunk(t, c, 1)
	later := original.life + 1
	if _, err := call(c, pb.MetaClient.RegisterServer, copied.registration(later)); !errors.Is(err, errs.Busy) || !strings.Contains(err.Error(), original.control) {
		t.Fatalf("the copy registers beside the original: got %v, want busy at %s", err, original.control)
	}
	original.silence()
	original.stop()
	must(c, pb.MetaClient.RegisterServer, copied.registration(later))
	r, err := original.heartbeat()
	if err != nil || len(r.Refused) != 1 || r.Refused[0].Device != original.device || errs.Kind(r.Refused[0].Kind) != errs.Conflict {
		t.Fatalf("the original's heartbeat: %v, %v, want its device refused with conflict", r, err)
	}
	list := must(c, pb.MetaClient.ListServers, &pb.ListServersRequest{})
	if note := list.Servers[0].Devices[0].Note; !strings.Contains(note, original.control) || !strings.Contains(note, copied.control) {
		t.Errorf("the server list says %q, want both addresses", note)
	}
}

// TestAServerThatWasGivenUpIsAskedToRegister: its shards were taken for lost while
// it was cut off, and nothing but its registration takes that back.
func TestAServerThatWasGivenUpIsAskedToRegister(t *testing.T) {
	n := newNode(t, addresses(t, 1)[0])
	n.cfg.RebuildAfter = 50 * time.Millisecond
	n.start()
	c := api(t, n)
	f := startChunk(t, c, 1)
	state := func() string {
		return must(c, pb.MetaClient.ListServers, &pb.ListServersRequest{}).Servers[0].Devices[0].State
	}
	f.silence()
	eventually(t, "it is given up", func() bool { return state() == "dead" })
	if _, err := f.heartbeat(); !errors.Is(err, errs.NotFound) {
		t.Fatalf("its heartbeat: got %v, want not-found, so that it registers", err)
	}
	must(c, pb.MetaClient.RegisterServer, f.registration(f.life))
	if got := state(); got != "up" {
		t.Errorf("after it registered it is %s", got)
	}
}

// TestANewLeaderBelievesOnlyWhatItHears: after a restart of the whole cell the
// registered addresses may be old ones. The leader waits for servers before it
// gives them out, and for m silent ones of a segment not at all.
func TestANewLeaderBelievesOnlyWhatItHears(t *testing.T) {
	n := newNode(t, addresses(t, 1)[0])
	n.cfg.Timing.ServerSilence = patience // nobody is gone before the test ends
	n.start()
	c := api(t, n)
	var servers []*fakeChunk
	for i := range 3 {
		servers = append(servers, startChunk(t, c, byte(i+1)))
	}
	w := write(c, "a", 2, 1)
	seg := must(c, pb.MetaClient.AllocateSegments, w.request(1)).Segments[0]
	for _, f := range servers {
		f.silence()
		f.stop()
	}
	n.Close()
	n.start()
	st := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if st.ServersUp != 0 || !slices.ContainsFunc(st.Problems, func(p string) bool { return strings.Contains(p, "not heard") }) {
		t.Fatalf("before anybody was heard: %v", st)
	}
	told := make(chan *pb.GetSegmentsReply, 1)
	go func() {
		r, _ := call(c, pb.MetaClient.GetSegments, &pb.GetSegmentsRequest{Ids: []uint64{seg.Id}})
		told <- r
	}()
	for _, f := range servers[:2] { // the third is one of m
		f.control = "moved-" + f.control
		must(c, pb.MetaClient.RegisterServer, f.registration(f.life+1))
	}
	r := <-told
	up := 0
	for _, a := range r.GetServers() {
		if a.Up && strings.HasPrefix(a.DataAddress, "moved-") {
			up++
		}
	}
	if up != 2 {
		t.Errorf("addresses %v, want two new ones that are up", r.GetServers())
	}
}
