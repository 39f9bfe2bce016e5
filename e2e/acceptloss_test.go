package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	metadial "strake/internal/dial"
	"strake/internal/tls"
	"strake/proto/pb"
)

// abandoned writes n blocks to a new volume, each flushed, and is gone then. Block i
// holds its number everywhere.
func abandoned(t *testing.T, c *cluster.Cluster, name string, n int) {
	t.Helper()
	strake(t, c, 0, "volume", "create", name, "--size", "1MiB", "--k", "2", "--m", "2")
	cell, err := c.Dial(t.Context())
	check(t, err)
	vol, err := cell.Open(t.Context(), name, client.OpenOptions{Write: true})
	check(t, err)
	for i := range n {
		_, err := vol.WriteAt(numbered(i), int64(i)*4096)
		check(t, err)
		check(t, vol.Flush(t.Context()))
	}
	cell.Abandon()
}

func numbered(i int) []byte { return []byte(strings.Repeat(string(rune('a'+i)), 4096)) }

// placedOn gives the server of each shard of a volume's one open segment.
func placedOn(t *testing.T, c *cluster.Cluster, name string) (servers []uint64) {
	t.Helper()
	m, err := metadial.NewMeta(c.Cell, tls.Policy{})
	check(t, err)
	defer m.Close()
	check(t, m.Do(t.Context(), func(ctx context.Context, m pb.MetaClient) error {
		v, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Tenant: "default", Name: name})
		if err != nil {
			return err
		}
		r, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: v.Volume.Id})
		if err != nil {
			return err
		}
		servers = nil
		for _, s := range r.Segments {
			if !s.Map && len(servers) == 0 { // the first is the one that was written
				for _, p := range s.Placements {
					servers = append(servers, p.Server)
				}
			}
		}
		return nil
	}))
	return servers
}

// onlyLeft kills all chunk servers but the one that the cell calls by a number.
func onlyLeft(t *testing.T, c *cluster.Cluster, id uint64) {
	t.Helper()
	list, err := dial(t, c).Servers(t.Context())
	check(t, err)
	for _, s := range list {
		for _, p := range c.Chunkds {
			if s.Address == p.Addr && s.ID != id {
				check(t, p.Kill())
			}
		}
	}
	check(t, c.WaitStatus(t.Context(), "down to one server", func(s client.CellStatus) bool { return int(s.ServersDown) == len(c.Chunkds)-1 }))
}

// TestWhatCannotBeDecidedIsExplainedAndCanBeGivenUp: three of four servers of a 2+2
// volume are gone when its writer dies. With a parity shard left all stands; with a data
// shard left, every second stripe is seen at most. The commands say so and do so.
func TestWhatCannotBeDecidedIsExplainedAndCanBeGivenUp(t *testing.T) {
	const blocks = 6
	for left, shard := range map[string]int{"parity": 3, "data": 0} {
		t.Run(left, func(t *testing.T) {
			c := start(t, cluster.Options{Chunkds: 4})
			abandoned(t, c, "v", blocks)
			onlyLeft(t, c, placedOn(t, c, "v")[shard])
			eventually(t, "its session has ended", 60*time.Second, func() bool {
				return !strings.Contains(strake(t, c, 0, "volume", "show", "v").Stdout, "writer")
			})
			says(t, c, 1, []string{"on server", "--accept-loss-after 0"}, "volume", "recover", "v")
			r := strake(t, c, 0, "explain", "volume", "v")
			for _, want := range []string{"not healthy", "can't be recovered", "on server", "which is down", "writes stand still"} {
				if !strings.Contains(r.Stdout, want) {
					t.Errorf("explain does not say %q:\n%s", want, r.Stdout)
				}
			}
			if r = strake(t, c, 0, "volume", "show", "v"); !strings.Contains(r.Stdout, "undecided") || !strings.Contains(r.Stdout, "on server") {
				t.Errorf("show says %s", r.Stdout)
			}
			says(t, c, 1, []string{"would be lost", "--yes"}, "volume", "recover", "v", "--accept-loss-after", "0")
			says(t, c, 1, []string{"more would be lost"}, "volume", "recover", "v", "--accept-loss-after", "100", "--yes")
			cut := accepted(t, c)
			if left == "parity" && cut != blocks || left == "data" && cut >= blocks {
				t.Errorf("with a %s shard left the log ends at %d of %d", left, cut, blocks)
			}
			for _, p := range c.Chunkds {
				if !p.Running() {
					check(t, p.Restart())
				}
			}
			check(t, c.WaitHealthy(t.Context()))
			holdsPrefix(t, c, cut, blocks)
			if r = strake(t, c, 0, "explain", "volume", "v"); !strings.Contains(r.Stdout, "loss was accepted by") {
				t.Errorf("explain has nothing on record:\n%s", r.Stdout)
			}
			if r = strake(t, c, 0, "events"); !strings.Contains(r.Stdout, "loss-accepted") {
				t.Errorf("no event:\n%s", r.Stdout)
			}
		})
	}
}

