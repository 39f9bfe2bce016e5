package server

import (
	"testing"
	"time"

	"strake/internal/layout"
	"strake/internal/qos"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/pb"
)

// TestObjectivesAreJudgedByMinute: what is older than the window counts no more.
func TestObjectivesAreJudgedByMinute(t *testing.T) {
	var s slo
	s.goal.Store(&qos.SLO{P99: time.Millisecond, Bytes: 4096})
	begin := time.Unix(1_000_000_000, 0)
	for minute := range 90 {
		now := begin.Add(time.Duration(minute) * time.Minute)
		s.judge(4096, now.Add(-time.Microsecond), now)   // in time
		s.judge(4096, now.Add(-2*time.Millisecond), now) // late
		s.judge(8192, now.Add(-time.Hour), now)          // larger than the objective is for
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
	if len(got.Volumes) != 1 || got.Volumes[0].Reads != 1 || got.Volumes[0].ReadBytes != 4096 || got.Volumes[0].Writes != 1 || got.Volumes[0].WroteBytes != 1<<20 {
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
