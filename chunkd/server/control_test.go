package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// control serves the control service of a cluster and gives a client.
func control(t *testing.T, c *cluster, recoverer Recoverer) pb.ChunkClient {
	t.Helper()
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(Typed()...)
	pb.RegisterChunkServer(g, NewControl(c.Server, recoverer))
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), tls.Policy{}.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		<-ended
	})
	return pb.NewChunkClient(conn)
}

func pbRef(segment uint64, shard uint32) *pb.ShardRef {
	return &pb.ShardRef{Segment: segment, Shard: shard, Generation: 2, Device: uint64(testDevice)}
}

func spec(segment uint64, shard uint32) *pb.ShardSpec {
	return &pb.ShardSpec{Shard: pbRef(segment, shard), Volume: 7, Epoch: 1, Geometry: &pb.Geometry{K: 1, M: 1}, Length: 4 << 20, Cell: uint64(testCell)}
}

// kinds gives the kinds of results in order.
func kinds(results []*pb.ShardResult) (list []errs.Kind) {
	for _, r := range results {
		list = append(list, errs.Kind(r.Kind))
	}
	return list
}

func wantKinds(t *testing.T, what string, got []errs.Kind, want ...errs.Kind) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// A call that this program must not serve changes nothing, whether it streams or not.
func TestCallsOfProgramsThatAreNoNeighboursAreRefused(t *testing.T) {
	c := start(t, Limits{}, newFakeStore(), newFakeStore())
	cc := control(t, c, nil)
	far := metadata.AppendToOutgoingContext(t.Context(), "strake-wire", "99")
	_, err := cc.CreateShards(far, &pb.CreateShardsRequest{Shards: []*pb.ShardSpec{spec(9, 0)}})
	if errs.KindOf(pb.FromStatus(err)) != errs.Version {
		t.Errorf("shards created for a program of version 99: %v", err)
	}
	fence := &pb.FenceRequest{Epoch: 3, Shards: []*pb.ShardRef{pbRef(9, 0)}}
	fence.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 9000, protowire.VarintType), 1))
	stream, err := cc.Fence(t.Context(), fence)
	if err == nil {
		_, err = stream.Recv()
	}
	if errs.KindOf(pb.FromStatus(err)) != errs.Version {
		t.Errorf("a fence with a field that nobody knows: %v", err)
	}
	stat, err := cc.StatShards(t.Context(), &pb.StatShardsRequest{Shards: []*pb.ShardRef{pbRef(9, 0)}})
	if err != nil || errs.Kind(stat.Shards[0].Kind) == errs.OK {
		t.Errorf("the shard is there: %v, %v", stat, err)
	}
}