// says runs a command until it ends with a code and says what is wanted: a chunk
// server may be trying to recover the volume at the same time, which holds its lease.
func says(t *testing.T, c *cluster.Cluster, code int, wants []string, args ...string) (r cluster.Result) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("strake %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
		}
	}()
	eventually(t, strings.Join(args, " ")+" says "+strings.Join(wants, ", "), 60*time.Second, func() bool {
		var err error
		r, err = c.Run(t.Context(), args...)
		check(t, err)
		ok := r.Code == code
		for _, want := range wants {
			ok = ok && strings.Contains(r.Stdout+r.Stderr, want)
		}
		return ok
	})
	return r
}

// accepted gives up what can't be decided, and gives the log's end.
func accepted(t *testing.T, c *cluster.Cluster) (cut int) {
	t.Helper()
	var report client.Recovered
	r := says(t, c, 0, nil, "volume", "recover", "v", "--accept-loss-after", "0", "--yes", "-o", "json")
	check(t, json.Unmarshal([]byte(r.Stdout), &report))
	if !report.Done || report.Blocked == "" {
		t.Errorf("got %+v", report)
	}
	return int(report.Cut)
}

// holdsPrefix wants the first cut blocks as they were written, and nothing of the rest.
func holdsPrefix(t *testing.T, c *cluster.Cluster, cut, blocks int) {
	t.Helper()
	vol := open(t, c, "v", client.OpenOptions{})
	got := make([]byte, 4096)
	for i := range blocks {
		want := make([]byte, 4096)
		if i < cut {
			want = numbered(i)
		}
		if _, err := vol.ReadAt(got, int64(i)*4096); err != nil || string(got) != string(want) {
			t.Errorf("block %d of a log that ends at %d: %.8q, %v", i, cut, got, err)
		}
	}
}

// TestExplainNamesTheServerThatBlocksAcknowledgement: while a paused server holds up a
// writer that can't move away from it, also once it has given its segment up (after 2 s).
func TestExplainNamesTheServerThatBlocksAcknowledgement(t *testing.T) {
	c := start(t, cluster.Options{Chunkds: 2})
	create(t, c, "v", 256)
	vol := open(t, c, "v", client.OpenOptions{Write: true})
	_, err := vol.WriteAt(make([]byte, 4096), 0)
	check(t, err)
	if r := strake(t, c, 0, "explain", "volume", "v"); !strings.Contains(r.Stdout, "is healthy") || !strings.Contains(r.Stdout, "all its segments have all their shards") {
		t.Errorf("explain says %s", r.Stdout)
	}
	check(t, c.Chunkds[0].Pause())
	defer c.Chunkds[0].Resume() // else no session ends
	done := make(chan error, 1)
	go func() {
		_, err := vol.WriteAt(make([]byte, 4096), 4096)
		done <- err
	}()
	eventually(t, "explain names what blocks it", 60*time.Second, func() bool {
		var e client.Explanation
		r := strake(t, c, 0, "explain", "volume", "v", "-o", "json")
		check(t, json.Unmarshal([]byte(r.Stdout), &e))
		shown := strake(t, c, 0, "volume", "show", "v").Stdout
		return e.Blocked != nil && e.Blocked.Ms >= 5000 && e.Blocked.Server != 0 && !e.Healthy && strings.Contains(shown, "blocked") && strings.Contains(shown, "by chunk server")
	})
	check(t, c.Chunkds[0].Resume())
	check(t, <-done)
	eventually(t, "explain says that it no longer waits", 60*time.Second, func() bool {
		return !strings.Contains(strake(t, c, 0, "explain", "volume", "v").Stdout, "acknowledgement has been blocked") &&
			!strings.Contains(strake(t, c, 0, "volume", "show", "v").Stdout, "blocked")
	})
}
