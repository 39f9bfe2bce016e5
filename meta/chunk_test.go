package meta

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

// fakeChunk is a chunk server of a test: its shards are a map, and it does what
// it is told only.
type fakeChunk struct {
	pb.UnimplementedChunkServer
	id      uint64
	device  uint64
	uuid    []byte
	control string
	c       *apiClient
	total   uint64 // bytes of the device
	used    uint64 // of them
	life    uint64 // the device's incarnation as registered
	stop    func() // its service, not its heartbeats

	mu        sync.Mutex
	shards    map[[2]uint64]string // guarded by mu: segment and shard, and its state
	refuse    errs.Kind            // guarded by mu: what CreateShards answers
	longest   uint64               // guarded by mu: the longest shard for which there is room; 0: any
	creates   func() errs.Kind     // guarded by mu: called before each CreateShards, without mu; its kind refuses
	recovered []uint64             // guarded by mu: volumes
	capacity  *pb.Rate             // guarded by mu: what heartbeats tell of the device; nil: nothing
	stopBeat  context.CancelFunc
	beats     sync.WaitGroup
}

// startChunk starts a fake chunk server and registers it.
func startChunk(t *testing.T, c *apiClient, n byte) *fakeChunk {
	t.Helper()
	f := newChunk(t, c, n)
	f.register()
	f.beat()
	t.Cleanup(f.silence)
	return f
}

// newChunk starts a fake chunk server that nobody knows.
func newChunk(t *testing.T, c *apiClient, n byte) *fakeChunk {
	t.Helper()
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeChunk{control: l.Addr().String(), c: c, total: 1 << 40, shards: map[[2]uint64]string{}, uuid: append(make([]byte, 15), n)}
	g := grpc.NewServer()
	pb.RegisterChunkServer(g, f)
	var wg sync.WaitGroup
	wg.Go(func() { g.Serve(l) })
	f.stop = func() { g.Stop(); wg.Wait() }
	t.Cleanup(f.stop)
	return f
}

func (f *fakeChunk) register() {
	f.c.t.Helper()
	f.life = uint64(time.Now().UnixNano())
	r := must(f.c, pb.MetaClient.RegisterServer, f.registration(f.life))
	f.id, f.device = r.Server, r.Devices[0].Id
}

func (f *fakeChunk) registration(life uint64) *pb.RegisterServerRequest {
	return &pb.RegisterServerRequest{
		Uuid: f.uuid, DataAddress: f.control, ControlAddress: f.control, Domain: "z/r/" + f.control,
		Devices: []*pb.Device{{Uuid: append([]byte{1}, f.uuid[1:]...), TotalBytes: f.total, Incarnation: life, State: "up"}},
	}
}

func (f *fakeChunk) heartbeat() (*pb.HeartbeatReply, error) {
	r := &pb.HeartbeatRequest{Server: f.id, DataAddress: f.control,
		Devices: []*pb.Device{{Id: f.device, TotalBytes: f.total, UsedBytes: f.used, State: "up", Incarnation: f.life}}}
	f.mu.Lock()
	if f.capacity != nil {
		r.Capacities = []*pb.DeviceCapacity{{Device: f.device, Rate: f.capacity, How: "calibrated"}}
	}
	f.mu.Unlock()
	return call(f.c, pb.MetaClient.Heartbeat, r)
}

// beat sends heartbeats until silence.
func (f *fakeChunk) beat() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stopBeat = cancel
	f.beats.Go(func() {
		for ctx.Err() == nil {
			f.heartbeat()
			select {
			case <-ctx.Done():
			case <-time.After(quick.ServerSilence / 6):
			}
		}
	})
}

func (f *fakeChunk) silence() {
	f.stopBeat()
	f.beats.Wait()
}

func (f *fakeChunk) setRefuse(k errs.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = k
}

func (f *fakeChunk) setLongest(bytes uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longest = bytes
}

// count counts shards in a state.
func (f *fakeChunk) count(state string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.shards {
		if s == state {
			n++
		}
	}
	return n
}

func (f *fakeChunk) set(ref *pb.ShardRef, state string) *pb.ShardResult {
	f.shards[[2]uint64{ref.Segment, uint64(ref.Shard)}] = state
	return &pb.ShardResult{Shard: ref}
}

func (f *fakeChunk) CreateShards(_ context.Context, r *pb.CreateShardsRequest) (*pb.CreateShardsReply, error) {
	f.mu.Lock()
	creates, refuse := f.creates, f.refuse
	f.mu.Unlock()
	if creates != nil {
		refuse = creates()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &pb.CreateShardsReply{}
	for _, s := range r.Shards {
		kind := refuse
		if f.longest > 0 && s.Length > f.longest {
			kind = errs.NoSpace
		}
		if kind != errs.OK {
			reply.Results = append(reply.Results, &pb.ShardResult{Shard: s.Shard, Kind: uint32(kind), Message: "refused by the test"})
			continue
		}
		reply.Results = append(reply.Results, f.set(s.Shard, "open"))
	}
	return reply, nil
}

func (f *fakeChunk) Finalize(_ context.Context, r *pb.FinalizeRequest) (*pb.FinalizeReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &pb.FinalizeReply{}
	for _, s := range r.Shards {
		reply.Results = append(reply.Results, f.set(s.Shard, "finalized"))
	}
	return reply, nil
}

func (f *fakeChunk) DeleteShards(_ context.Context, r *pb.DeleteShardsRequest) (*pb.DeleteShardsReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &pb.DeleteShardsReply{}
	for _, s := range r.Shards {
		reply.Results = append(reply.Results, f.set(s, "deleted"))
	}
	return reply, nil
}

func (f *fakeChunk) RecoverVolume(_ context.Context, r *pb.RecoverVolumeRequest) (*pb.RecoverVolumeReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recovered = append(f.recovered, r.Volume)
	return nil, pb.ToStatus(errs.New(errs.Unavailable, "", "the test recovers nothing"))
}

func (f *fakeChunk) DigestTag(context.Context, *pb.DigestTagRequest) (*pb.DigestTagReply, error) {
	return nil, pb.ToStatus(errs.New(errs.Unavailable, "", "the test computes nothing"))
}

func (f *fakeChunk) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.recovered)
}
