package ctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/chunkd"
	"strake/client"
	"strake/internal/dial"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/meta"
	"strake/meta/server"
	"strake/proto/pb"
)

// upkeepCell is a cell in this process whose chunk servers come and go.
type upkeepCell struct {
	t       testing.TB
	emulate string
	fs      func(dir string) (vfs.FS, error) // nil: the real one
	meta    *meta.Server
	address string
	dirs    []string
	chunkds []*chunkd.Server // nil: down
	caller  *dial.Meta
	janitor *client.Janitor
}

func newUpkeepCell(t *testing.T, n int) *upkeepCell {
	t.Helper()
	return startUpkeepCell(t, n, "", nil)
}

// startUpkeepCell starts a cell; emulate shapes each device, empty: none; fs gives
// its file system, nil: the real one.
func startUpkeepCell(t testing.TB, n int, emulate string, fs func(string) (vfs.FS, error)) *upkeepCell {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(testLines{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	dir := t.TempDir()
	m, err := meta.Start(t.Context(), meta.Config{Listen: "127.0.0.1:0", Dir: filepath.Join(dir, "meta"), Logger: log,
		ShardLength: 4 << 20, RebuildAfter: 500 * time.Millisecond, Timing: server.Timing{ServerSilence: time.Second, Control: 50 * time.Millisecond}})
	must(t, err)
	c := &upkeepCell{t: t, emulate: emulate, fs: fs, meta: m, address: m.Addr().String(), chunkds: make([]*chunkd.Server, n)}
	t.Cleanup(func() {
		var group errgroup.Group
		for _, s := range c.chunkds {
			if s != nil {
				group.Go(s.Close)
			}
		}
		must(t, errors.Join(group.Wait(), c.janitor.Close(), m.Close()))
	})
	c.janitor = client.NewJanitor(client.Config{Addresses: c.address, Logger: log})
	c.caller, err = dial.NewMeta(c.address, tls.Policy{})
	must(t, err)
	t.Cleanup(c.caller.Close)
	for i := range n {
		c.dirs = append(c.dirs, filepath.Join(dir, fmt.Sprintf("chunkd-%d", i+1)))
		must(t, os.MkdirAll(c.dirs[i], 0o755))
	}
	var group errgroup.Group
	for i := range n {
		group.Go(func() error { return c.up(i, log) })
	}
	must(t, group.Wait())
	return c
}

// join adds a server.
func (c *upkeepCell) join() {
	c.t.Helper()
	c.dirs, c.chunkds = append(c.dirs, c.t.TempDir()), append(c.chunkds, nil)
	must(c.t, c.up(len(c.dirs)-1, slog.New(slog.DiscardHandler)))
}

func (c *upkeepCell) up(i int, log *slog.Logger) (err error) {
	c.chunkds[i], err = chunkd.Start(c.t.Context(), chunkd.Config{Cell: c.address, Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Domain: fmt.Sprintf("z/r/h%d", i),
		Devices: []string{c.dirs[i]}, Emulate: c.emulate, FS: c.fs, Recoverer: c.janitor, Logger: log.With("at", i+1), Upkeep: chunkd.Upkeep{SweepEvery: 300 * time.Millisecond}})
	return err
}

// down stops servers.
func (c *upkeepCell) down(list ...int) {
	c.t.Helper()
	var group errgroup.Group
	for _, i := range list {
		s := c.chunkds[i]
		c.chunkds[i] = nil
		group.Go(s.Close)
	}
	must(c.t, group.Wait())
}

func (c *upkeepCell) status() (r *pb.RebuildStatusReply, st *pb.StatusReply) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	must(c.t, c.caller.Do(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
		if r, err = m.RebuildStatus(ctx, &pb.RebuildStatusRequest{}); err == nil {
			st, err = m.Status(ctx, &pb.StatusRequest{})
		}
		return err
	}))
	return r, st
}

// whole waits until so many devices were given up, and no segment misses a shard.
func (c *upkeepCell) whole(what string, dead int) {
	c.t.Helper()
	c.eventually(what, func() string {
		n := c.devices("dead")
		r, st := c.status()
		if n == dead && r.LostShards == 0 && r.Running == 0 && st.SegmentsDegraded == 0 {
			return ""
		}
		return fmt.Sprintf("%d devices dead, rebuild %v, status %v", n, r, st)
	})
}

// devices counts the devices in a state.
func (c *upkeepCell) devices(state string) (n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	must(c.t, c.caller.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		r, err := m.ListServers(ctx, &pb.ListServersRequest{})
		n = 0
		for _, s := range r.GetServers() {
			for _, d := range s.Devices {
				if d.State == state {
					n++
				}
			}
		}
		return err
	}))
	return n
}