func TestEachShardOfACreateIsAnswered(t *testing.T) {
	c := start(t, Limits{}, newFakeStore(), newFakeStore())
	cc := control(t, c, nil)
	otherCell, otherDevice, noGeometry, onSecond := spec(1, 0), spec(1, 0), spec(1, 0), spec(2, 1)
	otherCell.Cell, otherDevice.Shard.Device, noGeometry.Geometry = 1, 99, nil
	onSecond.Shard.Device++
	got, err := cc.CreateShards(t.Context(), &pb.CreateShardsRequest{Shards: []*pb.ShardSpec{spec(1, 0), otherCell, otherDevice, noGeometry, onSecond, {}}})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, "create", kinds(got.Results), errs.OK, errs.WrongCell, errs.NotHere, errs.InvalidArgument, errs.OK, errs.InvalidArgument)
	p := c.connect(t)
	read := func(r frame.ShardRef) []byte { return readMeta(r, frame.ReadRange{Length: 4096}) }
	p.refused(errs.OK, frame.Request{Kind: frame.Read}, read(ref(1, 0)), nil)
	p.refused(errs.OK, frame.Request{Kind: frame.Read}, read(ref(2, 1)), nil)
	deleted, err := cc.DeleteShards(t.Context(), &pb.DeleteShardsRequest{Shards: []*pb.ShardRef{onSecond.Shard, pbRef(2, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, "delete", kinds(deleted.Results), errs.OK, errs.NotHere)
	p.refused(errs.NotHere, frame.Request{Kind: frame.Read}, read(ref(2, 1)), nil)
}

// TestFenceTellsHaveNeverAndCannotTell: stripes listed are there, stripes not
// listed never were, and an unknown shard or device can't tell.
func TestFenceTellsHaveNeverAndCannotTell(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		cc := control(t, c, nil)
		shard(t, s, ref(1, 0), 4<<20)
		shard(t, s, ref(2, 0), 4<<20)
		p := c.connect(t)
		meta, payload := unit(ref(1, 0), 1, 0, 4096)
		p.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		otherDisk := pbRef(3, 0)
		otherDisk.Device = 99
		answers := map[uint64]*pb.FenceReply{}
		stream, err := cc.Fence(t.Context(), &pb.FenceRequest{Epoch: 5, Shards: []*pb.ShardRef{pbRef(1, 0), pbRef(2, 0), otherDisk, pbRef(4, 0)}})
		for err == nil {
			var r *pb.FenceReply
			if r, err = stream.Recv(); err == nil {
				answers[r.Shard.Segment] = r
			}
		}
		if err != io.EOF || len(answers) != 4 {
			t.Fatalf("%d answers (%v)", len(answers), err)
		}
		if a := answers[1]; a.Kind != 0 || !a.Done || len(a.Stripes) != 1 || a.Stripes[0].Seq != 1 || a.Stripes[0].Kind != 0 ||
			!bytes.Equal(a.Stripes[0].Header, meta[16:]) || a.Incarnation != 1 {
			t.Errorf("have: %v", a)
		}
		if a := answers[2]; a.Kind != 0 || !a.Done || len(a.Stripes) != 0 || a.Wiped {
			t.Errorf("never: %v", a)
		}
		if a := answers[3]; errs.Kind(a.Kind) != errs.NotHere || !a.Wiped || !a.Done || a.Message == "" {
			t.Errorf("another disk: %v", a)
		}
		if a := answers[4]; errs.Kind(a.Kind) != errs.NotHere || a.Wiped || !a.Done {
			t.Errorf("unknown shard: %v", a)
		}
		p.refused(errs.StaleEpoch, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
	})
}

func TestFenceStreamsLongListsInPieces(t *testing.T) {
	c := start(t, Limits{})
	cc := control(t, c, nil)
	shard(t, c.store, ref(1, 0), 64<<20)
	meta, payload := unit(ref(1, 0), 1, 0, 4<<20)
	c.connect(t).refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
	s := c.store.shards[ref(1, 0).ShardKey]
	for seq := range layout.Seq(300) {
		s.headers, s.seqs = append(s.headers, s.headers[0]), append(s.seqs, seq+2)
	}
	stream, err := cc.Fence(t.Context(), &pb.FenceRequest{Epoch: 5, Shards: []*pb.ShardRef{pbRef(1, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	pieces, stripes := 0, 0
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		pieces, stripes = pieces+1, stripes+len(r.Stripes)
		if n := proto.Size(r); n >= 1<<20 {
			t.Errorf("a piece of %d bytes", n)
		}
		if r.Done {
			break
		}
	}
	if pieces < 3 || stripes != 301 {
		t.Errorf("%d stripes in %d pieces", stripes, pieces)
	}
}

func TestFinalizeAndStatNameEachShardsState(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		cc := control(t, c, nil)
		shard(t, s, ref(1, 0), 4<<20)
		shard(t, s, ref(2, 0), 4<<20)
		seal := func(n uint32) *pb.ShardSeal {
			return &pb.ShardSeal{Count: n, Digest: make([]byte, len(stripe.Digest{}))}
		}
		got, err := cc.Finalize(t.Context(), &pb.FinalizeRequest{Shards: []*pb.FinalizeShard{
			{Shard: pbRef(1, 0), Seal: seal(0)}, {Shard: pbRef(2, 0), Seal: seal(3)}, {Shard: pbRef(3, 0), Seal: seal(0)}, {Shard: pbRef(1, 0)}}})
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, "finalize", kinds(got.Results), errs.OK, errs.Corrupt, errs.NotHere, errs.InvalidArgument)
		stats, err := cc.StatShards(t.Context(), &pb.StatShardsRequest{Shards: []*pb.ShardRef{pbRef(1, 0), pbRef(2, 0), pbRef(3, 0)}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"finalized", "incomplete", ""} {
			if s := stats.Shards[i]; s.State != want || (want == "") != (s.Kind != 0) {
				t.Errorf("shard %d: %v, want %q", i, s, want)
			}
		}
	})
}

// recoverer records what it was asked.
type recoverer struct {
	volume, cleaned layout.VolumeID
	tag             layout.SnapshotID
}

func (r *recoverer) DigestTag(_ context.Context, tag layout.SnapshotID) error {
	r.tag = tag
	return nil
}

func (r *recoverer) CleanVolume(_ context.Context, v layout.VolumeID, _ string) (moved, garbage uint64, err error) {
	r.cleaned = v
	return 5, 6, nil
}

func (r *recoverer) RecoverVolume(_ context.Context, v layout.VolumeID, reason string) (layout.Seq, int, string, error) {
	r.volume = v
	if reason == "fail" {
		return 0, 0, "", errs.New(errs.LeaseHeld, "recover volume", "somebody writes it")
	}
	return 17, 3, "", nil
}

func TestRecoverVolumeGoesToTheJanitor(t *testing.T) {
	c := start(t, Limits{})
	_, err := control(t, c, nil).RecoverVolume(t.Context(), &pb.RecoverVolumeRequest{Volume: 7})
	if err := pb.FromStatus(err); !errors.Is(err, errs.Unavailable) {
		t.Errorf("without a janitor: got %v, want unavailable", err)
	}
	r := &recoverer{}
	cc := control(t, c, r)
	got, err := cc.RecoverVolume(t.Context(), &pb.RecoverVolumeRequest{Volume: 7, Reason: "lease lost"})
	if err != nil || got.Cut != 17 || got.Sealed != 3 || r.volume != 7 {
		t.Errorf("got %v (%v), volume %d", got, err, r.volume)
	}
	if _, err := cc.DigestTag(t.Context(), &pb.DigestTagRequest{Snapshot: 8}); err != nil || r.tag != 8 {
		t.Errorf("got %v, tag %d", err, r.tag)
	}
	if got, err := cc.CleanVolume(t.Context(), &pb.CleanVolumeRequest{Volume: 9}); err != nil || r.cleaned != 9 || got.MovedBytes != 5 || got.GarbageBytes != 6 {
		t.Errorf("got %v (%v), volume %d", got, err, r.cleaned)
	}
	_, err = cc.RecoverVolume(t.Context(), &pb.RecoverVolumeRequest{Volume: 7, Reason: "fail"})
	if err := pb.FromStatus(err); !errors.Is(err, errs.LeaseHeld) {
		t.Errorf("got %v, want lease-held", err)
	}
}

func TestChunkStatusTellsOfEachDevice(t *testing.T) {
	good, bad := newFakeStore(), newFakeStore()
	c := start(t, Limits{}, good, bad)
	close(bad.failed)
	got, err := control(t, c, nil).ChunkStatus(t.Context(), &pb.ChunkStatusRequest{})
	if err != nil || got.Server != 3 || len(got.Devices) != 2 || got.Devices[0].State != "up" || got.Devices[1].State != "down" || got.Devices[0].BytesWritten != 7 {
		t.Errorf("got %v (%v)", got, err)
	}
}
