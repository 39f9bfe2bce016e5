package inprocess

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strake/client"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// switched is a device's clock that waits only while it is on.
type switched struct{ on atomic.Bool }

func (s *switched) Now() time.Time { return time.Now() }

func (s *switched) Sleep(d time.Duration) {
	if s.on.Load() {
		time.Sleep(d)
	}
}

// TestALimpingDeviceGetsNoSegmentUntilItIsQuickAgain slows a device down: its server
// notices, the leader says so everywhere, new segments lie elsewhere; and it takes
// part again once it is quick.
func TestALimpingDeviceGetsNoSegmentUntilItIsQuickAgain(t *testing.T) {
	long(t)
	var slow switched
	c := Start(t, Options{Chunkds: 4, Disk: func(i int) (vfs.FS, error) {
		mem := vfs.NewMem(vfs.MemOptions{Capacity: 1 << 40})
		if i != 1 {
			return mem, nil
		}
		return vfs.NewShape(mem, vfs.ShapeSpec{Latency: 300 * time.Millisecond}, &slow), nil
	}})
	cell, v := volume(t, c, 16*mib, 2, 1)
	bad := uint64(c.Chunkds[1].ID())
	slow.on.Store(true)
	device := waitForState(t, c, cell, bad, "limping")
	s, err := cell.Status(t.Context())
	if err != nil || s.Health != "degraded" || !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, "limps") }) {
		t.Errorf("health %s, problems %q: %v", s.Health, s.Problems, err)
	}
	hasEvent(t, cell, "device-limps")
	create(t, cell, "w", 16*mib, 2, 1)
	w := open(t, cell, "w", writing)
	write(t, w, pattern(1, 12*mib), 0)
	flush(t, w)
	for _, seg := range segments(t, c, "w") {
		for _, p := range seg.Placements {
			if p.Device == device {
				t.Errorf("segment %d of %d+%d has a shard on the device that limps", seg.Id, seg.Geometry.K, seg.Geometry.M)
			}
		}
	}
	slow.on.Store(false)
	waitForState(t, c, cell, bad, "up")
	hasEvent(t, cell, "device-sound")
	holds(t, w, pattern(1, 12*mib), 0)
	closed(t, w)
	closed(t, v)
}

// TestTwoClientsConvictADevice has two sessions say that a device limps: together
// they are believed, though its own server measures nothing odd.
func TestTwoClientsConvictADevice(t *testing.T) {
	c := Start(t, Options{Chunkds: 4})
	cell := c.Dial()
	servers, err := cell.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	device := servers[2].Devices[0].ID
	var sessions []uint64
	for i := range uint64(2) {
		ask(t, c, func(ctx context.Context, m pb.MetaClient) error {
			r, err := m.OpenSession(ctx, &pb.OpenSessionRequest{Command: 77 + i, Owner: "witness"})
			sessions = append(sessions, r.GetSession())
			return err
		})
	}
	c.Eventually("the device limps", func() error {
		for _, s := range sessions {
			ask(t, c, func(ctx context.Context, m pb.MetaClient) error {
				_, err := m.ReportShards(ctx, &pb.ReportShardsRequest{Session: s, Devices: []*pb.DeviceReport{{Device: device, TookNs: 9e7, OthersNs: 1e6}}})
				return err
			})
		}
		return stateOf(t, cell, servers[2].ID, "limping")
	})
}

// TestAServerThatAnswersNobodyGetsNoSegments: its heartbeats go on, and nothing comes
// of its data. Two clients that read find out.
func TestAServerThatAnswersNobodyGetsNoSegments(t *testing.T) {
	c := Start(t, Options{Chunkds: 5})
	_, v := volume(t, c, 16*mib, 2, 1)
	want := pattern(1, 8*mib)
	write(t, v, want, 0)
	closed(t, v)
	mute := segments(t, c, "v")[0].Placements[0].Server
	at := slices.IndexFunc(c.Chunkds, func(s *Chunkd) bool { return uint64(s.ID()) == mute })
	cells := []*client.Cell{c.Dial(), c.Dial()}
	var readers []*client.Volume
	for _, cell := range cells {
		readers = append(readers, open(t, cell, "v", client.OpenOptions{}))
	}
	c.Chunkds[at].data.pause()
	for _, r := range readers {
		holds(t, r, want, 0)
	}
	waitForState(t, c, cells[0], mute, "limping")
	create(t, cells[0], "w", 16*mib, 2, 1)
	w := open(t, cells[0], "w", writing)
	write(t, w, want, 0)
	for _, seg := range segments(t, c, "w") {
		for _, p := range seg.Placements {
			if p.Server == mute {
				t.Errorf("segment %d was placed on server %d, which answers nobody", seg.Id, mute)
			}
		}
	}
	c.Chunkds[at].data.resume()
	waitForState(t, c, cells[0], mute, "up")
	closed(t, w)
	for _, r := range readers {
		closed(t, r)
	}
}

// waitForState waits until a server's device is in a state, and gives its id.
func waitForState(t *testing.T, c *Cell, cell *client.Cell, server uint64, state string) (device uint64) {
	t.Helper()
	c.Eventually("the device is "+state, func() error { return stateOf(t, cell, server, state) })
	servers, err := cell.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if s.ID == server {
			device = s.Devices[0].ID
		}
	}
	return device
}

func stateOf(t *testing.T, cell *client.Cell, server uint64, state string) error {
	t.Helper()
	servers, err := cell.Servers(t.Context())
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.ID == server && s.Devices[0].State != state {
			return fmt.Errorf("it is %s: %s", s.Devices[0].State, s.Devices[0].Note)
		}
	}
	return nil
}

func hasEvent(t *testing.T, cell *client.Cell, name string) {
	t.Helper()
	events, err := cell.Events(t.Context(), 0, 1000)
	if err != nil || !slices.ContainsFunc(events, func(e client.Event) bool { return e.Name == name }) {
		t.Errorf("no event %s among %v: %v", name, events, err)
	}
}

// segments lists a volume's segments.
func segments(t testing.TB, c *Cell, name string) (list []*pb.Segment) {
	t.Helper()
	ask(t, c, func(ctx context.Context, m pb.MetaClient) error {
		v, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Name: name, Tenant: "default"})
		if err != nil {
			return err
		}
		r, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: v.Volume.Id})
		list = r.GetSegments()
		return err
	})
	return list
}
