package server

import (
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/pb"
)

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestObjectivesAreJudgedByMinute: what is older than the window counts no more.
func TestObjectivesAreJudgedByMinute(t *testing.T) {
	var s slo
	s.goal.Store(&qos.SLO{P99: time.Millisecond, Bytes: 4096})
	begin := time.Unix(1_000_000_000, 0)
	for minute := range 90 {
		now := begin.Add(time.Duration(minute) * time.Minute)
		s.judge(4096, now.Add(-time.Microsecond), now, false)   // in time
		s.judge(4096, now.Add(-2*time.Millisecond), now, false) // late
		s.judge(8192, now.Add(-time.Hour), now, false)          // larger than the objective is for
	}
	now := begin.Add(89 * time.Minute)
	if k := s.kept(shortSLO, now); k != (Kept{10, 5}) {
		t.Errorf("5 minutes: %+v", k)
	}
	if k := s.kept(sloMinutes, now); k != (Kept{120, 60}) {
		t.Errorf("an hour: %+v", k)
	}
	if k := s.kept(sloMinutes, now.Add(3*time.Hour)); k != (Kept{}) {
		t.Errorf("three quiet hours later: %+v", k)
	}
	if k := s.all(); k != (Kept{180, 90}) {
		t.Errorf("since the start: %+v", k)
	}
}

// TestAStatusTellsClassesVolumesAndObjectives of what was served.
func TestAStatusTellsClassesVolumesAndObjectives(t *testing.T) {
	s := openStore(t, vfs.NewMem(vfs.MemOptions{}))
	c := start(t, Limits{}, s)
	shard(t, s, ref(9, 0), 4<<20)
	c.SetSLO(layout.ClassInference, qos.SLO{P99: time.Hour})
	p := c.connect(t)
	meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
	p.call(frame.Request{Kind: frame.Append, Epoch: 1, Class: layout.ClassCheckpoint}, meta, payload)
	p.call(frame.Request{Kind: frame.Read, Class: layout.ClassInference}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	p.call(frame.Request{Kind: frame.Read, Class: layout.ClassInference}, readMeta(ref(9, 0), frame.ReadRange{Offset: 9 << 30, Length: 4096}), nil) // refused
	got, err := NewControl(c.Server, nil).ChunkStatus(t.Context(), &pb.ChunkStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Classes) != 2 || len(got.Classes[0].Queue) != len(got.BucketNs) || got.Devices[0].Width == 0 {
		t.Fatalf("%v", got)
	}
	if len(got.Volumes) != 1 || got.Volumes[0].Reads != 1 || got.Volumes[0].ReadBytes != 4096 || got.Volumes[0].Writes != 1 || got.Volumes[0].WroteBytes != 1<<20 || got.Volumes[0].TimeNs == 0 || sum(got.Volumes[0].Times) != 2 {
		t.Errorf("volumes: %v", got.Volumes)
	}
	if len(got.Slos) != 1 || got.Slos[0].Judged != 1 || got.Slos[0].Judged_5M != 1 || got.Slos[0].Late != 0 {
		t.Errorf("objectives: %v", got.Slos)
	}
	c.SetSLO(layout.ClassInference, qos.SLO{})
	if len(c.SLOs(time.Now())) != 0 {
		t.Error("an objective that was taken away is told")
	}
}

// TestRefusalsAndFlushesAreJudged: what the server could not do in time has missed its
// class's objective, a durable append is judged once its sync is done, and a flush is a
// request like others; what was asked wrongly counts for nothing.
func TestRefusalsAndFlushesAreJudged(t *testing.T) {
	fsys := newShapedStore(t, "latency=50ms")
	c := start(t, Limits{}, fsys)
	shard(t, fsys, ref(9, 0), 4<<20)
	c.SetSLO(layout.ClassInference, qos.SLO{P99: time.Hour})
	p := c.connect(t)
	kept := func() Kept { return c.SLOs(time.Now())[0].All }
	read := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	p.refused(errs.OK, frame.Request{Kind: frame.Read, Class: layout.ClassInference}, read, nil)
	if k := kept(); k != (Kept{1, 0}) {
		t.Fatalf("a read: %+v", k)
	}
	p.refused(errs.Deadline, frame.Request{Kind: frame.Read, Class: layout.ClassInference, Deadline: 20 * time.Millisecond}, read, nil)
	if k := kept(); k != (Kept{2, 1}) {
		t.Errorf("with one that could not be in time: %+v", k)
	}
	p.refused(errs.NotHere, frame.Request{Kind: frame.Read, Class: layout.ClassInference}, readMeta(ref(77, 0), frame.ReadRange{Length: 4096}), nil)
	p.refused(errs.OK, frame.Request{Kind: frame.Ping, Class: layout.ClassInference}, nil, nil)
	if k := kept(); k != (Kept{2, 1}) {
		t.Errorf("with one of another server's shard, and a ping: %+v", k)
	}
	fsys.holdSync, fsys.entered = make(chan struct{}), make(chan struct{}, 1)
	meta, payload := unit(ref(9, 0), 1, 0, 4096)
	p.send(frame.Request{Kind: frame.Append, Flags: frame.Durable, Epoch: 1, Class: layout.ClassInference}, meta, payload)
	<-fsys.entered
	if k := kept(); k != (Kept{2, 1}) {
		t.Errorf("with a durable append that is stored and not synced: %+v", k)
	}
	fsys.holdSync <- struct{}{}
	if rep, _, _ := p.receive(); rep.Status != errs.OK || kept() != (Kept{3, 1}) {
		t.Errorf("with a durable append: %v, %+v", rep.Status, kept())
	}
	p.send(frame.Request{Kind: frame.Sync, Epoch: 1, Class: layout.ClassInference}, syncMeta(fsys.Incarnation(), ref(9, 0)), nil)
	<-fsys.entered
	fsys.holdSync <- struct{}{}
	if rep, _, _ := p.receive(); rep.Status != errs.OK || kept() != (Kept{4, 1}) {
		t.Errorf("with a flush: %v, %+v", rep.Status, kept())
	}
}

// TestVolumesBeyondTheBoundShareACounter.
func TestVolumesBeyondTheBoundShareACounter(t *testing.T) {
	var v volumes
	for id := range layout.VolumeID(maxVolumes + 10) {
		v.of(id + 1).Reads.Add(1)
	}
	n, rest := 0, uint64(0)
	v.each(func(id layout.VolumeID, c *VolumeCounters) {
		if n++; id == 0 {
			rest = c.Reads.Load()
		}
	})
	if n != maxVolumes+1 || rest != 10 {
		t.Errorf("%d counters, %d requests in the shared one", n, rest)
	}
}
