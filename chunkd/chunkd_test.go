package chunkd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disks are file systems in memory by directory; they survive the servers on them.
type disks map[string]*vfs.Mem

func (d disks) open(dir string) (vfs.FS, error) {
	if d[dir] == nil {
		d[dir] = vfs.NewMem(vfs.MemOptions{})
	}
	return d[dir], nil
}

func (d disks) config(m *fakeMeta, dirs ...string) Config {
	return Config{Cell: m.addr, Listen: "127.0.0.1:0", Devices: dirs, FS: d.open, Domain: "z/r/h"}
}

// started starts a server that is closed when the test ends.
func started(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestNewDevicesAreFormattedRegisteredAndFoundAgain(t *testing.T) {
	m, d := startMeta(t), disks{}
	s := started(t, d.config(m, "a", "b"))
	first := <-m.registered
	if first.Cell != testCell || first.DataAddress != s.DataAddress() || first.ControlAddress != s.ControlAddress() || first.Domain != "z/r/h" ||
		len(first.Devices) != 2 || first.Devices[0].Incarnation != 1 || first.Devices[0].Path != "a" || s.ID() != 3 {
		t.Fatalf("registered as %v, server %d", first, s.ID())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	started(t, d.config(m, "b", "a"))
	again := <-m.registered
	if !bytes.Equal(again.Uuid, first.Uuid) || !bytes.Equal(again.Devices[1].Uuid, first.Devices[0].Uuid) || again.Devices[0].Incarnation != 2 ||
		again.Devices[0].Id == 0 {
		t.Errorf("after a restart registered as %v, before as %v", again, first)
	}
}

func TestADeviceOfAnotherServerOrCellIsRefused(t *testing.T) {
	m, d := startMeta(t), disks{}
	for _, dir := range []string{"a", "b"} {
		if err := started(t, d.config(m, dir)).Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Start(t.Context(), d.config(m, "a", "b"))
	if !errors.Is(err, errs.WrongCell) || !strings.Contains(err.Error(), "device b") || !strings.Contains(err.Error(), "a to server") {
		t.Errorf("another server's: got %v", err)
	}
	m.set(func() { m.cell = 0xbad })
	if err := started(t, d.config(m, "c")).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), d.config(m, "a", "c")); !errors.Is(err, errs.WrongCell) {
		t.Errorf("another cell's: got %v", err)
	}
	if _, err := Start(t.Context(), d.config(m, "a")); !errors.Is(err, errs.WrongCell) {
		t.Errorf("the metadata service of another cell: got %v", err)
	}
}

func TestOnlyEmptyDirectoriesAreFormatted(t *testing.T) {
	m, d := startMeta(t), disks{}
	fsys, _ := d.open("a")
	f, err := fsys.Create("letters.txt")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := Start(t.Context(), d.config(m, "a")); !errors.Is(err, errs.AlreadyExists) || !strings.Contains(err.Error(), "device a") {
		t.Errorf("got %v, want already-exists", err)
	}
}

func TestADirectoryHasOneOwner(t *testing.T) {
	m, d := startMeta(t), disks{}
	if _, err := Start(t.Context(), d.config(m, "a", "./a")); !errors.Is(err, errs.Busy) || !strings.Contains(err.Error(), "./a") {
		t.Errorf("twice in one server: got %v, want busy", err)
	}
	started(t, d.config(m, "a"))
	if _, err := Start(t.Context(), d.config(m, "a")); !errors.Is(err, errs.Busy) || !strings.Contains(err.Error(), "device a") {
		t.Errorf("in two servers: got %v, want busy", err)
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	m, d := startMeta(t), disks{}
	for name, spoil := range map[string]func(*Config){
		"no device":       func(c *Config) { c.Devices = nil },
		"no cell":         func(c *Config) { c.Cell = "" },
		"bad address":     func(c *Config) { c.Listen = "nowhere" },
		"bad shape":       func(c *Config) { c.Emulate = "speed=fast" },
		"no control":      func(c *Config) { c.Listen = "127.0.0.1:65000" },
		"undialable":      func(c *Config) { c.Listen, c.Policy.Insecure = "0.0.0.0:0", true },
		"beyond loopback": func(c *Config) { c.Listen = "0.0.0.0:0" },
	} {
		cfg := d.config(m, "a")
		spoil(&cfg)
		want := errs.InvalidArgument
		if name == "beyond loopback" {
			want = errs.PermissionDenied
		}
		if _, err := Start(t.Context(), cfg); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

func TestHeartbeatsGoOnAndRegisterAgainWhenUnknown(t *testing.T) {
	m, d := startMeta(t), disks{}
	started(t, d.config(m, "a"))
	<-m.registered
	beat := <-m.beats
	if beat.Server != 3 || len(beat.Devices) != 1 || beat.Devices[0].Id != 5 || beat.Devices[0].State != "up" || beat.Devices[0].TotalBytes == 0 {
		t.Errorf("heartbeat %v", beat)
	}
	m.set(func() { m.forget = true })
	if again := <-m.registered; again.Devices[0].Incarnation != 1 || again.Devices[0].Id != 5 {
		t.Errorf("registered again as %v", again)
	}
	<-m.beats
}

func TestADeviceWithALaterLifeAnswersNoMore(t *testing.T) {
	m, d := startMeta(t), disks{}
	s, err := Start(t.Context(), d.config(m, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // gives the device's error
	if beat := <-m.beats; beat.Devices[0].Incarnation != 1 || beat.DataAddress != s.DataAddress() {
		t.Errorf("heartbeat %v tells no life", beat)
	}
	m.set(func() { m.later = true })
	st := s.devices[0].store
	<-st.Failed()
	if err := st.Err(); !strings.Contains(err.Error(), "it was replaced") || errs.HintOf(err) != "empty it" {
		t.Errorf("got %v", err)
	}
	if _, err := st.Stat(frame.ShardRef{ShardKey: layout.ShardKey{Segment: 1}, Generation: 1}); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a question about a shard: got %v, want unavailable", err)
	}
}

func TestAStartWaitsForTheCellAndSaysSoOnce(t *testing.T) {
	for name, before := range map[string]bool{"not formed": false, "not known yet": true} {
		t.Run(name, func(t *testing.T) { startWaits(t, before) })
	}
}

func startWaits(t *testing.T, formed bool) {
	m, d := startMeta(t), disks{}
	m.set(func() { m.cell, m.formed = 0, formed })
	cfg := d.config(m, "a")
	log := &logLines{said: make(chan struct{}, 100)}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	result := make(chan error, 1)
	go func() {
		s, err := Start(t.Context(), cfg)
		if err == nil {
			err = s.Close()
		}
		result <- err
	}()
	<-log.said
	m.set(func() { m.cell = testCell })
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "can't be reached"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log)
	}
}

func TestAStopWhileWaitingIsClean(t *testing.T) {
	d := disks{}
	cfg := d.config(&fakeMeta{addr: "127.0.0.1:1"}, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Run(ctx, cfg); err != nil {
		t.Errorf("got %v, want a clean stop", err)
	}
}

// TestAStopWhileRegisteringIsClean stops a server whose registration is under way:
// whoever did that knows why it ended.
func TestAStopWhileRegisteringIsClean(t *testing.T) {
	m, d := startMeta(t), disks{}
	m.set(func() { m.hangs = true })
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- Run(ctx, d.config(m, "a")) }()
	<-m.registered
	cancel()
	if err := <-result; err != nil {
		t.Errorf("got %v, want a clean stop", err)
	}
}

func TestRunStopsCleanlyWithItsContext(t *testing.T) {
	m, d := startMeta(t), disks{}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- Run(ctx, d.config(m, "a")) }()
	<-m.beats
	cancel()
	if err := <-result; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// logLines collects log lines and says when one has come.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
	said chan struct{}
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.said <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