func (c *upkeepCell) eventually(what string, lacks func() string) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		why := lacks()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not in time: %s: %s", what, why)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// filled makes a volume and writes it in pieces of all sizes.
func (c *upkeepCell) filled(name string, bytes int) []byte {
	c.t.Helper()
	cell, err := client.Dial(c.t.Context(), client.Config{Addresses: c.address})
	must(c.t, err)
	defer cell.Close()
	_, err = cell.CreateVolume(c.t.Context(), name, client.VolumeOptions{Size: int64(bytes)})
	must(c.t, err)
	vol, err := cell.Open(c.t.Context(), name, client.OpenOptions{Write: true})
	must(c.t, err)
	rnd := rand.New(rand.NewPCG(7, uint64(bytes)))
	content := make([]byte, bytes)
	for at := 0; at < bytes; {
		n := min(bytes-at, 4096<<rnd.IntN(9))
		for i := at; i < at+n; i += 8 {
			v := rnd.Uint64()
			for b := range 8 {
				content[i+b] = byte(v >> (8 * b))
			}
		}
		_, err := vol.WriteAt(content[at:at+n], int64(at))
		must(c.t, err)
		if rnd.IntN(4) == 0 {
			must(c.t, vol.Flush(c.t.Context()))
		}
		at += n
	}
	must(c.t, vol.Close())
	return content
}

func (c *upkeepCell) check(name string, want []byte) {
	c.t.Helper()
	cell, err := client.Dial(c.t.Context(), client.Config{Addresses: c.address})
	must(c.t, err)
	defer cell.Close()
	vol, err := cell.Open(c.t.Context(), name, client.OpenOptions{})
	must(c.t, err)
	defer vol.Close()
	got := make([]byte, len(want))
	_, err = vol.ReadAt(got, 0)
	must(c.t, err)
	for i := range got {
		if got[i] != want[i] {
			c.t.Fatalf("%s: byte %d differs", name, i)
		}
	}
}

// files lists a server's shard files.
func (c *upkeepCell) files(i int) (list []string) {
	c.t.Helper()
	must(c.t, filepath.WalkDir(c.dirs[i], func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.Count(d.Name(), "-") == 2 && len(d.Name()) == 28 {
			list = append(list, p)
		}
		return err
	}))
	return list
}

// TestRedundancyComesBack loses a server for good, then two more: the data
// outlives more losses than parity covers, because each is made up for first.
func TestRedundancyComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a cell loses three servers; without -short it runs")
	}
	c := newUpkeepCell(t, 9)
	content := c.filled("v", 8<<20)
	for i := range 3 { // of one segment alone, three of nine servers may hold nothing
		c.filled(fmt.Sprintf("more-%d", i), 1<<20)
	}
	began := time.Now()
	c.down(2)
	c.whole("after one server", 1)
	t.Logf("whole after %v", time.Since(began))
	c.check("v", content)
	began = time.Now()
	c.down(0, 5)
	c.whole("after two more", 3)
	t.Logf("whole after %v", time.Since(began))
	c.check("v", content)
	if r, _ := c.status(); r.RebuiltShards == 0 {
		t.Errorf("no shard was made again: %v", r)
	}
	// What comes back is known by its generation and removed.
	must(t, c.up(2, slog.New(slog.DiscardHandler)))
	c.eventually("leftovers go", func() string {
		if n := len(c.files(2)); n > 0 {
			return fmt.Sprintf("%d files", n)
		}
		return ""
	})
	c.check("v", content)
}

// TestUpkeepVerbs drains a server, takes it back, scrubs, and gives a device up.
func TestUpkeepVerbs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a cell drains a server and gives a device up; without -short it runs")
	}
	c := newUpkeepCell(t, 7)
	content := c.filled("v", 4<<20)
	verb := func(want int, args ...string) string {
		t.Helper()
		out, bad, code := run(append(args, "--cell", c.address, "-o", "json")...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s%s", args, code, want, out, bad)
		}
		return out + bad
	}
	verb(0, "server", "drain", "2")
	c.eventually("server 2 is empty", func() string {
		r, _ := c.status()
		if c.devices("draining") == 1 && r.MovingShards == 0 && r.Running == 0 && len(c.files(c.at(2))) == 0 {
			return ""
		}
		return r.String()
	})
	if out := verb(1, "server", "drain", "3"); !strings.Contains(out, "frozen") || !strings.Contains(out, "v") {
		t.Errorf("a drain that leaves 5 servers for 4+2: %s", out)
	}
	verb(0, "server", "undrain", "2")
	if out := verb(1, "server", "rm", "2", "--yes"); !strings.Contains(out, "busy") {
		t.Errorf("rm of a server that is up: %s", out)
	}
	verb(1, "device", "replace", "3") // wants --yes
	verb(0, "device", "replace", "3", "--yes")
	c.whole("after device 3", 1)
	c.check("v", content)
	verb(0, "scrub", "start", "--deep")
	c.eventually("every device was scrubbed", func() string {
		out := verb(0, "scrub", "status")
		if strings.Count(out, `"cycles": 1`) == 7 {
			return ""
		}
		return out
	})
	if out := verb(0, "rebuild", "status"); !strings.Contains(out, `"lost_shards": 0`) {
		t.Errorf("rebuild status: %s", out)
	}
}

// at is the index of the server with an id.
func (c *upkeepCell) at(id layout.ServerID) int {
	return slices.IndexFunc(c.chunkds, func(s *chunkd.Server) bool { return s != nil && s.ID() == id })
}

// testLines sends log lines to the test.
type testLines struct{ t testing.TB }

func (w testLines) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}
