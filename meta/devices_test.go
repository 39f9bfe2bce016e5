package meta

import (
	"strings"
	"sync"
	"testing"

	"strake/internal/errs"
	"strake/proto/pb"
)

// finalized gives a segment of a writer's that is sealed and finalized.
func (w *writer) finalized() *pb.Segment {
	w.c.t.Helper()
	seg := must(w.c, pb.MetaClient.AllocateSegments, w.request(1)).Segments[0]
	must(w.c, pb.MetaClient.SealSegments, &pb.SealSegmentsRequest{
		Command: w.command(), Volume: w.volume, Epoch: w.epoch, Seals: []*pb.Seal{seal(seg, 1, 3, 3)},
	})
	eventually(w.c.t, "the segment is finalized", func() bool {
		seg = must(w.c, pb.MetaClient.GetSegments, &pb.GetSegmentsRequest{Ids: []uint64{seg.Id}}).Segments[0]
		return seg.Finalized
	})
	return seg
}

// change asks for a change of a server's devices.
func (f *fakeChunk) change(command uint64, what pb.ChangeDevicesRequest_Change) error {
	_, err := call(f.c, pb.MetaClient.ChangeDevices, &pb.ChangeDevicesRequest{Command: command, Server: f.id, Change: what})
	return err
}

// TestDevicesGivenUpTogetherAreJudgedTogether: each could be given up alone, two can't.
func TestDevicesGivenUpTogetherAreJudgedTogether(t *testing.T) {
	_, c, servers := chunks(t, 3)
	w := write(c, "a", 2, 1)
	w.keep()
	w.finalized()
	var wait sync.WaitGroup
	results := make([]error, len(servers))
	for i, f := range servers {
		wait.Go(func() { results[i] = f.change(uint64(i+1), pb.ChangeDevicesRequest_REMOVE) })
	}
	wait.Wait()
	done := 0
	for i, err := range results {
		if err == nil {
			done++
		} else if errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "volumes a") {
			t.Errorf("server %d: got %v, want a conflict that names volume a", servers[i].id, err)
		}
	}
	if done != 1 {
		t.Fatalf("%d of 3 devices under a segment of 2+1 were given up, want 1", done)
	}
	for i, f := range servers {
		if err := f.change(uint64(i+10), pb.ChangeDevicesRequest_REMOVE); (err == nil) != (results[i] == nil) {
			t.Errorf("server %d, asked again: got %v, before %v", f.id, err, results[i])
		}
	}
}

// TestADrainCountsWhatOthersStillHaveToMove: what one drain moves takes the room
// that the next would need.
func TestADrainCountsWhatOthersStillHaveToMove(t *testing.T) {
	c := api(t, cell(t, 1)[0])
	var servers []*fakeChunk
	for i := range 4 {
		f := newChunk(t, c, byte(i+1))
		f.total, f.used = 1<<30, 600<<20
		f.register()
		if _, err := f.heartbeat(); err != nil {
			t.Fatal(err)
		}
		f.beat()
		t.Cleanup(f.silence)
		servers = append(servers, f)
	}
	if err := servers[0].change(1, pb.ChangeDevicesRequest_DRAIN); err != nil {
		t.Fatalf("the first drain, 600 MiB of 3 times some 400: %v", err)
	}
	if err := servers[1].change(2, pb.ChangeDevicesRequest_DRAIN); errs.KindOf(err) != errs.NoSpace {
		t.Fatalf("the second drain, 1,200 MiB in all to twice some 400: got %v, want no-space", err)
	}
	if err := servers[0].change(3, pb.ChangeDevicesRequest_UNDRAIN); err != nil {
		t.Fatal(err)
	}
	if err := servers[1].change(4, pb.ChangeDevicesRequest_DRAIN); err != nil {
		t.Fatalf("the second drain alone: %v", err)
	}
}
